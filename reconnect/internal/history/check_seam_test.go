package history

import (
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// told is what a seam, and SessionDone, say of the end of a session.
type told struct {
	planned bool
	reason  backoff.Reason
}

// endIsOne compares what a seam and SessionDone say of an end. Either may come first. The caller holds w.mu.
func (w *world) endIsOne(s *session, now told) {
	if s.end != nil && w.closing == 0 { // else the reader may have closed the Conn at the seam
		w.check(EndIsOne, *s.end == now, "session %d: %+v and %+v", s.number, *s.end, now)
	}
	s.end = &now
}

// seamIsTrue checks what a seam of one session says. The caller holds w.mu.
func (w *world) seamIsTrue(seam *reconnect.Seam) {
	if seam.Lost != 1 || seam.Dropped > 0 {
		return
	}
	s := w.of(seam.Session)
	w.endIsOne(s, told{seam.Planned, seam.Reason})
	overlaps := reconnect.Overlap(w.set.Overlap) != reconnect.OverlapBreakFirst && !w.set.OneConnection
	next := w.sessions[seam.Session+1]
	for n := seam.Session + 2; next != nil && !next.ready && w.sessions[n] != nil; n++ {
		next = w.sessions[n]
	}
	// The reader may come between the step that makes a session ready and SessionReady, if the gate's function is
	// slow, or in the widened library.
	ready := next != nil && (next.ready || (w.acted || yield.Used()) && next.opened)
	w.check(OverlapIsTrue, !seam.Overlapped || overlaps && w.rotated && ready,
		"no session was ready beside %d: %+v", s.number, seam)
	w.overlapIsWhole(seam, s, next)
	rec := w.pipes[s.pipe]
	whole := s.pipe != nil && rec != nil && len(rec.faults) == 0 // else it may have broken while it was closed
	current := w.set.Reader == readPush && !w.acted && !w.held   // else the reader may be behind
	if seam.Reason == backoff.ReasonRotated && overlaps && whole && current && w.closing == 0 {
		w.check(OverlapIsTrue, seam.Overlapped, "session %d was closed because it was replaced, and its reader was not behind: %v, overlapped %t", s.number, seam, seam.Overlapped)
	}
}

// The invariants of these.
const (
	EndIsOne      Invariant = "5: a seam and SessionDone say the same of the end of a session"
	OverlapIsTrue Invariant = "5: a seam says truly whether the next session was ready before"
)
