package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// Options and methods that few programs use.

// drawWide draws them, from a stream of their own.
func (p *Plan) drawWide() {
	r := p.stream(16)
	s := &p.Settings
	s.Allowed, s.Expected, s.AwaitsReceipts, s.HoldsMark = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(3) == 0
	*s = s.possible()
	for range r.IntN(3) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), awaitSession.name})
	}
	s.FetchesStop = s.Above == aboveBridge && r.IntN(3) == 0
	s.TurnsOpenly = s.Above == aboveBridge && r.IntN(2) == 0
	s.Unlimited = r.IntN(6) == 0
	*s = s.possible()
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// wide adds the options.
func (w *world) wide(o *reconnect.Options) {
	if w.set.Allowed {
		o.Rotate.Allowed = func(time.Time) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.now()/(700*time.Millisecond)%3 > 0 {
				return false
			}
			w.allowedAt = w.now()
			return true
		}
	}
	if w.set.Expected {
		o.Stall.Expected = func(time.Time) bool { return w.now()/(20*time.Second)%2 == 0 }
	}
}

// awaitSession is an event.
var awaitSession = happening{"await session", 0, func(w *world, r *rand.Rand, e Event) {
	limit := 1 + upTo(r, 10*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	at := w.now()
	n, err := w.conn.AwaitSession(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	fails := reconnect.WhenDown(w.set.WhenDown) == reconnect.WhenDownFail
	switch took := w.now() - at; {
	case err == nil:
		w.check(SessionIsReady, w.of(n).opened && n <= w.started, "session %d of %d", n, w.started)
	case errors.Is(err, reconnect.ErrNotReady):
		w.check(SessionIsReady, fails && (took == 0 || w.rotated), "%v after %v", err, took) // with OverlapBreakFirst messages wait for Drain, whatever WhenDown says
	case errors.Is(err, context.DeadlineExceeded):
		w.check(SessionIsReady, (!fails || w.rotated) && took == limit, "%v after %v of %v", err, took, limit)
	default:
		w.check(SessionIsReady, w.closing > 0 || w.mayEnd != "", "%v", err)
	}
}}

// prepared does what OnSession does with the messages and marks of a session, when all else is done.
func (w *world) prepared(r *rand.Rand, o *reconnect.Opening) error {
	if w.set.HoldsMark {
		release, after := o.HoldRefetch(), upTo(r, 3*time.Second)
		w.mu.Lock()
		w.markHeld[o.Session] = true
		w.mu.Unlock()
		w.users.Go(func() {
			time.Sleep(after)
			w.mu.Lock()
			delete(w.markHeld, o.Session)
			w.mu.Unlock()
			release()
			release()
		})
	}
	if !w.set.AwaitsReceipts {
		return nil
	}
	if err := o.AwaitReceipts(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.messages {
		before := slices.ContainsFunc(m.arrivals, func(n uint64) bool { return n < o.Session && w.of(n).done })
		if m.accepted && !m.out.Repeatable && before {
			w.check(ReceiptsAreThere, len(m.fates) == 1, "%s came by %v, and session %d has no receipt", id, m.arrivals, o.Session)
		}
	}
	return nil
}

// markCame checks that the present session has its mark, if all that may hold it is over: no hold lasts longer than 3 s, and the reader has
// read all since.
func (w *world) markCame() {
	n := w.conn.Status().Session
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sessions[n]; s != nil && w.set.MarkRefetch && s.ready && w.now()-s.readyAt > 30*time.Second {
		w.check(MarkIsHeld, w.marks[n] == 1, "session %d has %d marks, and is ready since %v", n, w.marks[n], s.readyAt)
	}
}

// The invariants of these.
const (
	SessionIsReady     Invariant = "12: AwaitSession returns a session that is ready, or why there is none"
	ReceiptsAreThere   Invariant = "6: after AwaitReceipts each message that an earlier session has brought has its receipt"
	MarkIsHeld         Invariant = "5: a mark that is held comes when it is released"
	RotatesWhenAllowed Invariant = "a session is replaced when Allowed says so, or at 0.99 of its age"
)
