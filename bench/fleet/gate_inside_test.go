package fleet

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// Every step of a run is looked at: how many of a process dial, and how many begin
// to, is counted at the clients, not at the line.
func TestTheGateOfEachProcessIsObeyed(t *testing.T) {
	const second = time.Second
	small := budget.LineOptions{Rate: 10, Burst: 2, Concurrent: 3}
	for name, h := range map[string]Herd{
		"refused":      {Outage: Outage{Length: 5 * second}},
		"restart":      {Server: Server{Queue: Drop, Backlog: 100}},
		"few at once":  {Outage: Outage{Length: 5 * second}, Gate: small},
		"no limits":    {Outage: Outage{Length: 5 * second}, Gate: budget.LineOptions{Rate: -1, Concurrent: -1}},
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
			w.die(0)
			if h.Outage.Again > 0 {
				w.deaths = 1
				w.agenda.push(int64(h.Outage.Length+h.Outage.Again), theServer)
			}
			for w.up < h.N || w.deaths > 0 {
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
	at, who, ok := w.agenda.pop()
	require.True(w.t, ok)
	if who == theServer {
		w.other(at, who)
		return
	}
	var door int
	if who < 0 {
		door, _ = w.gates.rung(who, at)
	} else {
		door = w.gates.door(who)
	}
	before := w.dialBins[at/int64(Bin)]
	under, down := w.dialling(door), w.gates.doors[door].line.Status(clock(at)).Down
	if who < 0 {
		w.other(at, who)
	} else if c := &w.clients[who]; c.due == at {
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
	require.True(w.t, begun == 0 || under+begun <= limit, "at %v %d of process %d dial and %d begin to; down: %v", time.Duration(at), under, door, begun, down)
	require.LessOrEqual(w.t, w.dialling(door), max(limit, under))
}

// dialling returns how many of a process dial.
func (w watcher) dialling(door int) (n int) {
	for i := range w.clients {
		if w.gates.door(int32(i)) != door {
			continue
		}
		switch w.clients[i].state {
		case unanswered, queued, doomed, turningAway:
			n++
		}
	}
	return n
}

func TestAClientIsSmall(t *testing.T) {
	require.LessOrEqual(t, int(unsafe.Sizeof(client{})), 32)
}
