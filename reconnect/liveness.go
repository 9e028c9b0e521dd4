package reconnect

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrSilent is the cause of the end of a session whose peer was silent for [Liveness.Limit].
var ErrSilent error = &reasonError{"peer is silent", backoff.ReasonSilent}

// checkLimit is how long the peer has for the answer to a Check.
const checkLimit = 5 * time.Second

// errAddressGone is the cause of the end of a session whose local address this machine has
// lost.
var errAddressGone error = &reasonError{"the local address of the connection is gone", backoff.ReasonLocal}

// errHungUp is the cause of the end of a session that the peer has ended while nobody read.
var errHungUp = fmt.Errorf("the peer hung up, and nobody has read what came before: %w", io.EOF)

// liveness finds out that the peer of one link is dead. It is a timer, and the goroutine of
// its callback while that runs. A third of the limit after the last byte it probes, after two
// thirds again, and at the limit it cuts the link. At most one callback probes at a time.
type liveness struct {
	life *lifetime // set when l is dialed
	link *link

	last  atomic.Int64 // when the last message came, if notes is set
	check atomic.Bool  // Check asks for a probe
	began atomic.Bool  // start has been called
	notes bool         // the connection is no conn.Idler
	asks  bool         // there is a way to probe it

	lesson lesson // what the session has shown; owned by the callback until stop has returned
	probes int8   // since something was last heard; owned by the callback, as is the next one
	asked  uint32 // when the oldest Probe without an answer began, if lesson has lessonAsked: see milliseconds

	timer   xsync.Timer             // calls tick
	probing atomic.Pointer[probing] // the probe under way; nil: none is

	// Owned by the callback.
	from     instant // silence counts from here at the earliest
	probed   instant // when the last probe began: what is heard after that is an answer
	counted  instant // when the last probe that probes counts asked the peer; later if the process was stopped since
	deadline instant // when to cut the link at the latest; 0: only the limit counts
	half     instant // the middle of the time for which the timer was set
	mono     instant // the clocks at the last tick
	wall     int64   // in ns
	since    instant // the tick since which nobody has read
	reported instant // how long that was when it was last reported; 0: it was not
}

// start begins to watch l, if there is a way to probe it.
func (w *liveness) start(l *link) {
	defer w.began.Store(true)
	w.link = l
	_, pings := l.conn.(conn.Pinger)
	w.asks = pings || w.life.o.Liveness.Probe != nil
	if !w.asks {
		return
	}
	if _, ok := l.conn.(conn.Idler); !ok {
		w.notes = true
		w.heard()
	}
	w.mono = now()
	w.from, w.probed, w.half = w.mono, w.mono, w.mono
	w.wall = w.life.o.Liveness.now().UnixNano()
	switch {
	case w.learns():
		w.set(0)
	case w.watches():
		w.set(w.third())
	}
}

// watches reports whether the peer is probed without a Check.
func (w *liveness) watches() bool { return w.limited() || w.life.o.Liveness.Every > 0 }

// awaits reports whether an answer is awaited.
func (w *liveness) awaits() bool { return w.probes > 0 || w.deadline != 0 }

// set sets the timer to after d, or to when a probe is due anyway. While an answer is awaited it
// is set to a pulse at most.
func (w *liveness) set(d time.Duration) {
	if every := w.life.o.Liveness.Every; every > 0 && w.asks {
		d = min(d, w.probed+every-now())
	}
	if w.awaits() {
		d = min(d, pulse(w.third()))
	}
	if w.life.o.Liveness.Probe != nil && w.limited() { // silence finds the answer
		d = min(d, w.firstThird())
	}
	d = max(d, 0)
	w.half = now() + d/2
	w.timer.Set(d, w.tick)
	if w.check.Load() { // Check may have set the timer to now just before
		w.timer.Set(0, w.tick)
	}
}

// look asks for a probe now, unless the link has become ready just now.
func (w *liveness) look() {
	if !w.began.Load() {
		return
	}
	w.check.Store(true)
	if p := w.probing.Load(); p != nil && !p.soon {
		p.cancel(context.Canceled)
	}
	w.timer.Set(0, w.tick)
}

