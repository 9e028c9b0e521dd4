package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrSilent is the cause of the end of a session whose peer was silent for [LivenessOptions].Limit.
var ErrSilent error = &link.Ended{Text: "peer is silent", Why: backoff.ReasonSilent}

// errHungUp is the cause of the end of a session that the peer has ended while nobody read.
var errHungUp = fmt.Errorf("the peer hung up, and nobody has read what came before: %w", io.EOF)

// Liveness finds out that the peer of one link is dead. It is a timer, and the goroutine of its callback while
// that runs. Its silence decides when to probe the peer and when to cut the link. At most one callback probes at
// a time.
type Liveness struct {
	shared *Shared
	link   *link.Link // set by Start

	last     atomic.Int64 // when the last message came, if notes is set
	check    atomic.Int64 // when Check has asked for a probe, or 0 if it has not, or there was one
	began    atomic.Bool  // Start has returned
	notes    bool         // the connection is no conn.Transport
	canProbe bool         // there is a way to probe it

	timer   xsync.Timer             // calls tick
	probing atomic.Pointer[probing] // the probe under way, or nil

	// Owned by the callback.
	silence       silence      // its evidence: until Stop has returned
	pauseTurn     uint32       // the lowest bits of the link's turn at the last tick
	pausedSince   link.Instant // the tick since which the turn is the same
	pauseReported link.Instant // how long the pause was when it was last reported, or 0 if it was not
}

// Prepare says whose link it will watch, and reports whether Heard is to be called with each
// message.
func (w *Liveness) Prepare(s *Shared, c conn.Conn) (notes bool) {
	w.shared = s
	_, pings := c.(conn.Pinger)
	w.canProbe = pings || s.Liveness.Probe != nil
	_, transport := c.(conn.Transport)
	w.notes = w.canProbe && !transport
	return w.notes
}

// Start begins to watch l, which is ready, if there is a way to probe it.
func (w *Liveness) Start(l *link.Link) {
	w.link = l
	if w.canProbe {
		ready := link.Now() // the silence counts from here
		w.last.Store(int64(ready))
		wall := w.shared.Liveness.Now().UnixNano()
		if a := w.silence.start(ready, wall, link.Now(), w.limits()); a.kind == actWait {
			w.timer.Set(a.wait, w.tick)
		}
	}
	w.began.Store(true)
	if w.check.Load() != 0 { // Check has come before that
		w.timer.Set(0, w.tick)
	}
}

// limits returns the limits on the silence of the peer at this moment.
func (w *Liveness) limits() limits {
	o, doubled := w.shared.Liveness, w.shared.patience.Load()
	l := limits{
		configuredLimit: o.Limit, configuredProbeAfter: o.probeAfter(),
		patient: doubled > 0, answersUnseen: o.Probe != nil,
	}
	l.probeAfter = l.configuredProbeAfter << doubled
	if w.canProbe {
		l.probeEvery = o.ProbeEvery
	}
	return l
}

// Check asks for a probe now, or at Start if the link has become ready just now. While the probe of another
// Check is under way it waits for that, and asks for nothing if the peer is heard meanwhile.
func (w *Liveness) Check() {
	w.check.Store(int64(link.Now()))
	if !w.began.Load() {
		return // Start looks
	}
	if p := w.probing.Load(); p != nil && !p.soon {
		p.cancel(context.Canceled)
	}
	w.timer.Set(0, w.tick)
}

// Blocked begins to watch the reader of a full inbox, if the link is not watched anyway.
func (w *Liveness) Blocked() {
	if w.link != nil && w.shared.Liveness.Limit != 0 && !w.canProbe {
		w.timer.Set(w.limits().probeAfter, w.tick)
	}
}

// Stop ends the watch and waits for its callback. The link is cut already.
func (w *Liveness) Stop() {
	w.timer.Stop()
	if p := w.probing.Load(); p != nil {
		if p.cancel(context.Canceled); p.asks.Load() {
			StopTimer(w.shared.Report, &w.timer, "Probe")
		}
	}
	w.timer.Wait()
}

// Heard notes a message, for a connection that does not note bytes itself.
func (w *Liveness) Heard() {
	if w.notes {
		w.last.Store(int64(link.Now()))
	}
}

// Silence returns how long ago something was heard, 0 if that is not known. Any goroutine may
// call it.
func (w *Liveness) Silence() time.Duration {
	if !w.began.Load() {
		return 0
	}
	if w.notes {
		return link.Now() - link.Instant(w.last.Load())
	}
	if t := w.link.Transport; t != nil {
		return t.Silence()
	}
	return 0
}

