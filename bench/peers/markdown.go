package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

// Markdown returns the table of README.md in bench: a line for each peer, a column for
// each column with a Short name, and medians in the cells. Where there are ratios, the cells
// have them, the first line has the figures of the base, and the line of the base's second
// measurement has the lowest and the highest ratio. Below the table it says when and where the
// rows were measured.
func (r *Report) Markdown() string {
	type place struct {
		row *Result
		i   int
	}
	var columns []place
	head := []string{""}
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row *Result) bool { return row.rounds() == 0 })
	for _, row := range rows {
		for i, c := range row.Columns {
			if c.Short != "" {
				columns = append(columns, place{row, i})
				head = append(head, c.Short)
			}
		}
	}
	base := []string{all[0].name + ", absolute"}
	for _, c := range columns {
		cell := ""
		if p := c.row.peer(all[0].name); p != nil && c.row.hasRatios(c.i) {
			cell = chart.Number(math.Round(p.Figures[c.i].Median())) + " " + c.row.Columns[c.i].Name
		}
		base = append(base, cell)
	}
	t := table.Table{head, base}
	for _, name := range union(rows) {
		line := []string{name}
		for _, c := range columns {
			line = append(line, c.row.cell(name, c.i))
		}
		t.Row(line...)
	}
	if len(rows) == 0 {
		return t.Markdown()
	}
	return fmt.Sprintf("%s\nMeasured %s, %s.\n", t.Markdown(), loads(rows), roundsText(rows))
}

// cell is the figure of a peer in column i, as the table of the README has it.
func (r *Result) cell(name string, i int) string {
	p, c := r.peer(name), r.Columns[i]
	switch {
	case p == nil:
		return ""
	case !r.hasRatios(i):
		v := p.Figures[i].Median()
		switch {
		case v < never && c.Name == "s":
			return decimal(v, c.Digits) + " s"
		case v < never && c.Digits == 0:
			return chart.Number(math.Round(v))
		}
		return decimal(v, c.Digits)
	case strings.HasSuffix(name, twin):
		return decimal(r.ratio(p, i).Min(), 2) + " to " + decimal(r.ratio(p, i).Max(), 2)
	}
	return decimal(r.ratio(p, i).Median(), 2)
}
