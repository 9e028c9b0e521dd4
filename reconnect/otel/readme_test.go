package otelredial_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/redial-go/redial/reconnect"
	otelredial "github.com/redial-go/redial/reconnect/otel"
)

// The table of README.md is what the code says. UPDATE_README=1 writes it.
func TestTheTableOfTheREADMEIsTrue(t *testing.T) {
	const begin, end = "<!-- instruments -->\n", "<!-- end -->\n"
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := otelredial.Table()
	if os.Getenv("UPDATE_README") != "" {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, table)
}

// The table has each instrument that a reader gets, with its unit, and no other.
func TestTheTableHasTheInstrumentsOfTheReader(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(otelredial.Table()) {
		if cells := strings.Split(line, "|"); len(cells) > 1 && strings.HasPrefix(cells[1], " `") {
			rows[strings.Trim(cells[1], " `")] = line
		}
	}
	s := newScene(t, otelredial.Options{})
	touch(s.Trace("feed"))
	s.live("feed", func(ended bool) {
		if ended {
			return
		}
		seen := map[string]bool{}
		for _, m := range s.metrics() {
			row := rows[m.Name]
			require.NotEmpty(t, row, m.Name)
			require.Contains(t, row, m.Description)
			require.Contains(t, row, "| "+m.Unit+" |")
			require.Contains(t, row, kindOf(m.Data))
			seen[m.Name] = true
		}
		for name := range rows {
			require.True(t, seen[name], "%s is in the table, and the reader does not get it", name)
		}
	})
}

// kindOf returns what the table calls such data.
func kindOf(data metricdata.Aggregation) string {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return "counter |"
		}
		return "observable up-down counter |"
	case metricdata.Histogram[float64]:
		return "histogram |"
	}
	return "observable gauge |"
}

// touch calls hooks for whose events a test has no other cause.
func touch(t *reconnect.Trace) {
	t.GateDone(reconnect.GateDone{Took: time.Second})
	t.ProbeDone(reconnect.ProbeDone{Took: time.Millisecond})
	t.ProbeDone(reconnect.ProbeDone{Err: errors.New("no answer")})
	t.Overdue(reconnect.Overdue{What: "OnMessage"})
}
