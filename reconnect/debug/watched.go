package debug

import (
	"context"
	"errors"
	"net"
	"slices"
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
	server   string // the host and the port of the endpoint
	conn     *reconnect.Conn
	o        ConnOptions
	stop     func()    // ends the watch; set by Register
	forget   time.Time // when the Page forgets a Conn that has ended; guarded by mu of the Page

	mu        sync.Mutex // guards what follows
	events    []event
	sessions  []sessionInfo
	dropped   bool          // there were more
	newest    uint64        // number of the newest session that was ready, or 0
	away      int64         // since when no session is ready, or 0
	closed    int64         // when it ended, or 0
	failed    bool          // it has ended by itself
	last      *causeInfo    // why the last dial failed or session was lost, except in rotations, or nil
	before    *causeInfo    // last until a rotation closed the session first
	roundTrip time.Duration // of the last probe that was answered, or 0
	failing   *rotationInfo // dials that failed since a rotation began or a session was ready, or nil
}

// push appends an item to a list of the newest items. If there are limit of them the oldest is dropped.
func push[T any](list []T, item T, limit int) []T {
	if len(list) == limit {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, item)
}

// watch begins to watch, and returns the status of the Conn at that moment.
func (w *watched) watch() reconnect.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = w.conn.Watch(w.hooks())
	status := w.conn.Status()
	s := sessionInfo{Session: status.Session, Start: status.Since, Live: true}
	w.away = status.Since.UnixNano()
	switch status.State {
	case reconnect.StateReady:
		w.newest, s.ready, w.away = status.Session, w.away, 0
		w.sessions = append(w.sessions, s)
	case reconnect.StateOpening:
		w.sessions = append(w.sessions, s)
	}
	return status
}

func (w *watched) hooks() *reconnect.Trace {
	return &reconnect.Trace{
		GateStart: func(reconnect.GateStart) { w.happened(event{kind: gateStart}) },
		GateDone:  func(e reconnect.GateDone) { w.done(gateDone, gateFailed, event{took: e.Took}, e.Err) },
		DialStart: func(e reconnect.DialStart) { w.happened(event{kind: dialStart, try: uint32(e.Try), took: e.Limit}) },
		DialHung:  func(e reconnect.DialHung) { w.happened(event{kind: dialHung, try: uint32(e.Try), took: e.Since}) },
		DialDone: func(e reconnect.DialDone) {
			w.done(dialDone, dialFailed, event{try: uint32(e.Try), took: e.Took}, e.Err)
		},
		AddressIgnored: func(e reconnect.AddressIgnored) { w.done(addressIgnored, addressIgnored, event{}, e.Err) },
		SessionStart:   w.sessionStart,
		SessionReady:   w.sessionReady,
		SessionDone:    w.sessionDone,
		RotateStart:    w.rotateStart,
		RotateDone: func(e reconnect.RotateDone) {
			w.done(rotateDone, rotateFailed, event{session: e.Session, took: e.Took}, e.Err)
		},
		WaitStart: w.waitStart,
		WaitDone: func(e reconnect.WaitDone) {
			if e.Kicked { // the end of another wait shows in the events that follow
				w.happened(event{kind: kicked, try: uint32(e.Try), took: e.Took})
			}
		},
		ProbeDone: func(e reconnect.ProbeDone) {
			if !errors.Is(e.Err, context.Canceled) { // which says nothing about the peer
				w.done(probeDone, probeFailed, event{session: e.Session, took: e.Took}, e.Err)
			}
		},
		SlowHandler: func(e reconnect.SlowHandler) {
			w.happened(event{kind: slowHandler, session: e.Session, cause: &causeInfo{Text: e.What}, took: e.Since})
		},
		Overdue: func(e reconnect.Overdue) {
			w.happened(event{kind: overdue, cause: &causeInfo{Text: e.What}, took: e.Since})
		},
		ConnDone: w.end,
	}
}

// missed keeps why there was no session before the watch began, unless there is news already.
func (w *watched) missed(err error, at time.Time) {
	c := causeOf(err, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = c
	}
}

// note keeps an event. The answers to probes in a row are one event, because a quiet connection has no
// other events. The caller must hold mu.
func (w *watched) note(e event) {
	if e.kind == probeDone {
		w.roundTrip = max(e.took, 1)
		if i := len(w.events) - 1; i >= 0 {
			if last := &w.events[i]; last.kind.name == e.kind.name && last.session == e.session {
				e.kind, e.count = probesDone, max(last.count, 1)+1
				*last = e
				return
			}
		}
	}
	w.events = push(w.events, e, eventsKept)
}

// happened keeps an event that has no cause.
func (w *watched) happened(e event) { w.done(e.kind, nil, e, nil) }

// done keeps an event of the kind ok, or failed with its cause if err is not nil.
func (w *watched) done(ok, failed *kind, e event, err error) {
	now := time.Now()
	e.at, e.kind = now.UnixNano(), ok
	c := causeOf(err, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		e.kind, e.cause = failed, c
		if w.last != nil && w.last.Text == c.Text {
			c.Text = w.last.Text // which saves memory while an outage lasts
		}
		if (failed == dialFailed || failed == waitLogin) && w.away != 0 { // not for a rotation
			w.last = c
		}
	}
	w.note(e)
}

func (w *watched) rotateStart(e reconnect.RotateStart) {
	w.done(rotateStart, rotateStart, event{session: e.Session}, e.Cause)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = nil
}

