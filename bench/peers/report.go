package peers

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what [Run] has measured.
type Report struct {
	Rows []*Result
}

// Result is what was measured for one row.
type Result struct {
	Name  string
	Title string // what was measured
	Peers []*PeerResult
	Notes []string // what else there is to say, by peer

	columns []column
}

// PeerResult has the figures of one peer in one row.
type PeerResult struct {
	Name    string
	Columns []Spread // of the row's figures
	Ratio   Spread   // of the first of them to the base's in the same round; empty where that says nothing
}

// Spread is the same figure of several rounds. What was waited for in vain is infinite.
type Spread []float64

// Min returns the lowest, NaN if there is none.
func (s Spread) Min() float64 { return s.at(0) }

// Max returns the highest, NaN if there is none.
func (s Spread) Max() float64 { return s.at(1) }

// Median returns the one in the middle, or the mean of two; NaN if there is none.
func (s Spread) Median() float64 { return s.at(0.5) }

func (s Spread) at(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	place := q * float64(len(s)-1)
	low, high := sorted[int(math.Floor(place))], sorted[int(math.Ceil(place))]
	if low == high {
		return low // both may be infinite
	}
	return (low + high) / 2
}

func newResult(r *row, names []string) *Result {
	result := &Result{Name: r.name, Title: r.title, columns: r.columns}
	for _, name := range names {
		result.Peers = append(result.Peers, &PeerResult{Name: name, Columns: make([]Spread, len(r.columns))})
	}
	return result
}

// add adds the figures of a round.
func (r *Result) add(figures map[string][]float64) {
	for _, p := range r.Peers {
		for i, v := range figures[p.Name] {
			p.Columns[i] = append(p.Columns[i], v)
		}
		if base := figures[all[0].name]; r.columns[0].ratio && base != nil && base[0] != 0 {
			p.Ratio = append(p.Ratio, figures[p.Name][0]/base[0])
		}
	}
}

// rounds is how many rounds were whole.
func (r *Result) rounds() int {
	if len(r.Peers) == 0 {
		return 0
	}
	return len(r.Peers[0].Columns[0])
}

// Write writes a table for each row of which there is a whole round.
func (r *Report) Write(w io.Writer) error {
	for _, row := range r.Rows {
		if row.rounds() == 0 {
			continue
		}
		if err := row.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) write(w io.Writer) error {
	rounds := "1 round"
	if n := r.rounds(); n > 1 {
		rounds = fmt.Sprintf("%d rounds: min / median / max", n)
	}
	if _, err := fmt.Fprintf(w, "%s: %s; %s\n", r.Name, r.Title, rounds); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var head []string
	for i, c := range r.columns {
		head = append(head, c.name)
		if i == 0 && c.ratio {
			head = append(head, "ratio to "+all[0].name)
		}
	}
	fmt.Fprintf(t, "  \t%s\n", strings.Join(head, "\t"))
	for _, p := range r.Peers {
		var cells []string
		for i, c := range r.columns {
			cells = append(cells, p.Columns[i].text(c.digits, i == 0))
			if i == 0 && c.ratio {
				cells = append(cells, p.Ratio.text(2, true))
			}
		}
		fmt.Fprintf(t, "  %s\t%s\n", p.Name, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, strings.Join(append(r.Notes, ""), "\n"))
	return err
}

// text is the median, and all three if whole.
func (s Spread) text(digits int, whole bool) string {
	if !whole || len(s) == 1 {
		return decimal(s.Median(), digits)
	}
	return decimal(s.Min(), digits) + " / " + decimal(s.Median(), digits) + " / " + decimal(s.Max(), digits)
}

func decimal(v float64, digits int) string {
	switch {
	case math.IsInf(v, 0):
		return "not in time"
	case math.IsNaN(v):
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, v)
}
