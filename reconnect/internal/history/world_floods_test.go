package history

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// A peer pings without a pause while a Shutdown, a Close or a rotation begins. This is no fault, so all other checks
// of the session apply.

// drawFloods draws such floods, from a stream of its own.
func (p *Plan) drawFloods() {
	r := p.stream(27)
	if r.IntN(4) > 0 {
		return
	}
	p.Settings.Floods = true
	for range r.IntN(3) {
		at := 1 + upTo(r, p.Length)
		p.Events = append(p.Events, Event{len(p.Events), at, floodAndRotate.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// floodAndRotate is an event: a session is replaced while its peer pings.
var floodAndRotate = happening{"flood and rotate", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.Floods || w.calmed.Load() || !w.awaitReady(r) {
		return
	}
	w.beginFlood(r)
	w.rotate(r)
}}

// floodEnd lets the history end while the peer pings, if the plan has floods.
func (w *world) floodEnd() {
	if w.set.Floods && !w.hasEnded() {
		w.beginFlood(w.plan.stream(28))
	}
}

// beginFlood lets the peer of the current session send pings and pongs for some seconds. It returns up to 1 s after
// the first.
func (w *world) beginFlood(r *rand.Rand) {
	if w.set.Framing != 0 || w.set.TLS || w.set.Apart {
		return
	}
	n := w.conn.Status().Session
	w.mu.Lock()
	to := w.peers[n]
	w.mu.Unlock()
	if to == nil || w.had(to.pipe, "window") {
		return
	}
	own := rand.New(rand.NewPCG(r.Uint64(), n))
	w.users.Go(func() { w.floodFrom(to, own) })
	time.Sleep(upTo(r, time.Second))
}

// floodFrom sends control frames until the connection ends, for 4 s at most, and counts what has begun meanwhile. It
// holds the turn of the peer, so that no frame is put into a message.
func (w *world) floodFrom(to *peer, r *rand.Rand) {
	from, size, every := w.now(), r.IntN(126), time.Millisecond+upTo(r, 30*time.Millisecond)
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.floodMet("Shutdown", from, w.shut)
		w.floodMet("Close", from, w.closedAt)
		w.floodMet("a rotation", from, w.rotations...)
	}()
	for w.now() < from+4*time.Second {
		for range 1 + r.IntN(50) {
			select {
			case to.turn <- struct{}{}:
			case <-to.ctx.Done():
				return
			}
			frame := conntest.Frame{Head: conntest.Fin | byte(ping+r.IntN(2)), Payload: make([]byte, size)}
			_, err := to.pipe.Server().Write(frame.Bytes())
			<-to.turn
			if err != nil {
				return
			}
		}
		time.Sleep(every + upTo(r, time.Millisecond))
	}
}

// floodMet counts a flood that has begun at from and ends now, if one of some calls came meanwhile. The caller holds
// w.mu.
func (w *world) floodMet(call string, from time.Duration, calls ...time.Duration) {
	if slices.ContainsFunc(calls, func(at time.Duration) bool { return at >= from && at > 0 }) {
		w.result.Events["(flood meets "+call+")"]++
	}
}