// blocked begins to watch the reader of a full inbox, if the link is not watched anyway.
func (w *liveness) blocked() {
	if w.link != nil && w.life.o.Liveness.Limit > 0 && !w.asks {
		w.timer.Set(w.third(), w.tick)
	}
}

// stop ends the watch and waits for its callback. The link is cut already.
func (w *liveness) stop() {
	w.timer.Stop()
	if p := w.probing.Load(); p != nil {
		p.cancel(context.Canceled)
		w.life.waitForTimer(&w.timer, "Probe")
	}
	w.timer.Wait()
}

// heard notes a message, for a connection that does not note bytes itself.
func (w *liveness) heard() {
	if w.notes {
		w.last.Store(int64(now()))
	}
}

// heardAgo returns how long ago something was heard, 0 if that is not known. Any goroutine may
// call it.
func (w *liveness) heardAgo() time.Duration {
	if !w.began.Load() {
		return 0
	}
	if w.notes {
		return now() - instant(w.last.Load())
	}
	if i, ok := w.link.conn.(conn.Idler); ok {
		return i.Idle()
	}
	return 0
}

// silent reports whether the peer was probed, and has sent nothing for half of the limit. Any
// goroutine may call it.
func (w *liveness) silent() bool {
	return w.began.Load() && w.asks && w.limited() && !w.link.paused() && w.heardAgo() >= w.third()*3/2
}

// third is the time after which a silent peer is probed, and a limit on each probe.
func (w *liveness) third() time.Duration {
	if w.limited() {
		return w.patience().stretch(w.firstThird())
	}
	return w.firstThird()
}

// firstThird is third without patience.
func (w *liveness) firstThird() time.Duration {
	switch {
	case w.limited():
		return max(w.life.o.Liveness.Limit/3, 1)
	case w.watches():
		return w.life.o.Liveness.Every
	}
	return checkLimit
}

// limited reports whether a silent peer is cut off.
func (w *liveness) limited() bool { return w.life.o.Liveness.Limit > 0 }

// silence returns how long the peer has sent nothing while the link was read. If something has
// come since the last probe began, that has been answered.
func (w *liveness) silence() time.Duration {
	at := now()
	idle := at - instant(w.last.Load())
	if !w.notes {
		idle = w.link.conn.(conn.Idler).Idle()
	}
	heard := at - idle // or a moment later, because Idle looks at the clock after now
	if heard >= w.probed {
		w.probes, w.deadline = 0, 0
	}
	if w.lesson&lessonAsked != 0 && heard > w.probed {
		w.answered(time.Duration(milliseconds(heard)-w.asked) * time.Millisecond)
	}
	silence := min(idle, at-w.from)
	if w.limited() && silence >= w.life.o.Liveness.Limit {
		w.lesson |= lessonPatient
	}
	return silence
}

// tick is the timer's callback: it looks, probes, cuts the link or sets the timer again.
func (w *liveness) tick() {
	if w.life.leaving.Load() { // Shutdown has a limit of its own
		return
	}
	suspended, paused, checked := w.woke(), w.paused(), w.check.Swap(false)
	switch {
	case (checked || suspended) && addressGone(w.link.conn):
		w.link.cut(errAddressGone)
	case paused:
		w.rest()
	case w.asks:
		w.judge(checked, suspended)
	}
}

// woke notes the time. It reports whether the machine was suspended since the last tick: then the
// wall clock has gone further than the monotonic one, which stands still on most systems. The
// time for which the process was stopped does not count for a probe.
func (w *liveness) woke() (suspended bool) {
	wall, mono := w.life.o.Liveness.now().UnixNano(), now()
	ahead := time.Duration(wall-w.wall) - (mono - w.mono)
	w.wall, w.mono = wall, mono
	if w.awaits() {
		w.excuse(stopped(mono-w.half, pulse(w.third())))
	}
	return ahead > 2*time.Second
}

// excuse gives the peer more time for its answer, because the process was stopped.
func (w *liveness) excuse(stopped time.Duration) {
	w.counted += stopped
	if w.deadline != 0 {
		w.deadline += stopped
	}
}

