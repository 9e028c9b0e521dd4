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

// checkLimit is how long the peer has for the answer to a Check, and after a suspension if there is no limit.
const checkLimit = 5 * time.Second

// errHungUp is the cause of the end of a session that the peer has ended while nobody read.
var errHungUp = fmt.Errorf("the peer hung up, and nobody has read what came before: %w", io.EOF)

// Liveness finds out that the peer of one link is dead. It is a timer, and the goroutine of
// its callback while that runs. A third of the limit after the last byte it probes, after two
// thirds again, and at the limit it cuts the link. At most one callback probes at a time.
type Liveness struct {
	shared *Shared
	link   *link.Link // set by Start

	last  atomic.Int64 // when the last message came, if notes is set
	check atomic.Int64 // when Check has asked for a probe; 0: it has not, or there was one
	began atomic.Bool  // Start has returned
	notes bool         // the connection is no conn.Transport
	asks  bool         // there is a way to probe it

	lesson lesson // what the session has shown; owned by the callback until Stop has returned
	probes int8   // since something was last heard; owned by the callback, as is the next one
	asked  uint32 // when the oldest Probe without an answer began, in ms, if lesson has lessonAsked
	seen   uint32 // the lowest bits of the link's turn at the last tick

	timer   xsync.Timer             // calls tick
	probing atomic.Pointer[probing] // the probe under way; nil: none is

	// Owned by the callback.
	from     link.Instant // silence counts from here at the earliest
	probed   link.Instant // when the last probe began: what is heard after that is an answer
	counted  link.Instant // when the last probe that probes counts asked the peer; later if the process was stopped since
	deadline link.Instant // when to cut the link at the latest; 0: only the limit counts
	half     link.Instant // the middle of the time for which the timer was set
	mono     link.Instant // the clocks at the last tick
	wall     int64        // in ns
	since    link.Instant // the tick since which nobody has read
	reported link.Instant // how long that was when it was last reported; 0: it was not
}

// Prepare says whose link it will watch, and reports whether Heard is to be called with each
// message.
func (w *Liveness) Prepare(s *Shared, c conn.Conn) (notes bool) {
	w.shared = s
	_, pings := c.(conn.Pinger)
	w.asks = pings || s.Liveness.Probe != nil
	_, transport := c.(conn.Transport)
	w.notes = w.asks && !transport
	return w.notes
}

// Start begins to watch l, which is ready, if there is a way to probe it.
func (w *Liveness) Start(l *link.Link) {
	w.link = l
	if w.asks { // the silence counts from here
		w.Heard()
		w.mono = link.Now()
		w.from, w.probed, w.half = w.mono, w.mono, w.mono
		w.wall = w.shared.Liveness.Now().UnixNano()
		switch {
		case w.learns():
			w.set(0)
		case w.watches():
			w.set(w.third())
		}
	}
	w.began.Store(true)
	if w.check.Load() != 0 { // Check has come before that
		w.timer.Set(0, w.tick)
	}
}

// watches reports whether the peer is probed without a Check.
func (w *Liveness) watches() bool {
	return w.shared.Liveness.Limit != 0 || w.shared.Liveness.ProbeEvery != 0
}

// awaits reports whether an answer is awaited.
func (w *Liveness) awaits() bool { return w.probes > 0 || w.deadline != 0 }

