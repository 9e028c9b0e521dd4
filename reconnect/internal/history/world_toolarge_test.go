package history

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// A server sends too large a message in each session, until the faults are over.

// drawTooLarge draws when it begins, from a stream of its own.
func (p *Plan) drawTooLarge() {
	r := p.stream(31)
	if r.IntN(8) > 0 {
		return
	}
	p.Settings.TooLarge = true
	if p.Settings = p.Settings.possible(); !p.Settings.TooLarge {
		return
	}
	p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length/2), tooLarge.name})
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// tooLarge is the event.
var tooLarge = happening{"too large in each session", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.TooLarge || w.calmed.Load() {
		return
	}
	w.mu.Lock()
	w.exceeds = r
	w.mu.Unlock()
	for _, p := range w.peersNow() {
		w.exceed(p)
	}
}}

// readLimit returns Limits.ReadLimit, or 0 for the default. What else the server sends is smaller.
func (s Settings) readLimit() int {
	if s.ReadLimit == 0 && s.TooLarge {
		return 70_000
	}
	return s.ReadLimit
}

// exceed lets a peer send too large a message soon, if it sends one in each session.
func (w *world) exceed(to *peer) {
	w.mu.Lock()
	if w.exceeds == nil {
		w.mu.Unlock()
		return
	}
	after := upTo(w.exceeds, time.Second)
	size := w.set.readLimit() + 1 + w.exceeds.IntN(1000)
	w.mu.Unlock()
	to.work.Go(func() {
		if !to.sleep(after) || w.calmed.Load() {
			return
		}
		w.note(to.pipe, "wrong 1009")
		if to.say(strings.Repeat("x", size)) != nil { // it was being written, so the server reads no close frame
			w.note(to.pipe, "cut")
		}
	})
}

// tooLargeEnds counts the sessions in a row that a message above the limit has ended. The caller holds w.mu.
func (w *world) tooLargeEnds(e reconnect.SessionDone) {
	_, big := errors.AsType[*conn.TooBigError](e.Cause)
	switch {
	case !big || e.Planned:
		w.bigs = 0
	case e.Stable:
		w.bigs = 1
	default:
		w.bigs++
	}
}

// tooLargeIsSlow checks the wait after a message above the limit. The caller holds w.mu.
func (w *world) tooLargeIsSlow(e reconnect.WaitStart) {
	_, big := errors.AsType[*conn.TooBigError](e.Cause)
	if !big || w.bigs < 2 || w.rotated || w.loginWait || w.verdicts.beside {
		return
	}
	w.check(TooLargeIsSlow, e.Verdict.Class == backoff.ClassSlow && (e.Drawn >= 5*time.Second || w.acted),
		"%v and a wait of %v after session %d in a row with too large a message", e.Verdict.Class, e.Drawn, w.bigs)
}

// TooLargeIsSlow is the invariant that tooLargeIsSlow checks.
const TooLargeIsSlow Invariant = "9: a message above the limit is slow from the second in a row on"
