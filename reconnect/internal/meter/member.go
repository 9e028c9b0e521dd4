package meter

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// member is one connection that is measured.
type member struct {
	meter *Meter
	name  string                      // the value of the label
	conn  *reconnect.Conn             // nil: a Run
	sets  []func() subscription.Stats // of its subscriptions

	mu      sync.Mutex // guards what follows
	newest  uint64     // the newest session that was ready; 0: none was. Older ones are only read to their end
	ready   bool       // it still is
	since   time.Time  // when it ended, or since when there was none
	lost    bool       // it has ended
	planned bool       // because it was replaced
	last    Counts     // the largest that were reported
	final   bool       // they are the last
}

// hooks returns the hooks of the member. If more is not nil, its hooks run first.
func (x *member) hooks(more *reconnect.Trace) *reconnect.Trace {
	t := &reconnect.Trace{
		GateDone: func(e reconnect.GateDone) {
			outcome, _ := Judge(e.Err)
			x.observe(gateWait, e.Took, outcome)
		},
		DialHung: func(reconnect.DialHung) { x.add(dialsHung) },
		DialDone: func(e reconnect.DialDone) {
			outcome, reason := Judge(e.Err)
			x.add(dials, outcome, reason)
			x.observe(dialDuration, e.Took, outcome)
		},
		SessionStart: func(*reconnect.Session) { x.add(sessions) },
		SessionReady: x.sessionReady,
		SessionDone:  x.sessionDone,
		RotateDone: func(e reconnect.RotateDone) {
			outcome := Replaced
			if e.Err != nil {
				outcome = Failed
			}
			x.add(rotations, outcome)
		},
		WaitDone: func(e reconnect.WaitDone) { x.observe(waitDuration, e.Took) },
		ProbeDone: func(e reconnect.ProbeDone) {
			outcome, _ := Judge(e.Err)
			x.add(probes, outcome)
			if outcome == OK {
				x.observe(probeDuration, e.Took)
			}
		},
		SlowHandler: func(reconnect.SlowHandler) { x.add(slowHandlers) },
		Overdue: func(e reconnect.Overdue) {
			function := e.What
			if !slices.Contains(functions, function) {
				function = Other
			}
			x.add(overdue, function)
		},
		ConnDone: x.end,
	}
	if more == nil {
		return t
	}
	return reconnect.JoinTraces(more, t)
}

// begin notes the status when the hooks are set. The status is no older than the events that have come
// until now. An event that the status includes already may still come, which does no harm.
func (x *member) begin() {
	x.mu.Lock()
	defer x.mu.Unlock()
	status := x.conn.Status()
	if status.State == reconnect.StateReady {
		x.up(status.Session)
	} else if x.since.IsZero() {
		x.since = status.Since
	}
}

// up notes that a session is ready. x.mu is locked.
func (x *member) up(session uint64) {
	if session >= x.newest {
		x.newest, x.ready, x.lost = session, true, false
	}
}

func (x *member) add(i *Instrument, v ...string) { x.meter.recorder.Add(i, x.name, values(v)) }

func (x *member) observe(i *Instrument, d time.Duration, v ...string) {
	x.meter.recorder.Observe(i, x.name, values(v), d.Seconds())
}

func values(list []string) (v Values) {
	copy(v[:], list)
	return v
}

func (x *member) sessionReady(s *reconnect.Session) {
	x.mu.Lock()
	outage, planned := time.Duration(-1), x.planned
	if x.lost {
		outage = time.Since(x.since)
	}
	x.up(s.Number)
	x.mu.Unlock()
	x.add(sessionsReady)
	if outage >= 0 {
		x.observe(outageDuration, outage, yes(planned))
	}
}

func (x *member) sessionDone(e reconnect.SessionDone) {
	x.mu.Lock()
	wasReady := e.Ready > 0 || e.Session == x.newest && x.ready
	shutdown := e.Reason == backoff.ReasonShutdown
	if wasReady && e.Session >= x.newest {
		x.newest, x.ready = e.Session, false
		x.since, x.lost, x.planned = time.Now(), true, e.Planned
	}
	x.mu.Unlock()
	x.observe(sessionDuration, e.Uptime, e.Reason.String())
	if wasReady && !shutdown {
		x.add(seams, yes(e.Planned))
	}
}

func (x *member) end(e reconnect.ConnDone) {
	_, byItself := errors.AsType[*reconnect.EndError](e.Err) // which is net.ErrClosed too
	asked := errors.Is(e.Err, net.ErrClosed) || errors.Is(e.Err, context.Canceled) || e.Err == context.DeadlineExceeded
	if asked && !byItself {
		x.add(ends, Closed)
	} else {
		x.add(ends, Failed)
	}
}

// Judge returns the labels outcome and reason for the error of a dial, a probe or a wait at the gate.
func Judge(err error) (outcome, reason string) {
	canceled := errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)
	switch {
	case err == nil:
		return OK, None
	case canceled && !errors.Is(err, context.DeadlineExceeded):
		return Canceled, None
	}
	return Failed, backoff.ReasonOf(err).String()
}

func yes(b bool) string {
	if b {
		return Yes
	}
	return No
}

// The rest is for Collect.

// read adds the connection to t. If the connection has ended, its counts are the last ones.
func (x *member) read(t *Totals) {
	ended := x.conn.Err() != nil // before the counts are read, so that they are the last
	status, stats, subs := x.conn.Status(), x.conn.Stats(), x.subscriptions()
	counts, gone := x.settle(countsOf(stats, subs), ended)
	t.Counts.add(counts)
	switch {
	case ended:
		x.meter.leave(x, counts)
	case !gone && status.State != reconnect.StateClosed:
		t.live(status, stats, len(x.sets), subs, x.away(status))
	}
}

// retire ends the measuring of the connection.
func (x *member) retire() {
	last, _ := x.settle(countsOf(x.conn.Stats(), x.subscriptions()), true)
	x.meter.leave(x, last)
}

// subscriptions returns the sums over all sets.
func (x *member) subscriptions() (sum subscription.Stats) {
	for _, stats := range x.sets {
		s := stats()
		sum.Wanted += s.Wanted
		sum.Held += s.Held
		sum.Refusals += s.Refusals
		sum.Unanswered += s.Unanswered
	}
	return sum
}

// settle returns the counts to report, which never go down. gone reports whether the counts were final
// before this call; if final is set, they are final from now on.
func (x *member) settle(now Counts, final bool) (counts Counts, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone = x.final
	if !gone {
		x.last.raise(now)
		x.final = final
	}
	return x.last, gone
}

// away returns for how long no session has been ready.
func (x *member) away(status reconnect.Status) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if status.State == reconnect.StateReady || x.ready {
		return 0
	}
	return time.Since(x.since)
}
