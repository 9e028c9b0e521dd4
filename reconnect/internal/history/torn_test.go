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

// tornBatch is an event: a batch of messages is under way when the connection is reset. The peer has the first of them, and a part of
// a large one.
var tornBatch = happening{"torn batch", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.Torn || w.calmed.Load() {
		return
	}
	for i, size := range []int{1, 1, 100_000, 1} { // the first is written alone
		m := w.newMessage(r, fmt.Sprintf("t%d.%d", e.Index, i))
		w.mu.Lock()
		m.size = size
		m.out.Message = conn.TextMessage(m.id + " " + strings.Repeat("x", size))
		w.mu.Unlock()
		w.sendMessage(r, m, 0)
		if w.set.Apart {
			time.Sleep(time.Microsecond)
		}
	}
	time.Sleep(w.set.Lag + upTo(r, w.set.Lag)) // the first part has come, and the client does not know it
	w.oneByOne("torn batch", (*conntest.Pipe).Reset)
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
