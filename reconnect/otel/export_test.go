package otelredial

import (
	"fmt"
	"strings"

	"github.com/redial-go/redial/reconnect/internal/meter"
)

// Table returns the table of the instruments for README.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| instrument | kind | unit | attributes beside `redial.name` | what |\n| --- | --- | --- | --- | --- |\n")
	for _, i := range meter.Instruments() {
		var attributes []string
		for _, l := range i.Labels {
			values := strings.Join(l.Values, ", ")
			if l.Name == "reason" && len(i.Labels) > 1 {
				values = "none, or as below"
			} else if l.Name == "reason" {
				values = "as below"
			}
			attributes = append(attributes, fmt.Sprintf("`%s%s`: %s", prefix, l.Name, values))
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", prefix, i.Name, kindOf(i), i.Unit, strings.Join(attributes, "; "), i.Help)
	}
	var reasons []string
	for _, i := range meter.Instruments() {
		if len(i.Labels) == 1 && i.Labels[0].Name == "reason" {
			reasons = i.Labels[0].Values
		}
	}
	fmt.Fprintf(&b, "\nA `redial.reason` is one of %s. See `backoff.Reason`.\n", strings.Join(reasons, ", "))
	return b.String()
}

func kindOf(i *meter.Instrument) string {
	switch {
	case i.Kind == meter.Counter && i.Collected():
		return "observable counter"
	case i.Kind == meter.Counter:
		return "counter"
	case i.Kind == meter.UpDown:
		return "observable up-down counter"
	case i.Kind == meter.Histogram:
		return "histogram"
	}
	return "observable gauge"
}
