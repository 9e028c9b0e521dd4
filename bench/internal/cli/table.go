package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/internal/chart"
)

// Table is a table in the making; its first row is the head.
type Table [][]string

// Row adds a row.
func (t *Table) Row(cells ...string) { *t = append(*t, cells) }

// Markdown returns the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	for i, row := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// Print prints the table in columns.
func (t Table) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	return w.Flush()
}

// WriteCSV writes the table as CSV.
func (t Table) WriteCSV(w io.Writer) error { return csv.NewWriter(w).WriteAll(t) }

// Plural returns "1 noun" or "n nouns".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return chart.Number(float64(n)) + " " + noun + "s"
}

// Median returns the middle of figures, and of an even number the lower one.
func Median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[(len(sorted)-1)/2]
}
