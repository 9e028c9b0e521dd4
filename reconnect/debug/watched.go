package debug

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

const (
	eventsKept   = 64
	sessionsKept = 32
)

// watched is a registered Conn and its recent past. Its hooks never block: hooks and readers hold mu
// for as long as a few copies take.
type watched struct {
	page     *Page
	id       uint64
	name     string
	endpoint string
	text     string // what a search looks at, in lower case
	conn     *reconnect.Conn
	o        ConnOptions
	stop     func() // ends the watch; set by Register

	mu        sync.Mutex // guards what follows
	events    ring[event]
	sessions  ring[session]
	newest    uint64        // the number of the newest session that was ready; 0: none was. Older ones are only read to their end
	away      int64         // since when no session is ready; 0: one is
	closed    int64         // when it ended; 0: it has not
	failed    bool          // it has ended by itself
	last      cause         // why the last dial failed or the last session ended
	roundTrip time.Duration // of the last probe that was answered; 0: none was
}

// watch begins to watch, and returns the status of the Conn at that moment.
func (w *watched) watch() reconnect.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = w.conn.Watch(&reconnect.Trace{
		GateStart: w.gateStart, GateDone: w.gateDone, DialStart: w.dialStart, DialHung: w.dialHung, DialDone: w.dialDone,
		AddressIgnored: w.addressIgnored, SessionStart: w.sessionStart, SessionReady: w.sessionReady, SessionDone: w.sessionDone,
		RotateStart: w.rotateStart, RotateDone: w.rotateDone, WaitStart: w.waitStart, WaitDone: w.waitDone, ConnDone: w.end,
		ProbeDone: w.probeDone, SlowHandler: w.slowHandler, Overdue: w.overdue,
	})
	status := w.conn.Status()
	since := status.Since.UnixNano()
	switch status.State {
	case reconnect.StateReady:
		w.newest = status.Session
		w.sessions.add(session{number: status.Session, start: since, ready: since}, sessionsKept)
	case reconnect.StateOpening:
		w.sessions.add(session{number: status.Session, start: since}, sessionsKept)
		w.away = since
	default:
		w.away = since
	}
	return status
}

