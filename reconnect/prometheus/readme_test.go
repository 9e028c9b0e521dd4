package promredial_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	promredial "github.com/redial-go/redial/reconnect/prometheus"
)

// The table of README.md is what the code says. UPDATE_README=1 writes it.
func TestTheTableOfTheREADMEIsTrue(t *testing.T) {
	const begin, end = "<!-- metrics -->\n", "<!-- end -->\n"
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := promredial.Table()
	if os.Getenv("UPDATE_README") != "" {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, table)
}

// The table has each metric of a real exposition, with its labels, and no other.
func TestTheTableHasTheMetricsOfTheExposition(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(promredial.Table()) {
		if cells := strings.Split(line, "|"); len(cells) > 1 && strings.HasPrefix(cells[1], " `") {
			rows[strings.Trim(cells[1], " `")] = line
		}
	}
	m := newMetrics(t, nil)
	touch(m.Trace("feed"))
	live(t, m, "feed", func(ended bool) {
		if ended {
			return
		}
		seen := map[string]bool{}
		for _, f := range gather(t, m) {
			row := rows[f.GetName()]
			require.NotEmpty(t, row, f.GetName())
			require.Contains(t, row, f.GetHelp())
			require.Contains(t, row, strings.ToLower(f.GetType().String()))
			for _, l := range f.Metric[0].Label {
				if l.GetName() != "name" {
					require.Contains(t, row, "`"+l.GetName()+"`: ")
				}
				if l.GetName() != "name" && l.GetName() != "reason" {
					require.Contains(t, row, l.GetValue())
				}
			}
			seen[f.GetName()] = true
		}
		for name := range rows {
			require.True(t, seen[name], "%s is in the table, and not in the exposition", name)
		}
	})
}

// touch calls hooks for whose events a test has no other cause.
func touch(t *reconnect.Trace) {
	t.GateDone(reconnect.GateDone{Took: time.Second})
	t.ProbeDone(reconnect.ProbeDone{Took: time.Millisecond})
	t.ProbeDone(reconnect.ProbeDone{Err: errors.New("no answer")})
	t.Overdue(reconnect.Overdue{What: "OnMessage"})
}
