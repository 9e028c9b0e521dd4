package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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
	t     *testing.T
	start time.Time
	fake  conntest.FakeOptions
	dials chan *dialing
}

type dialing struct {
	s      *scene
	ctx    context.Context
	at     time.Duration // since the start of the scene
	try    backoff.Attempt
	answer chan func() (conn.Conn, error)
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, start: time.Now(), dials: make(chan *dialing)}
}

func (s *scene) Dial(ctx context.Context) (conn.Conn, error) {
	d := &dialing{s: s, ctx: ctx, at: s.now(), try: backoff.AttemptFrom(ctx), answer: make(chan func() (conn.Conn, error))}
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

func (s *scene) now() time.Duration { return time.Since(s.start) }

// open starts a Conn over the scene, to be closed when the test ends.
func (s *scene) open(o *reconnect.Options) *reconnect.Conn {
	s.t.Helper()
	c, err := reconnect.New(s, o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { quit(c) })
	return c
}

// shut closes c, and waits until nothing is left of it.
func quit(c *reconnect.Conn) {
	c.Close()
	<-c.Done()
}

// hang is open, and its first dial is connected and not answered.
func (s *scene) hang(o *reconnect.Options) (*reconnect.Conn, *dialing) {
	s.t.Helper()
	c := s.open(o)
	d := s.wantDial()
	d.connected()
	return c, d
}

// wantDial waits for the next dial.
func (s *scene) wantDial() *dialing {
	s.t.Helper()
	select {
	case d := <-s.dials:
		return d
	case <-time.After(24 * time.Hour):
		s.t.Fatal("no dial within a virtual day")
		return nil
	}
}

// wantNoDial asserts that none is waiting now.
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
func (d *dialing) accept() *conntest.Fake {
	fake := conntest.NewFake(&d.s.fake)
	d.answer <- func() (conn.Conn, error) { return conntest.Poison(fake.Conn()), nil }
	synctest.Wait()
	return fake
}

// acceptHeld accepts with a connection that does not write until it is released.
func (d *dialing) acceptHeld() *conntest.Fake {
	fake := conntest.NewFake(&d.s.fake)
	fake.Hold()
	d.answer <- func() (conn.Conn, error) { return conntest.Poison(fake.Conn()), nil }
	synctest.Wait()
	return fake
}

func (d *dialing) refuse(err error) {
	d.answer <- func() (conn.Conn, error) { return nil, err }
	synctest.Wait()
}

// connected says that the dial is connected.
func (d *dialing) connected() {
	d.try.Connected()
	synctest.Wait()
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newScene(t)) })
}

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// double is a policy without jitter: 1, 2, 4 ... s.
type double struct{}

func (double) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
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

// run returns options with a policy.
func run(p backoff.Policy) reconnect.Options {
	return reconnect.Options{Run: reconnect.RunOptions{Policy: p}}
}

// alive is a fake that pings and notes bytes, as a WebSocket does.
var alive = conntest.FakeOptions{Pings: true, Idles: true}

// fake is the answer of a dial that brings f.
func fake(f *conntest.Fake) func() (conn.Conn, error) {
	return func() (conn.Conn, error) { return f.Conn(), nil }
}

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

// gate is a Gate that notes what it is told.
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

// refusing is a Gate that refuses everybody.
type refusing func() error

func (f refusing) Acquire(context.Context, string) (func(backoff.Verdict), error) { return nil, f() }

// open is a Gate that lets everybody through, and what it does with verdicts.
type open func(backoff.Verdict)

func (f open) Acquire(context.Context, string) (func(backoff.Verdict), error) { return f, nil }

// verdicts is a Gate that keeps what it hears.
type verdicts struct{ list []backoff.Verdict }

func (v *verdicts) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	return func(got backoff.Verdict) { v.list = append(v.list, got) }, nil
}

// one is a Gate with one place.
type one chan struct{}

func (g one) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	select {
	case g <- struct{}{}:
		return func(backoff.Verdict) { <-g }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// yielding is a Gate that lets the first dial in, and others after an hour or when their
// wait is cut short.
type yielding struct{ notes }

func (g *yielding) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	if g.add("acquire"); len(g.all()) > 1 {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
	}
	return func(v backoff.Verdict) { g.add("done " + v.Class.String()) }, nil
}

// seenGate is a Gate that says what it has seen.
type seenGate interface {
	reconnect.Gate
	all() []string
}
