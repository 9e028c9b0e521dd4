package reconnect

import (
	"context"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// side is what a rotation means for a supervisor, which asks at each step of a session: alone,
// predecessor (of the session that is replaced) or successor (which makes the next session).
type side interface {
	describe(s *Session)                               // says why there is a new session, unless the Session knows
	opening(o *Opening)                                // says what the session replaces, and where its messages go
	ready(l *served) (marks bool, err error)           // publishes that l is ready, and reports whether its mark may come; errReplaced: there is no use for l
	receive(ctx context.Context, l *served) error      // reads l until the reader has all of the session before
	lost(l *served, why loss) (overlapped, dials bool) // whether another supervisor leads by now, and whether it dials at least
	failed(err error)                                  // a dial or a session has failed before it was ready
	mark(s *Seam)                                      // says in the seam what the two sessions have in common
	marks() *served                                    // the link whose mark may come after the seam; nil: none
	release()                                          // gives the reader what was held, after the seam
	inherits(v backoff.Verdict) bool                   // whether another supervisor goes on after a session that ended with v
	rests(resting bool)                                // the supervisor waits before its dial, and the server has not asked for that
	done(err error) bool                               // whether the Conn ends with the supervisor, which has ended because of err
}

// loss is how a session ended.
type loss struct {
	err    error
	reason backoff.Reason
	ready  bool // the session was ready
	unread bool // we ended it while nobody read it
}

// alone is the side of a supervisor that has no part in a rotation: there is none, or the rotation
// that has begun the supervisor is over.
type alone struct{ k *keeper }

func (alone) opening(*Opening)                            {}
func (alone) receive(context.Context, *served) error      { return nil }
func (alone) lost(*served, loss) (overlapped, dials bool) { return false, false }
func (alone) failed(error)                                {}
func (alone) mark(*Seam)                                  {}
func (alone) marks() *served                              { return nil }
func (alone) release()                                    {}
func (alone) inherits(backoff.Verdict) bool               { return false }
func (alone) rests(bool)                                  {}
func (alone) done(error) bool                             { return true }

func (a alone) describe(s *Session) {
	if a.k.origin == nil {
		return
	}
	if before := a.k.origin.before.Load(); before != nil {
		s.Downtime = time.Since(before.at)
		if s.Cause == nil {
			s.Cause = before.err
		}
	}
}

func (a alone) ready(l *served) (marks bool, err error) {
	a.k.c.sender.attach(&l.Link)
	a.k.c.state.ready(&a.k.seat, l)
	return true, nil
}

// side returns what a rotation means for k now. It changes when a rotation begins or ends, so
// that a step of the supervisor asks once.
func (k *keeper) side() side {
	if k.origin != nil {
		if r := k.origin.follows.Load(); r != nil {
			return successor{replacement: r}
		}
	}
	k.c.state.mu.Lock() // because a session that is lost gets no replacement after that: see enlist
	defer k.c.state.mu.Unlock()
	if r := k.c.replacement.Load(); r != nil && r.seat == &k.seat {
		return predecessor{alone{k}, r}
	}
	return alone{k}
}
