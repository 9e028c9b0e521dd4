package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// This is a short run of the command. The limits hold however slow the machine is.
func TestDialerAddsNoStorm(t *testing.T) {
	o := &dialBench{outage: 3 * time.Second, after: 10 * time.Second, rate: 20, runs: 1, clients: clients}
	require.NoError(t, o.Run(t.Context(), &cli.Console{Errs: io.Discard}))
	rows, note := o.Table()
	t.Log(rows.Markdown(), note)
	require.Len(t, rows, 1+len(ways)*len(clients))
	for _, r := range o.results {
		row := r.client + " by " + r.way
		require.Less(t, r.back, o.after, "%s: never back", row)
		if r.way != "net.Dialer" {
			require.LessOrEqual(t, r.inProgress, int64(8+1), "%s: dials in progress", row)
			// Each call tries once, and eight of them again, up to four times in a second. Without
			// that limit there would be six times as many tries as calls.
			require.LessOrEqual(t, r.tries, float64(o.rate)+8*4, "%s: tries/s", row)
		}
	}
}
