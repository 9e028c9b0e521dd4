package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// What has a limit ends by then: a write that is stuck, a message that never ends, a close handshake that is not
// answered, and the overlap of two sessions. And a policy whose waits are 0.

// drawLimits draws these, from a stream of its own.
func (p *Plan) drawLimits() {
	r := p.stream(32)
	p.Settings.Eager = r.IntN(8) == 0
	if r.IntN(4) == 0 {
		p.Settings.Limits = true
		p.Settings.MessageTimeout = 2*time.Second + upTo(r, 6*time.Second)
		for range 1 + r.IntN(3) {
			at := 1 + upTo(r, max(p.Length-15*time.Second, p.Length/3)) // so that it ends while faults last
			kind := limitKinds[r.IntN(len(limitKinds))]
			p.Events = append(p.Events, Event{len(p.Events), at, kind.name})
		}
	}
	p.Settings = p.Settings.possible()
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// limitKinds are the events that drawLimits draws.
var limitKinds = []happening{
	{"stuck write", 0, (*world).stickWrite},
	{"endless message", 0, (*world).sendEndless},
	{"redial a stalled peer", 0, (*world).redialStalled},
}

// eager is a policy that never waits for more than a moment.
type eager struct{}

func (eager) Next(_ backoff.History, r *rand.Rand) (backoff.Step, bool) {
	wait := max(0, upTo(r, 10*time.Millisecond)-5*time.Millisecond)
	return backoff.Step{Wait: wait, Connect: backoff.DefaultConnect, Handshake: backoff.DefaultHandshake}, true
}

// shortWaits checks that an outage has ten waits of less than 10 ms at most. The caller holds w.mu.
func (w *world) shortWaits(e reconnect.WaitStart) {
	pushed := len(w.pushes) > 0 && w.pushes[len(w.pushes)-1] >= w.waitFrom
	if w.rotated || pushed || w.acted || w.blocked || w.loginWait || e.Verdict.Class == backoff.ClassRefresh {
		return
	}
	if w.unearned > 10 && w.ended["dial hung"] == 0 {
		w.check(TenShortWaits, e.Drawn >= 10*time.Millisecond, "wait %d of a row is %v", w.unearned, e.Drawn)
	}
}

// refreshesSoon checks the wait after credentials that were refused for the first time. The caller holds w.mu.
func (w *world) refreshesSoon(e reconnect.WaitStart) {
	if e.Verdict.Class == backoff.ClassRefresh && !w.rotated && !w.loginWait {
		w.check(RefreshIsSoon, e.Drawn < schedule.RefreshSpread, "a wait of %v after %v", e.Drawn, e.Cause)
	}
}

// drainEnds checks that the connection of a session is closed when Drain is over, and the close handshake. The session
// that replaces it is ready now, if session next does. The caller holds w.mu.
func (w *world) drainEnds(next uint64) {
	old := w.sessions[w.replaced]
	if !w.rotating() || next <= w.replaced || old == nil || old.pipe == nil || w.conn == nil {
		return
	}
	drain := w.set.Drain
	if w.set.ShortDrain > 0 {
		drain = w.set.ShortDrain
	}
	if drain == 0 {
		drain = 5 * time.Second
	}
	at := w.now()
	w.users.Go(func() {
		w.pause(drain + time.Second + time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.acted || w.blocked {
			return
		}
		w.check(DrainIsKept, !old.pipe.Live(),
			"session %d was replaced at %v, and its connection is open", old.number, at)
	})
}

// limited waits for a session whose connection has had no fault, and returns its peer, or nil. It notes a fault.
func (w *world) limited(r *rand.Rand, kind string) (*session, *peer) {
	if w.set.Apart || !w.awaitReady(r) {
		return nil, nil
	}
	n := w.conn.Status().Session
	w.mu.Lock()
	to := w.peers[n]
	w.mu.Unlock()
	if to == nil || !to.pipe.Live() {
		return nil, nil
	}
	w.note(to.pipe, kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.piped(to.pipe).faults) > 1 || w.rotating() {
		return nil, nil
	}
	return w.of(n), to
}

// endsWithin checks that s is lost within a limit from now on, if nothing else happens to its connection.
func (w *world) endsWithin(i Invariant, s *session, limit time.Duration) {
	from := w.now()
	w.pause(limit + 4*w.set.Lag + time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.lostAt >= 0 {
		w.check(i, true, "")
		return
	}
	if w.closedOrMay() || w.acted || w.blocked || len(w.piped(s.pipe).faults) > 1 || !w.readsFrom(from) {
		return
	}
	if w.set.Above == aboveBridge { // whose reader may be away while it fetches
		return
	}
	w.check(i, false, "session %d lives on, and the limit of %v has begun at %v", s.number, limit, from)
}

// stickWrite closes the window of a connection and writes a message.
func (w *world) stickWrite(r *rand.Rand, e Event) {
	s, to := w.limited(r, "window")
	if s == nil || w.set.Pace > 0 {
		return
	}
	to.pipe.Window(conntest.ToServer, 0)
	limit := w.set.WriteTimeout
	if limit == 0 {
		limit = 10 * time.Second
	}
	own := rand.New(rand.NewPCG(r.Uint64(), 0))
	w.users.Go(func() {
		err := w.write(context.Background(), own, fmt.Sprint("k", e.Index), time.Minute)
		if errors.Is(err, conn.ErrBadMessage) {
			w.note(to.pipe, "no stuck write") // nothing was written
		}
	})
	w.endsWithin(StuckWriteEnds, s, limit)
}

// sendEndless sends the beginning of a message, and nothing behind it.
func (w *world) sendEndless(r *rand.Rand, _ Event) {
	if w.set.Framing != 0 || w.set.TLS {
		return
	}
	s, to := w.limited(r, "endless")
	if s == nil {
		return
	}
	frame := conntest.Frame{
		Head:    conntest.Fin | conntest.TextFrame,
		Length:  20_000, // more than all pongs, which become a part of it
		Payload: make([]byte, r.IntN(100)),
	}
	begun := make(chan struct{})
	w.users.Go(func() {
		select {
		case to.turn <- struct{}{}: // until the connection ends
			close(begun)
			to.pipe.Server().Write(frame.Bytes())
			<-to.ctx.Done()
			to.pipe.Server().Close() // else what is said next would be a part of the message
			<-to.turn
		case <-to.ctx.Done():
		}
	})
	select {
	case <-begun:
		w.endsWithin(EndlessMessageEnds, s, w.set.MessageTimeout)
	case <-to.ctx.Done():
	}
}

// redialStalled ends a session whose peer does not answer the close frame.
func (w *world) redialStalled(r *rand.Rand, _ Event) {
	s, to := w.limited(r, "stall")
	if s == nil {
		return
	}
	to.pipe.Stall(conntest.Both)
	w.redial()
	limit := time.Second
	if w.set.CloseTimeout != 0 {
		limit = min(limit, max(w.set.CloseTimeout, 0))
	}
	w.pause(limit + time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(CloseIsBounded, !to.pipe.Live(),
		"session %d was to end, and its connection is open after %v", s.number, limit)
}

// The invariants that are checked here.
const (
	TenShortWaits      Invariant = "3: an outage has ten waits of less than 10 ms at most"
	RefreshIsSoon      Invariant = "9: refused credentials are renewed within a second"
	DrainIsKept        Invariant = "5: the connection of a replaced session is closed within a second of Drain"
	StuckWriteEnds     Invariant = "8: a session whose write is stuck ends after WriteTimeout"
	EndlessMessageEnds Invariant = "8: a session ends when a message has not ended within MessageTimeout"
	CloseIsBounded     Invariant = "10: a connection is closed when its peer has not answered within CloseTimeout"
)