// Silent reports whether the peer was probed, and has sent nothing for half of the limit. Any
// goroutine may call it.
func (w *Liveness) Silent() bool {
	if !w.began.Load() || !w.canProbe {
		return false
	}
	o := w.shared.Liveness
	return o.Limit != 0 && w.link.IsRead() && w.Silence() >= o.probeAfter()*3/2
}

// heard returns when the last byte came, or a moment before that.
func (w *Liveness) heard() link.Instant {
	if w.notes {
		return link.Instant(w.last.Load())
	}
	at := link.Now() // first, because Silence looks at the clock, too
	return at - w.link.Transport.Silence()
}

// hear returns the limits, once the silence knows what was heard last.
func (w *Liveness) hear() limits {
	l := w.limits()
	if !w.silence.paused && w.silence.hear(w.heard(), l) {
		w.shared.patience.Store(0)
		l = w.limits()
	}
	return l
}

// tick is the timer's callback: it looks, and does what the silence says.
func (w *Liveness) tick() {
	if w.link.Lost() || w.link.Life().Leaving.Load() { // Shutdown has a limit of its own
		return
	}
	check := link.Instant(w.check.Swap(0)) // before paused: a Check during its hooks is left for the next tick
	wall, at := w.shared.Liveness.Now().UnixNano(), link.Now()
	paused := w.paused(at)
	suspended := w.silence.wake(at, wall, paused, w.limits())
	switch {
	case (check != 0 || suspended) && addressGone(w.link.Transport):
		w.link.Cut(errAddressGone)
	case paused || w.canProbe:
		checked := check != 0 && !paused && w.heard() <= check // else it has been answered
		w.act(w.silence.look(link.Now(), checked, suspended, w.hear()))
	}
}

// act does what the silence says.
func (w *Liveness) act(a action) {
	if a.kind == actProbe {
		if !w.probe(a) {
			return
		}
		a = w.silence.next(link.Now(), w.hear())
	}
	switch a.kind {
	case actCut:
		w.link.Cut(ErrSilent)
	case actWait:
		w.timer.Set(a.wait, w.tick)
		if w.check.Load() != 0 { // Check may have set the timer to now just before
			w.timer.Set(0, w.tick)
		}
	}
}

// paused reports whether no goroutine reads at the time at. If a full inbox has not been read for long, it calls
// the hook for that.
func (w *Liveness) paused(at link.Instant) bool {
	turn := w.link.Turn()
	if turn.Does() != link.Blocked || uint32(turn) != w.pauseTurn {
		w.pauseTurn, w.pausedSince, w.pauseReported = uint32(turn), at, 0
		return !w.link.IsRead()
	}
	if since, limit := at-w.pausedSince, w.shared.Liveness.Limit; limit != 0 && since >= limit {
		if since >= 2*w.pauseReported {
			w.pauseReported = since
			w.shared.Time("Trace.Overdue", w.link, func() { w.shared.Report.Overdue("reader", since) })
		}
		if t := w.link.Transport; t != nil && t.HungUp() {
			w.link.Cut(errHungUp)
		}
	}
	return true
}

// patience is how often the limit on silence is doubled, because that many sessions in a row were
// probed and have ended as silent: perhaps their peer was alive, and its answers come late.
type patience uint8

// mostPatience is 8 times the first limit.
const mostPatience patience = 3

// MostLimit is the largest limit on silence that can be doubled so often.
const MostLimit = time.Duration(math.MaxInt64 >> mostPatience)

// ended returns the patience after a session that was ready. A session that has ended otherwise
// than as silent ends the row, unless it has lived by patience.
func (p patience) ended(e evidence) patience {
	switch {
	case e&(probedOnce|endedSilent) == probedOnce|endedSilent:
		return min(p+1, mostPatience)
	case e&outlastedLimit != 0:
		return p
	}
	return 0
}

// Ended notes that the session, which was ready, has ended because of err. It is called after
// Stop.
func (w *Liveness) Ended(err error) {
	if errors.Is(err, ErrSilent) {
		w.silence.evidence |= endedSilent
	}
	if w.shared.Liveness.Limit != 0 {
		p := patience(w.shared.patience.Load())
		w.shared.patience.Store(uint32(p.ended(w.silence.evidence)))
	}
}