// set sets the timer to after d, or to when a probe is due anyway. While an answer is awaited it
// is set to a pulse at most.
func (w *Liveness) set(d time.Duration) {
	if every := w.shared.Liveness.ProbeEvery; every != 0 && w.asks {
		d = min(d, w.probed+every-link.Now())
	}
	if w.awaits() {
		d = min(d, pulse(w.third()))
	}
	if o := w.shared.Liveness; o.Probe != nil && o.Limit != 0 { // silence finds the answer
		d = min(d, o.third())
	}
	d = max(d, 0)
	w.half = link.Now() + d/2
	w.timer.Set(d, w.tick)
	if w.check.Load() != 0 { // Check may have set the timer to now just before
		w.timer.Set(0, w.tick)
	}
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
	if w.link != nil && w.shared.Liveness.Limit != 0 && !w.asks {
		w.timer.Set(w.third(), w.tick)
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
	if !w.began.Load() || !w.asks {
		return false
	}
	o := w.shared.Liveness
	return o.Limit != 0 && w.link.IsRead() && w.Silence() >= o.third()*3/2
}

// third is the time after which a silent peer is probed, and a limit on each probe.
func (w *Liveness) third() time.Duration {
	return w.shared.Liveness.third() << w.shared.patience.Load()
}

// heard returns when the last byte came, or a moment before that.
func (w *Liveness) heard() link.Instant {
	if w.notes {
		return link.Instant(w.last.Load())
	}
	at := link.Now() // first, because Silence looks at the clock, too
	return at - w.link.Transport.Silence()
}

// silence returns how long the peer has sent nothing while the link was read. If something has
// come since the last probe began, that has been answered.
func (w *Liveness) silence() time.Duration {
	at := link.Now()
	heard := w.heard()
	if heard >= w.probed {
		w.probes, w.deadline = 0, 0
	}
	if w.lesson&lessonAsked != 0 && heard > w.probed {
		w.answered(time.Duration(uint32(heard.Milliseconds())-w.asked) * time.Millisecond)
	}
	silence := at - max(heard, w.from)
	if limit := w.shared.Liveness.Limit; limit != 0 && silence >= limit {
		w.lesson |= lessonPatient
	}
	return silence
}

// tick is the timer's callback: it looks, probes, cuts the link or sets the timer again.
func (w *Liveness) tick() {
	if w.link.Lost() || w.link.Life().Leaving.Load() { // Shutdown has a limit of its own
		return
	}
	asked := link.Instant(w.check.Swap(0)) // before paused, so that a Check during its hooks is left for the next tick
	suspended, paused := w.woke(), w.paused()
	checked := asked != 0
	switch {
	case (checked || suspended) && addressGone(w.link.Transport):
		w.link.Cut(errAddressGone)
	case paused:
		w.rest()
	case w.asks:
		w.judge(checked && w.heard() <= asked, suspended)
	}
}

// hook calls a hook of Trace. If the hook ends its goroutine the link is cut, because nobody would watch it.
func (w *Liveness) hook(name string, call func()) {
	xsync.Guard(func() { w.shared.Time(name, w.link, call) },
		func() { w.link.Cut(fmt.Errorf("%s: %w", name, xsync.ErrNotReturned)) })
}

// woke notes the time. It reports whether the machine was suspended since the last tick: then the
// wall clock has gone further than the monotonic one, which stands still on most systems. The
// time for which the process was stopped does not count for a probe.
func (w *Liveness) woke() (suspended bool) {
	wall, mono := w.shared.Liveness.Now().UnixNano(), link.Now()
	ahead := time.Duration(wall-w.wall) - (mono - w.mono)
	w.wall, w.mono = wall, mono
	if w.awaits() {
		w.excuse(stopped(mono-w.half, pulse(w.third())))
	}
	return ahead > 2*time.Second
}

// excuse gives the peer more time for its answer, because the process was stopped.
func (w *Liveness) excuse(stopped time.Duration) {
	w.counted += stopped
	if w.deadline != 0 {
		w.deadline += stopped
	}
}

// rest is a tick while nobody reads. There is no verdict.
func (w *Liveness) rest() {
	w.from, w.probes, w.deadline = w.mono, 0, 0
	if w.asks && w.every() { // the server wants it whoever reads
		if _, ok := w.probe(0, w.third(), false); !ok {
			return
		}
	}
	next := w.third()
	if w.learns() { // as soon as somebody reads
		next = pulse(w.shared.Liveness.third())
	}
	if w.watches() {
		w.set(next)
	}
}

// every reports whether a probe is due because of ProbeEvery.
func (w *Liveness) every() bool {
	every := w.shared.Liveness.ProbeEvery
	return every != 0 && w.mono-w.probed >= every
}

// judge is a tick while the link is read.
func (w *Liveness) judge(checked, suspended bool) {
	silence := w.silence() // first, because an answer may change the limit
	third, limited := w.third(), w.shared.Liveness.Limit != 0
	// The timer may be late, by as much as the process or the page was stopped. So a verdict
	// needs a third of the limit after each probe, too, and not the silence alone.
	answerable := w.probes == 0 || w.mono-w.counted >= third
	due := limited && silence >= third*time.Duration(w.probes+1) && answerable
	switch {
	case silence >= third*3 && w.probes >= 2 && answerable, w.deadline != 0 && w.mono >= w.deadline:
		w.link.Cut(ErrSilent)
		return
	case suspended || checked || due || w.every() || w.learns():
		limit := third
		switch {
		case checked && limited:
			limit = min(w.shared.Liveness.third(), checkLimit)
		case checked || suspended && !limited:
			limit = checkLimit
		}
		if !w.ask(silence, limit, due, suspended || checked) {
			return
		}
		silence = w.silence()
		third = w.third()
	}
	if w.watches() || w.deadline != 0 { // else until the next Check
		w.next(silence, third)
	}
}

// next sets the timer to when there is something to do again.
func (w *Liveness) next(silence, third time.Duration) {
	next := third
	if w.shared.Liveness.Limit != 0 {
		next = third*time.Duration(w.probes+1) - silence
	}
	if w.probes > 0 {
		next = max(next, w.counted+third-link.Now())
	}
	if w.deadline != 0 {
		next = min(next, w.deadline-link.Now())
	}
	w.set(next)
}

// ask probes the peer, and counts the probe if it was due. It reports false if the link was lost. must is as in probe.
func (w *Liveness) ask(silence, limit time.Duration, due, must bool) bool {
	if due {
		w.probes = min(w.probes+1, math.MaxInt8-1)
	}
	count := w.probes
	asked, ok := w.probe(silence, limit, must)
	if due && w.probes == count { // it was written, and not answered
		w.counted = asked
	}
	return ok
}

// paused reports whether no goroutine reads. If a full inbox has not been read for long, it calls the hook for that.
func (w *Liveness) paused() bool {
	turn := w.link.Turn()
	if turn.Does() != link.Blocked || uint32(turn) != w.seen {
		w.seen, w.since, w.reported = uint32(turn), w.mono, 0
		return !w.link.IsRead()
	}
	if since, limit := w.mono-w.since, w.shared.Liveness.Limit; limit != 0 && since >= limit {
		if since >= 2*w.reported {
			w.reported = since
			w.hook("Trace.Overdue", func() { w.shared.Report.Overdue("reader", since) })
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

// lesson is what one session has shown about the answers of its peer.
type lesson uint8

const (
	lessonProbed  lesson = 1 << iota // the session was probed
	lessonPatient                    // the session was silent for longer than the first limit
	lessonSilent                     // the session has ended as silent
	lessonAsked                      // Liveness.Probe has asked, and nothing has come since
)

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

// learns reports whether the session is to be probed, whatever has come from the peer, to find out
// whether the patience is still needed.
func (w *Liveness) learns() bool {
	return w.lesson&lessonProbed == 0 && w.shared.patience.Load() > 0
}

// answered learns from the answer to a probe, which came after took.
func (w *Liveness) answered(took time.Duration) {
	w.lesson &^= lessonAsked
	if p := patience(w.shared.patience.Load()); p > 0 {
		w.shared.patience.Store(uint32(p.answered(took, w.shared.Liveness.Limit)))
	}
}

// Ended learns from the end of the session, which was ready, because of err. It is called after
// Stop.
func (w *Liveness) Ended(err error) {
	if errors.Is(err, ErrSilent) {
		w.lesson |= lessonSilent
	}
	if w.shared.Liveness.Limit != 0 {
		p := patience(w.shared.patience.Load())
		w.shared.patience.Store(uint32(p.ended(w.lesson)))
	}
}
