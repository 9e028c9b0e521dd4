package report

import (
	"context"

	"github.com/redial-go/redial/bench/internal/chart"
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
	Tables   []Table
}

// Table is numbers in rows.
type Table struct {
	Head []string   // of the columns; the first is that of names
	Rows [][]string // as long as Head
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
	var ids []string
	for _, p := range plans(Options{}) {
		ids = append(ids, p.id)
	}
	return ids
}
