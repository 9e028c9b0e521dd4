package otelredial

import (
	"fmt"
	"strings"

	"github.com/redial-go/redial/reconnect/internal/meter"
)

// Table returns the table of the instruments for README.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| instrument | kind | unit | attributes beside `redial.name` and the server | what |\n| --- | --- | --- | --- | --- |\n")
	for _, i := range meter.Instruments() {
		var attributes []string
		for _, l := range i.Labels {
			switch {
			case l.Name != "reason":
				attributes = append(attributes, fmt.Sprintf("`%s%s`: %s", prefix, l.Name, strings.Join(l.Values, ", ")))
			case i.Name == "session.duration":
				attributes = append(attributes, "`redial.reason`: as below", "`error.type`: the same, but for shutdown and rotated")
			default:
				attributes = append(attributes, "`error.type`: as below, if the outcome is failed")
			}
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", prefix, i.Name, kindOf(i), i.Unit, strings.Join(attributes, "; "), i.Help)
	}
	var reasons []string
	for _, i := range meter.Instruments() {
		if len(i.Labels) == 1 && i.Labels[0].Name == "reason" {
			reasons = i.Labels[0].Values
		}
	}
	fmt.Fprintf(&b, "\nA `redial.reason` and an `error.type` are one of %s. See `backoff.Reason`. The `error.type` for other is `_OTHER`.\n", strings.Join(reasons, ", "))
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
