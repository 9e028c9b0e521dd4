package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// tornBatch is an event: a batch of messages is under way by a narrow window when the connection is reset. The peer has the first of them,
// and a part of the next.
var tornBatch = happening{"torn batch", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.Torn || w.calmed.Load() {
		return
	}
	w.oneByOne("narrow", func(p *conntest.Pipe) { p.Window(conntest.ToServer, 1000) })
	for i, size := range []int{10_000, 1, 10_000, 1} { // the others wait while the first is written
		m := w.newMessage(r, fmt.Sprintf("t%d.%d", e.Index, i))
		w.mu.Lock()
		m.size = size
		m.out.Message = conn.TextMessage(m.id + " " + strings.Repeat("x", size))
		w.mu.Unlock()
		w.sendMessage(r, m, 0)
		if w.set.Apart { // one alone is over before the next
			time.Sleep(50 * w.set.Lag)
		}
	}
	time.Sleep(11*w.set.Lag + upTo(r, 8*w.set.Lag)) // in each Lag the bytes of one window arrive
	w.oneByOne("torn", (*conntest.Pipe).Reset)
}}

// drawTorn draws torn batches, from a stream of its own.
func (p *Plan) drawTorn() {
	r := p.stream(13)
	if p.Settings.Lag == 0 || p.Settings.NoReceipts || r.IntN(2) > 0 {
		return
	}
	p.Settings.Torn = true
	for range 1 + r.IntN(4) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), tornBatch.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}
