package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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

// scene is a Dialer whose dials the test answers one by one:
//
//	d := s.wantDial()
//	peer := d.accept()
type scene struct {
	t      *testing.T
	opened time.Time
	formed atomic.Int64 // how long after opened ready or down returned, in ns
	fake   conntest.FakeOptions
	wrap   func(*conntest.Fake) conn.Conn // returns the connection to a peer; if nil, that of the fake is used
	dialer reconnect.Dialer               // the Dialer of open; if nil, the scene
	dials  chan *pendingDial

	form    form
	session uint64         // the number of the session that ready or down has returned
	before  *conntest.Fake // the peer of the session that is still read, or nil
}

// pendingDial is one dial of a scene, which waits for its answer.
type pendingDial struct {
	s      *scene
	ctx    context.Context
	at     time.Duration // since the start of the test
	try    backoff.Attempt
	answer chan func() (conn.Conn, error)
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, opened: time.Now(), dials: make(chan *pendingDial)}
}

func (s *scene) Dial(ctx context.Context) (conn.Conn, error) {
	d := &pendingDial{
		s: s, ctx: ctx, at: s.now(), try: backoff.AttemptFrom(ctx), answer: make(chan func() (conn.Conn, error)),
	}
	select {
	case s.dials <- d:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-d.answer:
		return a()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start returns the start of the test: opened, or when ready or down returned.
func (s *scene) start() time.Time { return s.opened.Add(time.Duration(s.formed.Load())) }

// restart sets start to now.
func (s *scene) restart() { s.formed.Store(int64(time.Since(s.opened))) }

func (s *scene) now() time.Duration { return time.Since(s.start()) }

// open starts a Conn over the scene. The end of the test closes it.
func (s *scene) open(o *reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	var dialer reconnect.Dialer = s
	if s.dialer != nil {
		dialer = s.dialer
	}
	c, err := reconnect.New(dialer, o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { closeAndWait(c) })
	return c
}

// closeAndWait closes c, and waits until nothing is left of it.
func closeAndWait(c *reconnect.Conn) {
	c.Close()
	<-c.Done()
}

// hang is down, with a dial that is connected and not answered.
func (s *scene) hang(o *reconnect.Options) (*reconnect.Conn, *pendingDial) {
	s.t.Helper()
	c, d := s.down(o)
	d.connected()
	return c, d
}

// wantDial waits for the next dial.
func (s *scene) wantDial() *pendingDial {
	s.t.Helper()
	select {
	case d := <-s.dials:
		return d
	case <-time.After(24 * time.Hour):
		s.t.Fatal("no dial within a virtual day")
		return nil
	}
}

// wantNoDial asserts that no dial waits for an answer now.
func (s *scene) wantNoDial() {
	s.t.Helper()
	synctest.Wait()
	select {
	case d := <-s.dials:
		s.t.Fatalf("a dial at %v", d.at)
	default:
	}
}

// accept lets the dial succeed, and returns the connection when it is in use.
func (d *pendingDial) accept() *conntest.Fake {
	fake := conntest.NewFake(&d.s.fake)
	d.bring(fake)
	return fake
}

// bring lets the dial succeed with a connection to peer.
func (d *pendingDial) bring(peer *conntest.Fake) {
	c := conntest.Poison(peer.Conn())
	if d.s.wrap != nil {
		c = d.s.wrap(peer)
	}
	d.answer <- func() (conn.Conn, error) { return c, nil }
	synctest.Wait()
}

// acceptHeld lets the dial succeed with a connection that does not write until it is released.
func (d *pendingDial) acceptHeld() *conntest.Fake {
	fake := conntest.NewFake(&d.s.fake)
	fake.Hold()
	d.bring(fake)
	return fake
}

// late lets the dial succeed after a time, whether its context is done or not.
func (d *pendingDial) late(after time.Duration, peer *conntest.Fake) {
	d.answer <- func() (conn.Conn, error) {
		time.Sleep(after)
		return peer.Conn(), nil
	}
	synctest.Wait()
}

// refuse lets the dial fail.
func (d *pendingDial) refuse(err error) {
	d.answer <- func() (conn.Conn, error) { return nil, err }
	synctest.Wait()
}

// connected reports to the Conn that the dial is connected and waits for the handshake.
func (d *pendingDial) connected() {
	d.try.Connected()
	synctest.Wait()
}

// inBubble runs a test in virtual time. The time is after the start of the process, as in a program,
// so that a mistake in a sign shows: a bubble begins in the year 2000, where each link.Instant is
// negative.
func inBubble(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)))
		f(t, newScene(t))
	})
}

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// doubling is a policy without jitter: it waits 1, 2, 4 ... s.
type doubling struct{}

func (doubling) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second << a.N}, true
}

// hanging is a policy under which a handshake hangs after 10 s.
type hanging struct{}

func (hanging) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := time.Second
	if a.Hung {
		wait = 0
	}
	return backoff.Step{Wait: wait, Connect: 5 * time.Second, Handshake: 10 * time.Second}, true
}

// withPolicy returns options with this policy.
func withPolicy(p backoff.Policy) reconnect.Options {
	return reconnect.Options{Run: reconnect.RunOptions{Policy: p}}
}

// alive are the options of a fake that pings and reports bytes, as a WebSocket does.
var alive = conntest.FakeOptions{Pings: true, Transport: true}

// deliver makes the peer send the numbers from one to the other, a message each.
func deliver(peer *conntest.Fake, from, to int) {
	for i := from; i <= to; i++ {
		peer.Deliver(text(fmt.Sprint(i)))
	}
	synctest.Wait()
}

func text(s string) conn.Message { return conn.Message{Type: conn.Text, Data: []byte(s)} }

// notes collects what callbacks saw.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.list...)
}

var errLost = errors.New("lost")

// wantMessage reads the next message, which must be there now.
func wantMessage(t *testing.T, c *reconnect.Conn, session uint64, data string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	m, err := c.Read(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, data, string(m.Data))
	require.Equal(t, session, m.Session)
}

// wantSeam reads the next thing, which must be a seam.
func wantSeam(t *testing.T, c *reconnect.Conn) *reconnect.Seam {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	_, err := c.Read(ctx, nil)
	var seam *reconnect.Seam
	require.ErrorAs(t, err, &seam)
	return seam
}

// wantNothing asserts that there is nothing to read now.
func wantNothing(t *testing.T, c *reconnect.Conn) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	m, err := c.Read(ctx, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded, "got %q", m.Data)
}

// gate is a Gate that holds everybody for a second, and notes what is called.
type gate struct{ notes }

func (g *gate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g.add("acquire " + host)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(v backoff.Verdict) { g.add("done " + v.Class.String()) }, nil
}

// refusingGate is a Gate that fails with the error of the function, unless that is nil.
type refusingGate func() error

func (f refusingGate) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	if err := f(); err != nil {
		return nil, err
	}
	return func(backoff.Verdict) {}, nil
}

// verdictGate is a Gate that lets everybody through, and keeps each verdict.
type verdictGate struct{ list []backoff.Verdict }

func (v *verdictGate) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	return func(got backoff.Verdict) { v.list = append(v.list, got) }, nil
}
