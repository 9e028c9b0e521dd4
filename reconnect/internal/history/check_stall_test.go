package history

import "time"

// stallIsStated checks the end of a session that brought no message for so long, or that should have ended before. The caller holds w.mu.
func (w *world) stallIsStated(s *session, stalled bool) {
	limit := w.set.Stall
	if !s.ready || limit == 0 || w.set.Reader != readPush {
		w.check(StallIsStated, !stalled || limit > 0 && s.ready, "session %d ends as stalled", s.number)
		return
	}
	silent := w.now() - max(s.readyAt, s.heard)
	most := limit << min(w.stalls, 5)
	if s.heard > 0 {
		w.stalls = 0
	}
	if stalled {
		w.stalls++
		w.check(StallIsStated, silent >= limit || w.rotated || w.held, "session %d ends as stalled after %v", s.number, silent) // else messages were held for a while
	}
	if !w.rotated && !w.held && !w.acted && !w.set.Expected && w.set.Above == aboveNothing && !w.set.ProbeByMessage { // else time was spent elsewhere, or other messages came
		w.check(StallIsStated, silent <= most+time.Second, "session %d lives for %v without a message, and the limit is %v", s.number, silent, most)
	}
}

// sayNothing lets the server say nothing until one session has stalled, and the next one has not, if there is a limit.
func (w *world) sayNothing() {
	if w.set.Stall == 0 || w.set.Above != aboveNothing {
		return
	}
	silence := w.set.Stall * 5 / 2
	w.mu.Lock()
	w.silentUntil = w.now() + silence
	w.mu.Unlock()
	w.pause(silence + 10*time.Second)
}

// StallIsStated is the invariant of Stall.
const StallIsStated Invariant = "8: a session without messages ends after Stall.Limit, and not before"