// missed keeps why there was no session before the watch began, unless there is news already.
func (w *watched) missed(err error, at time.Time) {
	c := w.page.cause(err, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.at == 0 {
		w.last = c
		w.page.version.Add(1)
	}
}

// note keeps an event. The caller holds mu.
func (w *watched) note(e event) {
	w.events.add(e, eventsKept)
	w.page.version.Add(1)
}

// happened keeps an event that changes nothing else.
func (w *watched) happened(e event) {
	e.at = time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(e)
}

// failure keeps an event with its cause. If it counts as the last cause it is kept as that, too.
func (w *watched) failure(e event, err error, last bool) {
	now := time.Now()
	c := w.page.cause(err, now)
	e.at, e.reason, e.text, e.failed = now.UnixNano(), c.reason, c.text, err != nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.text == c.text { // which saves memory while an outage lasts
		e.text, c.text = w.last.text, w.last.text
	}
	if last {
		w.last = c
	}
	w.note(e)
}

func (w *watched) gateStart(reconnect.GateStart) { w.happened(event{kind: gateStart}) }

func (w *watched) gateDone(g reconnect.GateDone) {
	if g.Err != nil {
		w.failure(event{kind: gateFailed, took: g.Took}, g.Err, false)
		return
	}
	w.happened(event{kind: gateDone, took: g.Took})
}

func (w *watched) dialStart(d reconnect.DialStart) {
	w.happened(event{kind: dialStart, try: uint32(d.Try), took: d.Limit})
}

func (w *watched) dialHung(d reconnect.DialHung) {
	w.happened(event{kind: dialHung, try: uint32(d.Try), took: d.Since})
}

func (w *watched) dialDone(d reconnect.DialDone) {
	if d.Err != nil {
		w.failure(event{kind: dialFailed, try: uint32(d.Try), took: d.Took}, d.Err, true)
		return
	}
	w.happened(event{kind: dialDone, try: uint32(d.Try), took: d.Took})
}

func (w *watched) addressIgnored(a reconnect.AddressIgnored) {
	w.failure(event{kind: addressIgnored}, a.Err, false)
}

func (w *watched) sessionStart(s *reconnect.Session) {
	now := time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(s.Number, now)
	w.note(event{at: now, kind: sessionStart, session: s.Number, more: s.Downtime})
}

// begin returns the session with a number, which begins at now if it is not known yet. The
// caller holds mu.
func (w *watched) begin(n uint64, now int64) *session {
	for i := range w.sessions.items { // any of them, because many may have failed to replace this one
		if s := &w.sessions.items[i]; s.number == n {
			return s
		}
	}
	w.sessions.add(session{number: n, start: now}, sessionsKept)
	return w.sessions.newest(0)
}

func (w *watched) sessionReady(r *reconnect.Session) {
	now := time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.begin(r.Number, now); s.ready == 0 {
		s.ready = now
		if w.away != 0 {
			s.away = time.Duration(now - w.away)
		}
	}
	w.newest, w.away = max(w.newest, r.Number), 0
	w.note(event{at: now, kind: sessionReady, session: r.Number})
}

func (w *watched) sessionDone(d reconnect.SessionDone) {
	now := time.Now()
	c := w.page.causeOf(d.Cause, d.Reason, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.begin(d.Session, now.Add(-d.Uptime).UnixNano())
	s.end, s.reason = now.UnixNano(), c.reason
	s.planned = d.Planned || d.Reason == backoff.ReasonShutdown
	if s.ready == 0 && d.Ready > 0 {
		s.ready = now.Add(-d.Ready).UnixNano()
	}
	if d.Session == w.newest {
		w.away = s.end
	}
	w.last = c
	w.note(event{
		at: s.end, kind: sessionDone, session: d.Session, took: d.Uptime, more: d.Ready, reason: c.reason, text: c.text, failed: true,
	})
}

func (w *watched) rotateStart(r reconnect.RotateStart) {
	w.failure(event{kind: rotateStart, session: r.Session}, r.Cause, false)
}

func (w *watched) rotateDone(r reconnect.RotateDone) {
	if r.Err != nil {
		w.failure(event{kind: rotateFailed, session: r.Session, took: r.Took}, r.Err, false)
		return
	}
	w.happened(event{kind: rotateDone, session: r.Session, took: r.Took})
}

func (w *watched) waitStart(x reconnect.WaitStart) {
	w.happened(event{
		kind: wait, try: uint32(x.Try), took: x.Verdict.RetryAfter + x.Drawn, more: x.Verdict.RetryAfter, class: x.Verdict.Class,
	})
}

// waitDone keeps that a wait was cut short. That another one is over shows in what follows.
func (w *watched) waitDone(x reconnect.WaitDone) {
	if x.Kicked {
		w.happened(event{kind: kicked, try: uint32(x.Try), took: x.Took})
	}
}

// probeDone keeps the round trip. The answers in a row are one event, because a quiet
// connection has nothing else.
func (w *watched) probeDone(d reconnect.ProbeDone) {
	if errors.Is(d.Err, context.Canceled) {
		return // it says nothing about the peer
	}
	if d.Err != nil {
		w.failure(event{kind: probeFailed, session: d.Session, took: d.Took}, d.Err, false)
		return
	}
	e := event{at: time.Now().UnixNano(), kind: probeDone, session: d.Session, took: d.Took}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roundTrip = max(d.Took, 1)
	if last := w.events.newest(0); last != nil && last.kind == probeDone && last.session == d.Session {
		e.count = max(last.count, 1) + 1
		*last = e
		w.page.version.Add(1)
		return
	}
	w.note(e)
}

func (w *watched) slowHandler(h reconnect.SlowHandler) {
	w.happened(event{kind: slowHandler, session: h.Session, took: h.Since})
}

func (w *watched) overdue(o reconnect.Overdue) {
	w.happened(event{kind: overdue, text: o.What, took: o.Since})
}

// end keeps that nothing follows.
func (w *watched) end(e reconnect.ConnDone) {
	w.finish(e.Err)
	w.page.ended(w)
}

// finish keeps why the Conn has ended, once.
func (w *watched) finish(err error) {
	now := time.Now()
	end, byItself := errors.AsType[*reconnect.EndError](err)
	var c cause
	if byItself {
		c = w.page.cause(end.Err, now)
	} else {
		c = w.page.causeOf(net.ErrClosed, backoff.ReasonShutdown, now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != 0 {
		return
	}
	w.closed, w.failed = now.UnixNano(), byItself
	if byItself || w.last.at == 0 {
		w.last = c
	}
	w.note(event{at: w.closed, kind: ended, reason: c.reason, text: c.text, failed: byItself})
}

// endedAt returns when the Conn has ended.
func (w *watched) endedAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Unix(0, w.closed)
}

// trouble returns the trouble of the Conn, as of now, and the key that orders Conns with the same
// trouble.
func (w *watched) trouble(now time.Time) (trouble, int64) {
	state := w.conn.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.failed:
		return troubleEnded, -w.closed
	case w.closed != 0 || state == reconnect.StateClosed:
		return troubleClosed, -w.closed
	case state != reconnect.StateReady:
		if w.away == 0 { // it was lost in this moment
			return troubleAway, now.UnixNano()
		}
		return troubleAway, w.away
	}
	if lost := w.lost(now); lost >= flaps {
		return troubleFlapping, -int64(lost)
	}
	if w.last.at == 0 || w.last.reason == backoff.ReasonRotated {
		return troubleNone, 0
	}
	return troubleNone, -w.last.at
}

const (
	flaps      = 3
	flapWindow = 5 * time.Minute
)

// lost returns how many sessions were lost within flapWindow. The caller holds mu.
func (w *watched) lost(now time.Time) int {
	n, from := 0, now.Add(-flapWindow).UnixNano()
	for i := range w.sessions.items {
		if w.sessions.items[i].lostSince(from) {
			n++
		}
	}
	return n
}

// searched returns what a search looks at.
func searched(name, endpoint string) string {
	return strings.ToLower(name + "\n" + endpoint)
}
