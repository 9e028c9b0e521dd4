package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// Report is what [Run] has measured, or [Read] has read.
type Report struct {
	Rows []*Result
}

// Result is what was measured for one row.
type Result struct {
	Name     string
	Title    string // what was measured
	Measured cli.Conditions
	Columns  []Column
	Peers    []*PeerResult
	Notes    []string `json:",omitempty"` // what else there is to say, by peer
	Cut      bool     `json:"-"`          // not all rounds were measured
}

// Column is a figure of a row. A file has its name alone.
type Column struct {
	Name   string // with the unit, or only that
	Digits int    `json:"-"` // after the point
	Ratio  bool   `json:"-"` // a ratio to the base says something; never without one in the first
	Short  string `json:"-"` // its name in the table of [Report.Markdown], and if it is the first in the picture; empty: it is in neither
}

// PeerResult has the figures of one peer in one row.
type PeerResult struct {
	Name    string
	Figures []Spread // for each of the row's columns
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
	result := &Result{Name: r.name, Title: r.title, Columns: r.columns}
	for _, name := range names {
		result.Peers = append(result.Peers, &PeerResult{Name: name, Figures: make([]Spread, len(r.columns))})
	}
	return result
}

// add adds the figures of a round.
func (r *Result) add(figures map[string][]float64) {
	for _, p := range r.Peers {
		for i, v := range figures[p.Name] {
			p.Figures[i] = append(p.Figures[i], v)
		}
	}
}

// hasRatios reports whether [Result.ratio] returns something for column i.
func (r *Result) hasRatios(i int) bool { return r.rounds() > 0 && r.Columns[i].Ratio }

// ratio returns the figure of p in column i, divided by that of the base in the same round. It is
// empty where a ratio says nothing.
func (r *Result) ratio(p *PeerResult, i int) Spread {
	base := r.peer(all[0].name)
	if base == nil || !r.hasRatios(i) {
		return nil
	}
	var s Spread
	for round, v := range base.Figures[i] {
		if v > 0 {
			s = append(s, p.Figures[i][round]/v)
		}
	}
	return s
}

// peer returns the figures of a peer, nil if it was not measured.
func (r *Result) peer(name string) *PeerResult {
	i := slices.IndexFunc(r.Peers, func(p *PeerResult) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return r.Peers[i]
}

// rounds is how many rounds were whole.
func (r *Result) rounds() int {
	if len(r.Peers) == 0 {
		return 0
	}
	return len(r.Peers[0].Figures[0])
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
	for _, cells := range r.table() {
		fmt.Fprintf(t, "  %s\n", strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n\n", strings.Join(append(slices.Clone(r.Notes), r.Measured.String()), "\n"))
	return err
}

// table returns the figures as text, a line for each peer: of the first figure, of those with ratios and of
// the ratios the minimum, the median and the maximum, of the others the median.
func (r *Result) table() table.Table {
	head := []string{""}
	for _, c := range r.Columns {
		head = append(head, c.Name)
		if c.Ratio {
			head = append(head, "ratio to "+all[0].name)
		}
	}
	t := table.Table{head}
	for _, p := range r.Peers {
		cells := []string{p.Name}
		for i, c := range r.Columns {
			cells = append(cells, p.Figures[i].text(c.Digits, i == 0 || c.Ratio))
			if c.Ratio {
				cells = append(cells, r.ratio(p, i).text(2, true))
			}
		}
		t.Row(cells...)
	}
	return t
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
