package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// movedError is the error of a dial that has waited at the gate for one host and would connect to
// another. The supervisor lets it wait for that host, and dials again.
type movedError struct {
	host    string
	advised bool // host is that of an advised URL, to which only this dial goes
}

func (e *movedError) Error() string {
	return fmt.Sprintf("goes to %s, but has waited at the gate for another host", e.host)
}

// Is reports whether target is [context.Canceled]: the dial was withdrawn, and did not fail.
func (e *movedError) Is(target error) bool { return target == context.Canceled }

// goesTo is backoff.Attempt.Host of x: it returns a *movedError if x has to wait at the gate for
// host. A dial that has moved before, or is connected already, does not wait: it goes astray.
// Otherwise a Prepare that names another host each time would never dial.
func (d *dialing[C]) goesTo(x *dial[C], host string) error {
	host = cmp.Or(host, d.s.o.Host)
	switch {
	case host == x.host:
		return nil
	case !x.moved && x.reached.Load() == 0:
		return &movedError{host: host}
	}
	x.astray.Store(true)
	select {
	case d.connected <- struct{}{}:
	default: // an event is there already: see dial
	}
	return nil
}

// leaveAstray releases the slot of x at the gate if x has gone astray, without a verdict for either
// host. The next dial waits for the usual host.
func (d *dialing[C]) leaveAstray(x *dial[C]) {
	if x.astray.Load() {
		d.s.host = d.s.o.Host
		x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
	}
}

// movedTo returns the error of x if it has to wait at the gate for another host, or nil.
func (x *dial[C]) movedTo() *movedError {
	if x.atGate || x.ended || !x.running.Returned() || x.ctx.Err() != nil {
		return nil
	}
	m, _ := errors.AsType[*movedError](x.err)
	return m
}

// move lets x wait at the gate for the host to which it goes, and the dials after it too unless
// its URL was advised.
func (d *dialing[C]) move(x *dial[C], to *movedError) {
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
	d.report(x, time.Since(x.start), true)
	x.host, x.moved = to.host, true
	if !to.advised {
		d.s.host = to.host
	}
	d.toGate(x)
}
