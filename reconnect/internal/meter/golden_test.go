package meter_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/meter"
)

// Dashboards of users query these names, labels and buckets. A change of one of them breaks such dashboards, and needs an entry in CHANGELOG.md.
func TestTheInstrumentsAreThoseThatDashboardsAskFor(t *testing.T) {
	want, err := os.ReadFile("testdata/instruments.txt")
	require.NoError(t, err)
	kinds := []string{"counter", "up and down", "gauge", "histogram"}
	var got strings.Builder
	for _, i := range meter.Instruments() {
		how := "events"
		if i.Collected() {
			how = "collected"
		}
		fmt.Fprintf(&got, "%s: %s of %s, %s", i.Name, kinds[i.Kind], i.Unit, how)
		for _, l := range i.Labels {
			fmt.Fprintf(&got, ", %s", l.Name)
			if l.Name != "reason" && l.Name != "function" { // these grow with the library
				fmt.Fprintf(&got, " %q", l.Values)
			}
		}
		if i.Buckets != nil {
			fmt.Fprintf(&got, ", buckets %v", i.Buckets)
		}
		if i.Zero != nil {
			fmt.Fprintf(&got, ", from zero %q", i.Zero)
		}
		got.WriteByte('\n')
	}
	require.Equal(t, string(want), got.String())
}

// A counter is there if there ever was what it counts, and a gauge as long as there is something to measure.
func TestAnInstrumentIsReadWhileThereIsWhatItMeasures(t *testing.T) {
	for _, i := range meter.Instruments() {
		if !i.Collected() {
			continue
		}
		there := func(totals meter.Totals) bool {
			var labels []string
			i.Read(&totals, func(_ float64, v meter.Values) { labels = append(labels, v[0]) })
			switch {
			case len(labels) == 0:
				return false
			case len(i.Labels) == 0:
				require.Equal(t, []string{""}, labels, i.Name)
			default:
				require.Equal(t, i.Labels[0].Values, labels, i.Name)
			}
			return true
		}
		got := []bool{
			there(meter.Totals{Conns: 1}), there(meter.Totals{EverConns: true}), there(meter.Totals{Sets: 1}), there(meter.Totals{EverSets: true}),
		}
		sets, counter := strings.HasPrefix(i.Name, "subscription"), i.Kind == meter.Counter
		require.Equal(t, []bool{!sets && !counter, !sets && counter, sets && !counter, sets && counter}, got, i.Name)
	}
}