func (w *watched) waitStart(e reconnect.WaitStart) {
	x := event{
		kind: waitStart, try: uint32(e.Try), took: e.Verdict.RetryAfter + e.Drawn, more: e.Verdict.RetryAfter,
		class: e.Verdict.Class,
	}
	login := reasonOf(e.Cause) == backoff.ReasonLogins
	if e.Try > 1 {
		w.fails(e, login)
	}
	switch {
	case login: // which is why there is no session from now on
		w.done(waitStart, waitLogin, x, e.Cause)
		return
	case x.more > 0:
		x.kind = waitAsked
	}
	w.happened(x)
}

// fails notes the failed dial before a wait. A wait for a login hides why the dial has failed.
func (w *watched) fails(e reconnect.WaitStart, login bool) {
	now := time.Now()
	c := causeOf(e.Cause, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	x := rotationInfo{Since: now}
	if w.failing != nil {
		x = *w.failing
	}
	x.Failed = e.Try - 1
	if c != nil && !login {
		x.Reason, x.Text = c.Reason, c.Text
	}
	w.failing = &x
}

func (w *watched) sessionStart(s *reconnect.Session) {
	now := time.Now()
	e := event{at: now.UnixNano(), kind: sessionStart, session: s.Number, more: s.Downtime}
	if s.Downtime > 0 {
		e.kind = sessionBack
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(s.Number, now)
	w.note(e)
}

// begin returns the session with a number, which begins at now if it is not known yet. The
// caller must hold mu.
func (w *watched) begin(n uint64, now time.Time) *sessionInfo {
	// Any of them: many sessions may have failed to replace it.
	i := slices.IndexFunc(w.sessions, func(s sessionInfo) bool { return s.Session == n })
	if i < 0 {
		w.dropped = len(w.sessions) == sessionsKept
		w.sessions = push(w.sessions, sessionInfo{Session: n, Start: now, Live: true}, sessionsKept)
		i = len(w.sessions) - 1
	}
	return &w.sessions[i]
}

func (w *watched) sessionReady(r *reconnect.Session) {
	now := time.Now()
	at := now.UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.begin(r.Number, now); s.ready == 0 {
		s.ready = at
		if w.away != 0 {
			s.Away = seconds(at - w.away)
		}
	}
	w.newest, w.away, w.failing = max(w.newest, r.Number), 0, nil
	if w.last != nil && w.last.Reason == backoff.ReasonRotated.String() {
		w.last = w.before
	}
	w.note(event{at: at, kind: sessionReady, session: r.Number})
}

func (w *watched) sessionDone(d reconnect.SessionDone) {
	now := time.Now()
	e := event{
		at: now.UnixNano(), kind: sessionDone, session: d.Session, took: d.Uptime, more: d.Ready,
		cause: causeFor(d.Cause, d.Reason, now),
	}
	if d.Ready == 0 {
		e.kind = sessionVain
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.begin(d.Session, now.Add(-d.Uptime))
	s.Live, s.Reason, s.Planned = false, e.cause.Reason, d.Planned || d.Reason == backoff.ReasonShutdown
	if s.ready == 0 && d.Ready > 0 {
		s.ready = e.at - int64(d.Ready)
	}
	if s.ready != 0 {
		s.Up = seconds(max(e.at-s.ready, 1))
	}
	if d.Session == w.newest {
		w.away = e.at
	}
	switch {
	case d.Planned && d.Session == w.newest: // see OverlapBreakFirst
		w.before, w.last = w.last, e.cause
	case !d.Planned && (d.Ready > 0 || w.away != 0): // not for a rotation
		w.last = e.cause
	}
	w.note(e)
}

// end keeps why the Conn has ended, once.
func (w *watched) end(e reconnect.ConnDone) {
	now := time.Now()
	c, byItself := causeFor(net.ErrClosed, backoff.ReasonShutdown, now), false
	if end, ok := errors.AsType[*reconnect.EndError](e.Err); ok {
		c, byItself = causeOf(end.Err, now), true
	}
	w.mu.Lock()
	if w.closed != 0 {
		w.mu.Unlock()
		return
	}
	w.closed, w.failed = now.UnixNano(), byItself
	if byItself || w.last == nil {
		w.last = c
	}
	w.note(event{at: w.closed, kind: ended, cause: c})
	w.mu.Unlock()
	w.page.ended(w, byItself)
}

// rank returns the rank of the Conn, and the key that orders Conns with the same rank. The caller must hold
// mu.
func (w *watched) rank(state reconnect.State, now time.Time) (rank int, key int64) {
	switch {
	case w.failed:
		return rankEnded, -w.closed
	case w.closed != 0 || state == reconnect.StateClosed:
		return rankClosed, -w.closed
	case state != reconnect.StateReady:
		if w.away == 0 { // it was lost in this moment
			return rankAway, now.UnixNano()
		}
		return rankAway, w.away
	}
	if lost, _ := w.lost(now); lost >= flaps {
		return rankFlapping, -int64(lost)
	}
	var failure int64
	if w.last != nil {
		failure = w.last.Time.UnixNano()
	}
	if w.failing != nil {
		failure = max(failure, w.failing.Since.UnixNano())
	}
	return rankReady, -failure
}

const (
	flaps      = 3
	flapWindow = 5 * time.Minute
)

// lost returns how many sessions were lost within flapWindow, of those that are kept, and whether others,
// which are not kept any more, may have been lost within it, too. The caller must hold mu.
func (w *watched) lost(now time.Time) (n int, more bool) {
	from := now.Add(-flapWindow).UnixNano()
	for i := range w.sessions {
		if s := &w.sessions[i]; s.Up > 0 && !s.Planned && s.ready+int64(s.Up) > from {
			n++
		}
	}
	return n, n > 0 && w.dropped && w.sessions[0].Start.UnixNano() > from
}
