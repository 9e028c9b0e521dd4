package dialer

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// closeRecorder is a connection that records its Close.
type closeRecorder struct {
	net.Conn
	closed bool
}

func (c *closeRecorder) Close() error {
	c.closed = true
	return nil
}

// leavingGate is a Gate and a Budget whose done does not return.
type leavingGate func()

func (g leavingGate) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	return func(backoff.Verdict) { g() }, nil
}

func (g leavingGate) Admit(backoff.Verdict) (func(backoff.Verdict), bool) {
	return func(backoff.Verdict) { g() }, true
}

// leavingPolicy is a Policy that does not return.
type leavingPolicy func()

func (p leavingPolicy) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	p()
	return backoff.Step{}, false
}

// leavers set the functions that a Dialer calls on the caller's goroutine.
var leavers = map[string]func(d *Dialer, leave func()){
	"OnProgress": func(d *Dialer, leave func()) {
		d.OnProgress = func(Progress) { leave() }
	},
	"the Gate's done": func(d *Dialer, leave func()) {
		d.Gate = leavingGate(leave)
	},
	"the Budget's done": func(d *Dialer, leave func()) {
		d.Budget = leavingGate(leave)
	},
	"Policy": func(d *Dialer, leave func()) {
		d.Policy = leavingPolicy(leave)
		d.DialOnce = func(context.Context, string, string) (net.Conn, error) { return nil, errFell }
	},
	"DialOnce, and then the Gate's done": func(d *Dialer, leave func()) {
		d.DialOnce = func(context.Context, string, string) (net.Conn, error) {
			leave()
			return nil, errFell
		}
		d.Gate = leavingGate(func() { panic("the second panic") })
	},
}

// dialLeft calls DialContext of a Dialer that set has changed. It returns the value of the panic, if
// there was one, and the connection.
func dialLeft(set func(d *Dialer, leave func()), leave func()) (panicked any, c *closeRecorder) {
	c = &closeRecorder{closed: true} // until it is dialed
	d := &Dialer{DialOnce: func(context.Context, string, string) (net.Conn, error) {
		c.closed = false
		return c, nil
	}}
	set(d, leave)
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		_, _ = d.DialContext(context.Background(), "tcp", "h:1")
	}()
	return <-ended, c
}

func TestPanicOfDialerOptionClosesConnection(t *testing.T) {
	for name, set := range leavers {
		t.Run(name, func(t *testing.T) {
			errBoom := errors.New("boom")
			panicked, c := dialLeft(set, func() { panic(errBoom) })
			err, _ := panicked.(error)
			require.ErrorIs(t, err, errBoom)
			require.ErrorContains(t, err, "dialer_leave_test.go", "with the stack of the panic")
			require.True(t, c.closed)
		})
	}
}

func TestGoexitOfDialerOptionClosesConnection(t *testing.T) {
	for _, name := range []string{"OnProgress", "the Gate's done", "the Budget's done", "Policy"} {
		t.Run(name, func(t *testing.T) {
			panicked, c := dialLeft(leavers[name], runtime.Goexit)
			require.Nil(t, panicked)
			require.True(t, c.closed)
		})
	}
}
