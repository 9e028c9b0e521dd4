package history

import (
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// stableAfter returns the setting, or its default.
func (w *world) stableAfter() time.Duration {
	if w.set.StableAfter == 0 {
		return 10 * time.Second
	}
	return w.set.StableAfter
}

// earned checks whether a session may let the waits begin again. The caller holds w.mu.
func (w *world) earned(e reconnect.SessionDone) {
	beside := len(w.pushes) > 0 || w.ended["dial hung"] > 0 || w.loginWait // a wait beside a dial is not announced, and that for a login is none of the policy
	if w.rotated {
		return
	}
	switch {
	case beside:
	case e.Stable:
		w.check(StableIsEarned, e.Ready >= w.stableAfter() && e.Ready >= w.waited, "session %d was stable after %v, and the wait before it was %v", e.Session, e.Ready, w.waited)
	default:
		w.check(StableIsEarned, e.Ready < max(w.stableAfter(), w.announced) || e.Reason == backoff.ReasonProtocol || e.Ready == 0,
			"session %d was not stable after %v, and the wait before it was %v", e.Session, e.Ready, w.announced)
	}
	if e.Ready >= min(schedule.BriefSession, w.stableAfter()) && e.Reason != backoff.ReasonProtocol {
		w.unearned = 0
	}
}

// waitGrows checks that a wait is at least as long as the policy with the equal jitter says after so many dials and sessions in
// a row that have earned nothing. The caller holds w.mu.
func (w *world) waitGrows(e reconnect.WaitStart) {
	if e.Cause == nil || w.rotated {
		return
	}
	w.announced = e.Verdict.RetryAfter + e.Drawn + w.now() - w.failedAt // the hook of the failure may have taken long
	w.unearned++
	if w.set.Policy != 2 || len(w.pushes) > 0 || w.acted || w.ended["dial hung"] > 0 || e.Verdict.Class == backoff.ClassRefresh {
		return
	}
	least := min(500*time.Millisecond<<min(w.unearned-1, 10), 8*time.Second) / 2
	w.check(WaitGrows, e.Drawn >= least, "wait %d of a row is %v, and %v is the least", w.unearned, e.Drawn, least)
}

// writtenInOrder checks a receipt of a message that was written. The caller holds w.mu.
func (w *world) writtenInOrder(m *message, got reconnect.Receipt) {
	if got.Fate != reconnect.FateWritten || m.order <= 0 || m.out.Repeatable || m.out.Session != 0 {
		return
	}
	w.check(WrittenInOrder, m.order > w.lastWritten && !got.Began.Before(w.lastBegan), "%s (%d) was written at %v, after %d at %v", m.id, m.order, got.Began.Sub(w.start), w.lastWritten, w.lastBegan.Sub(w.start))
	w.lastWritten, w.lastBegan = m.order, got.Began
}
