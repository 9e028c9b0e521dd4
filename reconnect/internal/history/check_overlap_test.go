package history

import (
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// depart notes that the server no longer serves a session.
func (w *world) depart(session uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.peers, session)
	if s := w.sessions[session]; s != nil {
		s.departedAt = w.now()
	}
}

// endOthers closes all sessions except one that has just logged in, if the server allows only one.
func (w *world) endOthers(session uint64) {
	if !w.set.Single || w.calmed.Load() {
		return
	}
	for _, p := range w.peersNow() {
		if p.session == session || p.pipe == nil {
			continue
		}
		w.note(p.pipe, "close 4009")
		w.users.Go(func() { p.end(4009, "another session") })
		time.Sleep(time.Microsecond)
	}
}

// overlapIsWhole checks the seam of s if it says that s and next have overlapped: the reader has read
// what the server had written to s before next logged in, and the peer had not ended s before next was
// ready. The caller holds w.mu.
func (w *world) overlapIsWhole(seam *reconnect.Seam, s, next *session) {
	if !seam.Overlapped || next == nil || s.pipe == nil || next.pipe == nil || w.exited || w.closing > 0 {
		return
	}
	old, other := w.piped(s.pipe), w.piped(next.pipe)
	if len(old.faults) == 1 && w.endsSession(old.faults[0].kind) {
		at := old.faults[0].at
		w.check(OverlapIsWhole, next.readyAt <= at+w.set.Lag+time.Millisecond,
			"session %d was ended by the peer at %v, and %d was ready at %v: %+v",
			s.number, at, next.number, next.readyAt, seam)
	}
	if len(old.faults) > 0 || len(other.faults) > 0 || w.dropped > 0 {
		return
	}
	due := next.ahead[s.number]
	w.check(OverlapIsWhole, s.reached(due),
		"session %d: %d and %d of %+v were read, which came before session %d: %+v",
		s.number, s.next, s.burst.read, due, next.number, seam)
}

// endsSession reports whether a fault of a kind ends the session immediately.
func (w *world) endsSession(kind string) bool {
	switch kind {
	case "reset", "flap", "fin", "cut now", "kill":
		return true
	}
	return strings.HasPrefix(kind, "close ") && !w.set.Forms
}

// OverlapIsWhole is the invariant that overlapIsWhole checks.
const OverlapIsWhole Invariant = "5: of an overlapped session nothing is missing from before the next was ready"
