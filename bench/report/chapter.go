package report

import (
	"context"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/table"
)

// Chapter is a part of the report.
type Chapter struct {
	ID      string   // in Options.Only, and in the address of a place in the HTML
	Title   string   //
	Text    []string // paragraphs
	Figures []*Figure
	Missing int // figures that were not drawn since the report was interrupted
}

// Figure is one or more pictures of one thing, what there is to say about it, and its
// numbers.
type Figure struct {
	Title    string
	Text     []string // paragraphs
	Pictures []*chart.Picture
	Tables   []table.Table // the first column is that of names
	Commands []string      // that make it, in the directory bench: one prints the first table, one draws; nil: there is none for it alone
}

// plan is a chapter that is not drawn yet.
type plan struct {
	id, title string
	text      []string
	figures   []drawing
}

// drawing makes one figure. When ctx ends it returns its cause.
type drawing func(ctx context.Context) (*Figure, error)

// plans returns all chapters, in order.
func plans(o Options) []plan {
	return []plan{
		herdPlan(o),
		queueingPlan(o),
		tiersPlan(o),
		lettersPlan(o),
		contentionPlan(o),
		stormPlan(o),
	}
}

// ChapterIDs returns what Options.Only may have in it.
func ChapterIDs() []string {
	return pick.Names(plans(Options{}), func(p plan) string { return p.id })
}
