package promredial

import (
	"fmt"
	"strings"

	"github.com/redial-go/redial/reconnect/internal/meter"
)

// Table returns the table of the metrics for README.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels beside `name` | what |\n| --- | --- | --- | --- |\n")
	for _, i := range meter.Instruments() {
		kind := "gauge"
		switch i.Kind {
		case meter.Counter:
			kind = "counter"
		case meter.Histogram:
			kind = "histogram"
		}
		var labels []string
		for _, l := range i.Labels {
			values := strings.Join(l.Values, ", ")
			if l.Name == "reason" && len(i.Labels) > 1 {
				values = "none, or as below"
			} else if l.Name == "reason" {
				values = "as below"
			}
			labels = append(labels, fmt.Sprintf("`%s`: %s", l.Name, values))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", metricName("redial", i), kind, strings.Join(labels, "; "), i.Help)
	}
	var reasons []string
	for _, i := range meter.Instruments() {
		if len(i.Labels) == 1 && i.Labels[0].Name == "reason" {
			reasons = i.Labels[0].Values
		}
	}
	fmt.Fprintf(&b, "\nA `reason` is one of %s. See `backoff.Reason`.\n", strings.Join(reasons, ", "))
	return b.String()
}
