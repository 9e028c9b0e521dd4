package watch

import (
	"errors"
	"math"
	"time"
)

// patience is how often the limit on silence is doubled, because so many sessions in a row were
// probed and have ended as silent: perhaps their peer was alive, and its answers come late.
type patience uint8

// mostPatience is 8 times the first limit.
const mostPatience patience = 3

// MostLimit is the largest limit on silence that can be doubled so often.
const MostLimit = time.Duration(math.MaxInt64 >> mostPatience)

// lesson is what one session has shown about the answers of its peer.
type lesson uint8

const (
	lessonProbed  lesson = 1 << iota // the session was probed
	lessonPatient                    // the session was silent for longer than the first limit
	lessonSilent                     // the session has ended as silent
	lessonAsked                      // Liveness.Probe has asked, and nothing has come since
)

// stretch returns d, which is for the first limit, for the limit as it is.
func (p patience) stretch(d time.Duration) time.Duration { return d << p }

// answered returns the patience after a probe that was answered after took: none if that was
// within two thirds of the first limit.
func (p patience) answered(took, first time.Duration) patience {
	if took <= first/3*2 {
		return 0
	}
	return p
}

// ended returns the patience after a session that was ready. A session that has ended otherwise
// than as silent ends the row, unless it has lived by patience.
func (p patience) ended(l lesson) patience {
	switch {
	case l&(lessonProbed|lessonSilent) == lessonProbed|lessonSilent:
		return min(p+1, mostPatience)
	case l&lessonPatient != 0:
		return p
	}
	return 0
}

// patience returns that of the Conn.
func (w *Liveness) patience() patience { return patience(w.shared.patience.Load()) }

// learns reports whether the session is to be probed, whatever has come from the peer, to find out
// whether the patience is still needed.
func (w *Liveness) learns() bool {
	return w.limited() && w.lesson&lessonProbed == 0 && w.patience() > 0
}

// answered learns from the answer to a probe, which came after took.
func (w *Liveness) answered(took time.Duration) {
	w.lesson &^= lessonAsked
	if p := w.patience(); p > 0 {
		w.shared.patience.Store(uint32(p.answered(took, w.shared.Liveness.Limit)))
	}
}

// Ended learns from the end of the session, which was ready, because of err. It is called after
// Stop.
func (w *Liveness) Ended(err error) {
	if errors.Is(err, ErrSilent) {
		w.lesson |= lessonSilent
	}
	if w.limited() {
		w.shared.patience.Store(uint32(w.patience().ended(w.lesson)))
	}
}
