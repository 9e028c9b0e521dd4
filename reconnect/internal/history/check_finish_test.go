package history

import (
	"context"
	"runtime"
	"slices"

	"github.com/redial-go/redial/reconnect"
)

// goexit returns what ends the goroutine of a callback.
func (w *world) goexit(name string) func(context.Context) {
	return func(context.Context) {
		w.allowEnd("Goexit")
		w.mu.Lock()
		w.exited = true
		w.exits = append(w.exits, what(name))
		w.mu.Unlock()
		runtime.Goexit()
	}
}

// finish checks what can be known only when all is over.
func (w *world) finish() {
	w.above.finish()
	stats := w.conn.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, ctx := range w.contexts {
		w.check(ContextEnds, ctx.Err() != nil, "that of %s", name)
	}
	for _, pair := range [][2]string{
		{"dial start", "dial done"}, {"gate start", "gate done"}, {"wait start", "wait done"}, {"session start", "session done"},
		{"rotate start", "rotate done"}, {"probe start", "probe done"},
	} {
		w.check(EventsPaired, w.ended[pair[0]] == w.ended[pair[1]] || w.exited, "%d times %s, %d times %s", w.ended[pair[0]], pair[0], w.ended[pair[1]], pair[1])
	}
	w.check(EventsPaired, w.ended["conn done"] == 1 && w.ended["layer end"] == 1, "ends: %v", w.ended)
	if w.set.Reader == readPush && w.closedReady {
		w.check(SilentAfterClose, true, "") // onMessage and handedOver check each message that comes all the same
	}
	w.finishBroken()
	w.finishMessages(stats)
	w.finishSeams()
	w.statsAsTold(stats)
	w.finishGate()
	w.finishHandovers()
	w.finishQueues()
}

// finishMessages checks the fate of each message.
func (w *world) finishMessages(stats reconnect.Stats) {
	var dropped, unknown, counted uint64 // counted: accepted by Send without OnReceipt
	for id, m := range w.messages {
		if m.refused {
			dropped++
			w.check(DroppedNeverArrives, len(m.arrivals) == 0 && !m.begun, "%s was refused, and came", id)
			continue
		}
		if w.set.NoReceipts && m.out.Tag != nil {
			counted++
			w.check(OneFate, len(m.fates) == 0, "%s: %v", id, m.fates)
		} else if w.check(OneFate, len(m.fates) == 1, "%s: %v", id, m.fates); len(m.fates) == 0 {
			continue
		} else if m.fates[0] == reconnect.FateDropped {
			dropped++
			w.check(DroppedNeverArrives, len(m.arrivals) == 0 && !m.begun, "%s was dropped, and came", id)
		} else if m.fates[0] == reconnect.FateUnknown {
			unknown++
		}
		w.check(NotTwice, len(m.arrivals) <= 1 || m.out.Repeatable, "%s came by %v", id, m.arrivals)
		w.check(NotTwice, len(slices.Compact(slices.Sorted(slices.Values(m.arrivals)))) == len(m.arrivals), "%s came by %v", id, m.arrivals)
	}
	for _, r := range w.unsent {
		m := r.Outgoing.Tag.(*message)
		known := len(m.fates) == 1 && m.fates[0] == r.Fate || w.set.NoReceipts
		w.check(UnsentIsComplete, known && r.Err != nil, "%s: %v, and its receipt is %v", m.id, r.Fate, m.fates)
	}
	more := int64(stats.Dropped+stats.Unknown) - int64(dropped+unknown) // of those that are counted only
	exact := w.set.Above == aboveNothing                                // what is above the Conn writes, too
	w.check(StatsAreTrue, stats.Dropped >= dropped && stats.Unknown >= unknown && (!exact || more <= int64(counted)),
		"dropped %d, unknown %d; recorded %d, %d, and %d counted only",
		stats.Dropped, stats.Unknown, dropped, unknown, counted)
	w.check(StatsAreTrue, w.exited || int(stats.Dials) == w.ended["dial start"] && stats.Sessions == w.started && stats.Queued == 0, "%+v; recorded %v", stats, w.ended)
}

// finishSeams checks that each session has its seam.
func (w *world) finishSeams() {
	w.result.Seconds = w.now().Seconds()
	if w.exited {
		return
	}
	least, most := w.seamsDue(0, w.started)
	switch {
	case w.set.Reader == readPush:
		w.check(OneSeam, least <= w.lost && w.lost <= most, "%d seams, and %d to %d are due", w.lost, least, most)
	case w.set.InboxOverflow != 3:
		w.check(OneSeam, w.lost <= most, "%d seams, and %d are due", w.lost, most)
	}
}
