// Package scene sets up what the tests of a Conn play on: dials that the test answers one by one, servers on a
// network in memory, the forms in which a Conn may be, and the options, gates and logs that several areas use.
// All of it runs in virtual time.
package scene

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Scene is a Dialer whose dials the test answers one by one:
//
//	d := s.WantDial()
//	peer := d.Accept()
type Scene struct {
	t      *testing.T
	Opened time.Time
	formed atomic.Int64 // how long after Opened Ready or Down returned, in ns
	Fake   conntest.FakeOptions
	Wrap   func(*conntest.Fake) conn.Conn // returns the connection to a peer; if nil, that of the fake is used
	Dialer reconnect.Dialer               // the Dialer of Open; if nil, the scene
	Dials  chan *PendingDial

	Form    Form
	Session uint64         // the number of the session that Ready or Down has returned
	before  *conntest.Fake // the peer of the session that is still read, or nil
}

// PendingDial is one dial of a scene, which waits for its answer.
type PendingDial struct {
	s      *Scene
	Ctx    context.Context
	At     time.Duration // since the start of the test
	Try    backoff.Attempt
	Answer chan func() (conn.Conn, error)
}

// New returns a scene whose test begins now.
func New(t *testing.T) *Scene {
	return &Scene{t: t, Opened: time.Now(), Dials: make(chan *PendingDial)}
}

func (s *Scene) Dial(ctx context.Context) (conn.Conn, error) {
	d := &PendingDial{
		s: s, Ctx: ctx, At: s.Now(), Try: backoff.AttemptFrom(ctx), Answer: make(chan func() (conn.Conn, error)),
	}
	select {
	case s.Dials <- d:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-d.Answer:
		return a()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Start returns the start of the test: Opened, or when Ready or Down returned.
func (s *Scene) Start() time.Time { return s.Opened.Add(time.Duration(s.formed.Load())) }

// restart sets Start to now.
func (s *Scene) restart() { s.formed.Store(int64(time.Since(s.Opened))) }

// Now returns the time since Start.
func (s *Scene) Now() time.Duration { return time.Since(s.Start()) }

// Open starts a Conn over the scene. The end of the test closes it.
func (s *Scene) Open(o *reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	var dialer reconnect.Dialer = s
	if s.Dialer != nil {
		dialer = s.Dialer
	}
	c, err := reconnect.New(dialer, o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { CloseAndWait(c) })
	return c
}

// CloseAndWait closes c, and waits until nothing is left of it.
func CloseAndWait(c *reconnect.Conn) {
	c.Close()
	<-c.Done()
}

// Hang is like Down, with a dial that is connected and not answered.
func (s *Scene) Hang(o *reconnect.Options) (*reconnect.Conn, *PendingDial) {
	s.t.Helper()
	c, d := s.Down(o)
	d.Connected()
	return c, d
}

// WantDial waits for the next dial.
func (s *Scene) WantDial() *PendingDial {
	s.t.Helper()
	select {
	case d := <-s.Dials:
		return d
	case <-time.After(24 * time.Hour):
		s.t.Fatal("no dial within a virtual day")
		return nil
	}
}

// WantNoDial asserts that no dial waits for an answer now.
func (s *Scene) WantNoDial() {
	s.t.Helper()
	synctest.Wait()
	select {
	case d := <-s.Dials:
		s.t.Fatalf("a dial at %v", d.At)
	default:
	}
}

// Accept lets the dial succeed, and returns the connection when it is in use.
func (d *PendingDial) Accept() *conntest.Fake {
	fake := conntest.NewFake(&d.s.Fake)
	d.bring(fake)
	return fake
}

// bring lets the dial succeed with a connection to peer.
func (d *PendingDial) bring(peer *conntest.Fake) {
	c := conntest.Poison(peer.Conn())
	if d.s.Wrap != nil {
		c = d.s.Wrap(peer)
	}
	d.Answer <- func() (conn.Conn, error) { return c, nil }
	synctest.Wait()
}

// AcceptHeld lets the dial succeed with a connection that does not write until it is released.
func (d *PendingDial) AcceptHeld() *conntest.Fake {
	fake := conntest.NewFake(&d.s.Fake)
	fake.Hold()
	d.bring(fake)
	return fake
}

// Late lets the dial succeed after a time, whether its context is done or not.
func (d *PendingDial) Late(after time.Duration, peer *conntest.Fake) {
	d.Answer <- func() (conn.Conn, error) {
		time.Sleep(after)
		return peer.Conn(), nil
	}
	synctest.Wait()
}

// Refuse lets the dial fail.
func (d *PendingDial) Refuse(err error) {
	d.Answer <- func() (conn.Conn, error) { return nil, err }
	synctest.Wait()
}

// Connected reports to the Conn that the dial is connected and waits for the handshake.
func (d *PendingDial) Connected() {
	d.Try.Connected()
	synctest.Wait()
}

// InBubble runs a test in virtual time. The time is after the start of the process, as in a program,
// so that a mistake in a sign shows: a bubble begins in the year 2000, where each link.Instant is
// negative.
func InBubble(t *testing.T, f func(t *testing.T, s *Scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)))
		f(t, New(t))
	})
}

// Alive are the options of a fake that pings and reports bytes, as a WebSocket does.
var Alive = conntest.FakeOptions{Pings: true, Transport: true}

// ErrLost is the error of a connection that a test has lost.
var ErrLost = errors.New("lost")

// OpenLogged opens a Conn whose log goes to b.
func (s *Scene) OpenLogged(o reconnect.Options) (c *reconnect.Conn, b *bytes.Buffer) {
	b = new(bytes.Buffer)
	o.Run.Trace = reconnect.Log(Logger(b))
	return s.Open(&o), b
}

// Overlapping opens a Conn whose first session is being replaced by the second.
func Overlapping(s *Scene, o *reconnect.Options) (c *reconnect.Conn, old, next *conntest.Fake) {
	c = s.Open(o)
	old = s.WantDial().Accept()
	c.Rotate(1, reconnect.Advice{})
	next = s.WantDial().Accept()
	return c, old, next
}

// RefusedRotation returns a Conn whose session was to be replaced, which the server has refused
// because of why, and that session. done gets the errors of Trace.RotateDone.
func (s *Scene) RefusedRotation(why error) (c *reconnect.Conn, old *conntest.Fake, done *[]error) {
	done = new([]error)
	o := Rotating(reconnect.OverlapHold)
	o.Run.Trace = &reconnect.Trace{RotateDone: func(r reconnect.RotateDone) { *done = append(*done, r.Err) }}
	c = s.Open(&o)
	old = s.WantDial().Accept()
	c.Rotate(1, reconnect.Advice{})
	s.WantDial().Refuse(why)
	return c, old, done
}
