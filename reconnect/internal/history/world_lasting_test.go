package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Faults of a server that last until the faults are over, a frozen client process, and writes that are
// stuck during a rotation.

// drawLasting draws these events, from a stream of its own.
func (p *Plan) drawLasting() {
	r := p.stream(22)
	if r.IntN(3) > 0 {
		return
	}
	p.Settings.Lasts = true
	for range 1 + r.IntN(4) {
		at := 1 + upTo(r, p.Length)
		kind := lastingKinds[r.IntN(len(lastingKinds))]
		p.Events = append(p.Events, Event{len(p.Events), at, kind.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// lastingKinds are the events that drawLasting draws.
var lastingKinds = []happening{
	{"refuse for good", 0, func(w *world, r *rand.Rand, e Event) {
		w.network.Fault(address, w.dialFault(r))
	}},
	{"answer for good", 0, func(w *world, r *rand.Rand, e Event) {
		w.server.Next(w.answer(r))
	}},
	{"slow for good", 0, func(w *world, r *rand.Rand, e Event) {
		w.network.Fault(address, conntest.Fault{OnConn: func(p *conntest.Pipe) {
			w.note(p, "slow")
			p.Trickle(conntest.ToClient, 20+r.IntN(200), 100*time.Millisecond)
		}})
	}},
	{"each session reset", 0, func(w *world, r *rand.Rand, e Event) {
		n := 500 + r.Int64N(5000)
		w.network.Fault(address, conntest.Fault{OnConn: func(p *conntest.Pipe) {
			w.note(p, "each reset")
			p.CutReset(conntest.ToClient, n)
		}})
	}},
	{"frozen", 0, (*world).freeze},
	{"stuck rotation", 0, (*world).stuckRotation},
}

// freeze suspends the process of the client for a while. What arrives meanwhile waits in the buffer of
// its socket: pings and, at the end, perhaps a close frame and the end of the stream.
func (w *world) freeze(r *rand.Rand, _ Event) {
	p := w.pipe(r, "frozen")
	if p == nil || w.set.Framing != 0 || w.set.TLS || w.had(p, "window") {
		return
	}
	p.Stall(conntest.ToClient)
	for range 1 + r.IntN(50) {
		w.inject(p, conntest.Frame{Head: conntest.Fin | ping, Payload: []byte("hi")})
	}
	if r.IntN(2) == 0 {
		goingAway := []byte{1001 >> 8, 1001 & 255}
		w.inject(p, conntest.Frame{Head: conntest.Fin | 8, Payload: goingAway})
		p.FIN(conntest.ToClient)
	}
	time.Sleep(upTo(r, 10*time.Second))
	w.jump(0)
	w.thaw(p)
}

// stuckRotation replaces a session whose writes are stuck. The context of a write may end before the
// next session is ready, or after that.
func (w *world) stuckRotation(r *rand.Rand, e Event) {
	p := w.pipe(r, "window")
	if p == nil {
		return
	}
	p.Window(conntest.ToServer, r.IntN(2)*r.IntN(2000))
	limits := []time.Duration{time.Second, 10 * time.Second}
	for i := range 1 + r.IntN(3) {
		limit := 1 + upTo(r, limits[r.IntN(2)])
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		w.users.Go(func() { w.write(context.Background(), own, "x"+itoa(e.Index)+"."+itoa(i), limit) })
		time.Sleep(1 + upTo(r, 50*time.Microsecond))
	}
	w.sendSome(r, e, r.IntN(4))
	time.Sleep(upTo(r, 2*time.Second))
	w.rotate(r)
	time.Sleep(upTo(r, 8*time.Second))
	switch r.IntN(3) {
	case 0:
		p.Reset()
	case 1:
		if !w.calmed.Load() {
			p.Window(conntest.ToServer, -1)
		}
	}
}

// writtenInTime checks that a message of Write was written by no session that was ready only after the
// context had ended, at until. A slow hook may delay SessionReady until after the write. The caller holds w.mu.
func (w *world) writtenInTime(m *message, until time.Duration) {
	if m.came <= until {
		return
	}
	for _, n := range m.arrivals {
		s := w.of(n)
		w.check(CanceledWriteIsSilent, s.readyAt <= until || !s.ready,
			"%s was written by session %d, which was ready at %v, and its context had ended at %v",
			m.id, n, s.readyAt, until)
	}
}

// goodbyes checks, after a Shutdown without an error, that the peer of each session that was ready when
// Shutdown was called, or became ready after that, got a close frame. The caller holds w.mu.
func (w *world) goodbyes() {
	if w.set.Framing != 0 || w.exited {
		return
	}
	if limit := w.set.CloseTimeout; limit != 0 && limit <= 4*w.set.Lag+time.Second {
		return // a rotation may close a session without a close frame
	}
	if w.closing != w.shut || strings.HasPrefix(w.mayEnd, "Close in ") {
		return // a callback had called Close or Shutdown before
	}
	for _, s := range w.sessions {
		ready := s.ready && s.endedAt >= w.shut
		// A hook that blocks may keep a session that has lost its connection.
		ready = ready && (s.departedAt == 0 || s.departedAt >= w.shut)
		replaced := s.end == nil || s.end.planned || s.reason == backoff.ReasonSlowReader
		if !ready || replaced || s.pipe == nil || len(w.piped(s.pipe).faults) > 0 {
			continue
		}
		rec := w.piped(s.pipe)
		w.check(EachHasGoodbye, rec.closed > 0 || rec.stopped, // with another code than 1000 by Redial
			"session %d has ended with %v, and its peer has read the close code %d",
			s.number, s.reason, rec.closed)
	}
}

// The invariants that are checked here.
const (
	CanceledWriteIsSilent Invariant = "7: a Write whose context has ended is not written by a later session"
	EachHasGoodbye        Invariant = "11: Shutdown sends a close frame to each session that is ready"
)
