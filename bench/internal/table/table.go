// Package table is a table that is printed in columns, as Markdown or as CSV.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
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

// Percent returns a percentage as text, and a dash if it is not defined.
func Percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", x)
}
