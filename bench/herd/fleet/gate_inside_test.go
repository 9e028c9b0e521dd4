package fleet

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/line"
)

// The test looks at every step of a run. It counts at the clients, not at the gate, how many of
// a process dial and how many begin to.
func TestTheGateOfEachProcessIsObeyed(t *testing.T) {
	const second = time.Second
	small := line.Options{Rate: 10, Burst: 2, Concurrent: 3}
	for name, h := range map[string]Herd{
		"refused":      {Outage: Outage{Length: 5 * second}},
		"restart":      {Server: Server{Queue: Drop, Backlog: 100}},
		"few at once":  {Outage: Outage{Length: 5 * second}, Gate: small},
		"no limits":    {Outage: Outage{Length: 5 * second}, Gate: line.Options{Rate: -1, Concurrent: -1}},
		"no answer":    {Outage: Outage{Length: 40 * second, Down: Silent}},
		"503":          {Outage: Outage{Length: 5 * second, Down: Unavailable}, Server: Server{Queue: Busy, Backlog: 10, RetryAfter: 3 * second}},
		"no room":      {Server: Server{Queue: Reject, Backlog: 10}},
		"dies twice":   {Outage: Outage{Length: 3 * second, Again: 4 * second}},
		"hangs, twice": {Outage: Outage{Length: 30 * second, Again: 4 * second, Down: Stopped}, Gate: small},
	} {
		t.Run(name, func(t *testing.T) {
			h.N, h.Processes, h.Server.Capacity, h.Seed, h.Watch = 500, 5, 100, 1, time.Hour
			want, err := Run(t.Context(), h)
			require.NoError(t, err)
			require.True(t, want.Recovered())
			h, err := h.withDefaults()
			require.NoError(t, err)
			w := watcher{t: t, run: newRun(h)}
			w.begin()
			for w.now < h.N || w.spells > 0 {
				w.step()
			}
			require.Equal(t, want, w.result())
		})
	}
}

// watcher is a run of which each step is looked at.
type watcher struct {
	t *testing.T
	*run
}

func (w watcher) step() {
	at, who, ok := w.events.pop()
	require.True(w.t, ok)
	if who < 0 && who > process(0) {
		w.other(at, who)
		return
	}
	line := -1 - int(who) - 2*maxServers
	if who >= 0 {
		line = w.gates.lineOf(who)
	}
	before := w.dialBins[at/int64(Bin)]
	under, kept := w.dialing(line)
	down := w.gates.lines[line].line.Status(clock(at)).Down
	if who < 0 {
		w.other(at, who)
	} else if c := &w.clients[who]; c.due == at {
		c.due = never
		w.run.step(c, who, at)
	}
	limit := w.Gate.Concurrent
	switch {
	case down:
		limit = 1
	case limit == 0:
		limit = 16
	case limit < 0:
		limit = w.N
	}
	begun := int(w.dialBins[at/int64(Bin)] - before)
	now, keptNow := w.dialing(line)
	left := max(keptNow-kept, 0) // gave their places back in this step
	require.True(w.t, begun == 0 || under-left+begun <= limit, "at %v %d of process %d dial and %d begin to; down: %v", time.Duration(at), under-left, line, begun, down)
	require.LessOrEqual(w.t, now, max(limit, under))
}

// dialing returns how many of a process dial, and how many handshakes it keeps beside
// those.
func (w watcher) dialing(line int) (n, kept int) {
	for who := int32(line); int(who) < w.N; who += int32(w.Processes) {
		keeps := w.keeps(who)
		for i, x := range w.clients[who].dials {
			switch {
			case x.state == free || x.state == inLine:
			case i == keeps:
				kept++
			default:
				n++
			}
		}
	}
	return n, kept
}

// keeps returns the dial that a client keeps because its handshake hangs, or -1: the one
// for which it has no ticket.
func (w watcher) keeps(who int32) int {
	c, s := &w.clients[who], &w.gates.seats[who]
	for i, x := range c.dials {
		if x.state != free && (s.ticket == nil || int(s.which) != i) {
			return i
		}
	}
	return -1
}

func TestAClientIsSmall(t *testing.T) {
	require.LessOrEqual(t, int(unsafe.Sizeof(client{})), 112)
}
