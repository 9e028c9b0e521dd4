package main

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/conn/conntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// This is a short run of the command. The limits hold however slow the machine is.
func TestDialerAddsNoStorm(t *testing.T) {
	// The zero Dialer may draw a wait of up to 8 s in the outage, seldom of 16 or 32 s.
	o := &dialBench{outage: 3 * time.Second, after: 30 * time.Second, rate: 20, runs: 1, clients: clients}
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

// Virtual time, because a median of a second is asserted.
func TestPoolIsUsableWithinASecondInTheMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := clients[slices.IndexFunc(clients, func(c client) bool { return c.name == "pgxpool-4" })]
		back := make([]time.Duration, 51)
		var all sync.WaitGroup
		for i := range back {
			n := new(conntest.Network)
			s := &scene{
				client: pool,
				way:    ways[1],
				rate:   20,
				outage: time.Minute + time.Duration(i)*37*time.Millisecond,
				after:  30 * time.Second,

				listen:  func(_, address string) (net.Listener, error) { return n.Listen(address) },
				address: "127.0.0.1:5432",
				tryOnce: n.DialContext,
			}
			all.Go(func() {
				r, err := s.run(t.Context())
				assert.NoError(t, err)
				back[i] = r.back
			})
		}
		all.Wait()
		slices.Sort(back)
		t.Log("median, worst:", back[25], back[50])
		require.LessOrEqual(t, back[25], time.Second)
		require.Less(t, back[50], 30*time.Second, "never back")
	})
}
