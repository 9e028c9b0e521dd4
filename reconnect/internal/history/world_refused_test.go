package history

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// refusalCodes are close codes of a refused login, if Settings.Refusals is set.
var refusalCodes = []int{4401, 4403, 3500, 3999, 4500, 4999}

// refusedKinds are the events of drawRefusals.
var refusedKinds = []happening{
	{"refused login", 1, func(w *world, r *rand.Rand, e Event) {
		w.closeAll(refusalCodes[r.IntN(len(refusalCodes))], func() string { return "no entry" })
	}},
	{"no such host", 1, func(w *world, r *rand.Rand, e Event) {
		f := conntest.Fault{Err: &net.DNSError{Err: "no such host", Name: "feed.test", IsNotFound: true}}
		w.network.Fault(address, append(slices.Repeat([]conntest.Fault{f}, 1+r.IntN(3)), conntest.Fault{})...)
	}},
}

// drawRefusals draws events of refusedKinds, and whether the Conn knows the close codes, from a stream of its own: the
// rest of a plan does not depend on it.
func (p *Plan) drawRefusals() {
	r := p.stream(10)
	if r.IntN(5) > 0 {
		return
	}
	p.Settings.Refusals = r.IntN(4) > 0
	for range 1 + r.IntN(4) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), refusedKinds[r.IntN(len(refusedKinds))].name})
	}
}

// judge is the Classify of the Conn, without what the history notes.
func (w *world) judge(err error) backoff.Verdict {
	if w.set.Refusals {
		return backoff.ClassifyRefusals(err)
	}
	return backoff.Classify(err)
}

// waitsSlowly checks the wait after a refused login, and after a name that does not exist. The time of a slow SessionDone is part of the
// wait, and not of Drawn. The caller holds w.mu.
func (w *world) waitsSlowly(e reconnect.WaitStart) {
	nameless := noSuchHost(e.Cause) && e.Verdict.Lenient // which the answer at an advised address is not
	if !nameless {
		w.missing = 0
	}
	if w.rotated || w.loginWait {
		return
	}
	closed, ok := errors.AsType[*conn.CloseError](e.Cause)
	if ok && w.set.Refusals && slices.Contains(refusalCodes, closed.Code) {
		slow := e.Verdict.Class == backoff.ClassSlow
		w.check(RefusedIsSlow, slow || closed.Code == 4401 && e.Verdict.Class == backoff.ClassRefresh, "%v after %v", e.Verdict.Class, e.Cause)
		w.check(RefusedIsSlow, !slow || (e.Drawn >= 5*time.Second || w.acted) && e.Drawn <= 3*time.Minute, "a wait of %v after %v", e.Drawn, e.Cause)
	}
	if !nameless {
		return
	}
	w.missing++
	w.check(NoSuchHostIsSlow, w.missing == 1 || e.Verdict.Class == backoff.ClassSlow, "%v after %v, %d in a row", e.Verdict.Class, e.Cause, w.missing)
}

// noSuchHost reports whether a name server has said that there is no such host.
func noSuchHost(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound && !e.IsTemporary && !e.IsTimeout
}

// outlook checks what the Status says while the Conn waits at a gate whose host is down.
func (w *world) outlook() {
	w.mu.Lock()
	c := w.conn
	w.mu.Unlock()
	if c == nil {
		return
	}
	before := w.gate.Status(address)
	s := c.Status()
	if after := w.gate.Status(address); before != after {
		return // something has happened meanwhile
	}
	w.claim(OutlookIsTrue, s.Outlook == nil || s.AtGate && before.Down, "%+v, and the line is %+v", s, before)
	if s.Outlook != nil {
		w.claim(OutlookIsTrue, s.Outlook.Waiting == before.Waiting, "%+v, and the line is %+v", s.Outlook, before)
		underWay := s.Outlook.Next.IsZero() && before.Dialing > 0
		w.claim(OutlookIsTrue, underWay || s.Outlook.Next.Equal(before.Probe), "%v, and the line says %v", s.Outlook.Next, before.Probe)
	}
}