// rest is a tick while nobody reads. There is no verdict.
func (w *liveness) rest() {
	w.from, w.probes, w.deadline = w.mono, 0, 0
	if w.asks && w.every() { // the server wants it whoever reads
		if _, ok := w.probe(0, w.third()); !ok {
			return
		}
	}
	if w.watches() {
		w.set(w.third())
	}
}

// every reports whether a probe is due because of Every.
func (w *liveness) every() bool {
	every := w.life.o.Liveness.Every
	return every > 0 && w.mono-w.probed >= every
}

// judge is a tick while the link is read.
func (w *liveness) judge(checked, suspended bool) {
	silence := w.silence() // first, because an answer may change the limit
	third := w.third()
	// The timer may be late, by as much as the process or the page was stopped. So a verdict
	// needs a third of the limit after each probe, too, and not the silence alone.
	answerable := w.probes == 0 || w.mono-w.counted >= third
	due := silence >= third*time.Duration(w.probes+1) && answerable
	switch {
	case silence >= third*3 && w.probes >= 2 && answerable && w.limited(), w.deadline != 0 && w.mono >= w.deadline:
		w.link.cut(ErrSilent)
		return
	case suspended || checked || due || w.every() || w.learns():
		limit := third
		if checked {
			limit = min(w.firstThird(), checkLimit)
		}
		if deadline := w.mono + limit; (suspended || checked) && (w.deadline == 0 || deadline < w.deadline) {
			w.deadline = deadline
		}
		if !w.ask(silence, limit, due) {
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
func (w *liveness) next(silence, third time.Duration) {
	next := third*time.Duration(w.probes+1) - silence
	if w.probes > 0 {
		next = max(next, w.counted+third-now())
	}
	if w.deadline != 0 {
		next = min(next, w.deadline-now())
	}
	w.set(next)
}

// ask probes the peer, and counts that if it was due. It reports false if the link was lost.
func (w *liveness) ask(silence, limit time.Duration, due bool) bool {
	if due {
		w.probes = min(w.probes+1, math.MaxInt8-1)
	}
	count := w.probes
	asked, ok := w.probe(silence, limit)
	if due && w.probes == count { // it was written, and not answered
		w.counted = asked
	}
	return ok
}

// Check asks whether the ready session is alive, now. Call it when the network of the machine
// has changed: see package netwatch. If the machine has lost the local address of the connection,
// the connection is cut at once. Otherwise the peer is probed, and the connection is cut, with
// [ErrSilent], if nothing comes from it within 5 s or a third of Liveness.Limit, whichever is
// less. If the peer is alive nothing happens. There is no verdict while the application does
// not read. Check returns at once, and does nothing while no session is ready.
func (c *Conn) Check() {
	if l := c.sender.ready(); l != nil && !c.life.leaving.Load() {
		l.liveness.look()
	}
}

// addressGone reports whether c is bound to an IP address that this machine does not have any
// more.
func addressGone(c conn.Conn) bool {
	a, ok := c.(conn.Addresser)
	if !ok {
		return false
	}
	local, ok := a.LocalAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false // then nobody knows
	}
	return !slices.ContainsFunc(addresses, func(at net.Addr) bool {
		n, ok := at.(*net.IPNet)
		return ok && (n.IP.Equal(local.IP) || n.IP.IsLoopback() && local.IP.IsLoopback())
	})
}

// paused reports whether nobody reads, and calls the hooks for that.
func (w *liveness) paused() bool {
	turn := w.link.turn.Load()
	if turn&turnMask == reading || uint32(turn) != w.link.seen {
		w.link.seen, w.since, w.reported = uint32(turn), w.mono, 0
		return turn&turnMask != reading
	}
	since, trace := w.mono-w.since, w.life.trace()
	switch {
	case turn&turnMask == handling:
		if w.reported == 0 {
			w.reported = since
			call(trace.SlowHandler, SlowHandler{Name: w.life.o.Name, Session: w.link.session, Since: since})
		}
	case w.limited() && since >= w.life.o.Liveness.Limit:
		if since >= 2*w.reported {
			w.reported = since
			call(trace.Overdue, Overdue{Name: w.life.o.Name, What: "reader", Since: since})
		}
		if h, ok := w.link.conn.(conn.HangupDetector); ok && h.HungUp() {
			w.link.cut(errHungUp)
		}
	}
	return true
}
