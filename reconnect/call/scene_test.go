package call_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/call"
)

// scene is a Client over connections in memory, of which the test plays the peer:
//
//	s.open(nil)
//	peer := s.accept()
//	asked := s.ask("1 how?")
//	peer.Deliver(text("1 so"))
//	asked.wantAnswer("1 so")
//
// The id is the text before the first space. A message that begins with "!" is no answer.
type scene struct {
	t      *testing.T
	o      call.Options[string]
	client *call.Client[string]
	conn   *reconnect.Conn
	dials  chan func(*conntest.Fake, error)
	late   []string
	picky  bool                      // connections refuse messages without a type
	wrap   func(conn.Conn) conn.Conn // changes each connection; nil: nothing does
}

// picky refuses messages without a type, as the connections of package conn do.
type picky struct{ conn.Conn }

func (p picky) Write(m conn.Message) error {
	if m.Type == 0 {
		return conn.ErrBadMessage
	}
	return p.Conn.Write(m)
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, dials: make(chan func(*conntest.Fake, error))}
		s.o.ID = func(m reconnect.Message) (string, bool) {
			id, _, ok := strings.Cut(string(m.Data), " ")
			return id, ok && !strings.HasPrefix(id, "!")
		}
		s.o.Late = func(m reconnect.Message) { s.late = append(s.late, string(m.Data)) }
		f(t, s)
	})
}

// open starts a Conn with the Client. The end of the test closes it.
func (s *scene) open(o *reconnect.Options) {
	s.t.Helper()
	var err error
	if s.client, err = call.New(&s.o); err != nil {
		s.t.Fatal(err)
	}
	if o == nil {
		o = new(reconnect.Options)
	}
	o.Layers = append(o.Layers, s.client.Layer())
	if o.Run.Policy == nil {
		o.Run.Policy = every(time.Second)
	}
	s.conn, err = reconnect.New(s, o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { s.conn.Close(); <-s.conn.Done() })
	synctest.Wait()
}

// Dial waits until the test answers.
func (s *scene) Dial(ctx context.Context) (conn.Conn, error) {
	type result struct {
		fake *conntest.Fake
		err  error
	}
	answer := make(chan result, 1)
	select {
	case s.dials <- func(f *conntest.Fake, err error) { answer <- result{f, err} }:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r := <-answer
	if r.err != nil {
		return nil, r.err
	}
	opened := conntest.Poison(r.fake.Conn())
	if s.picky {
		opened = picky{opened}
	}
	if s.wrap != nil {
		opened = s.wrap(opened)
	}
	return opened, nil
}

// accept waits for the next dial and lets it succeed.
func (s *scene) accept() *conntest.Fake {
	s.t.Helper()
	peer := conntest.NewFake(nil)
	s.dial()(peer, nil)
	synctest.Wait()
	return peer
}

// acceptHeld is accept with a connection that does not write until it is released.
func (s *scene) acceptHeld() *conntest.Fake {
	s.t.Helper()
	peer := conntest.NewFake(nil)
	peer.Hold()
	s.dial()(peer, nil)
	synctest.Wait()
	return peer
}

// refuse waits for the next dial and lets it fail.
func (s *scene) refuse(err error) {
	s.t.Helper()
	s.dial()(nil, err)
	synctest.Wait()
}

func (s *scene) dial() func(*conntest.Fake, error) {
	s.t.Helper()
	select {
	case d := <-s.dials:
		return d
	case <-time.After(time.Hour):
		s.t.Fatal("no dial within a virtual hour")
		return nil
	}
}

// asked is a Do under way.
type asked struct {
	t      *testing.T
	answer reconnect.Message
	err    error
	done   chan struct{}
}

// ask starts a Do whose id is in its text.
func (s *scene) ask(question string) *asked { return s.do(s.t.Context(), request(question)) }

// repeat is ask for a Repeatable question.
func (s *scene) repeat(question string) *asked {
	r := request(question)
	r.Repeatable = true
	return s.do(s.t.Context(), r)
}

// do starts a Do, and waits until it waits.
func (s *scene) do(ctx context.Context, r call.Request[string]) *asked {
	a := &asked{t: s.t, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.answer, a.err = s.client.Do(ctx, r)
	}()
	synctest.Wait()
	return a
}

func request(question string) call.Request[string] {
	id, _, _ := strings.Cut(question, " ")
	return call.Request[string]{ID: id, Message: text(question)}
}

// ended reports whether Do has returned.
func (a *asked) ended() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// wantAnswer asserts that Do has returned with an answer.
func (a *asked) wantAnswer(answer string) {
	a.t.Helper()
	require.True(a.t, a.ended(), "no answer")
	require.NoError(a.t, a.err)
	require.Equal(a.t, answer, string(a.answer.Data))
}

// wantLost asserts that Do has returned with a LostError.
func (a *asked) wantLost(fate reconnect.Fate, session uint64) *call.LostError {
	a.t.Helper()
	require.True(a.t, a.ended(), "not ended")
	var lost *call.LostError
	require.ErrorAs(a.t, a.err, &lost)
	require.Equal(a.t, fate, lost.Fate, a.err)
	require.Equal(a.t, session, lost.Session, a.err)
	require.Equal(a.t, fate == reconnect.FateDropped, call.Unsent(a.err))
	return lost
}

// wantError asserts that Do has returned with an Error that is target.
func (a *asked) wantError(fate reconnect.Fate, target error) {
	a.t.Helper()
	require.True(a.t, a.ended(), "not ended")
	var e *call.Error
	require.ErrorAs(a.t, a.err, &e)
	require.ErrorIs(a.t, a.err, target)
	require.Equal(a.t, fate, e.Fate, a.err)
	require.Equal(a.t, fate == reconnect.FateDropped, call.Unsent(a.err))
}

// wantWaiting asserts that Do has not returned.
func (a *asked) wantWaiting() {
	a.t.Helper()
	if a.ended() {
		require.FailNow(a.t, "ended", "%s, %v", a.answer.Data, a.err)
	}
}

// answer delivers these messages.
func answer(peer *conntest.Fake, messages ...string) {
	for _, m := range messages {
		peer.Deliver(text(m))
	}
	synctest.Wait()
}

// wantWritten asserts which questions the peer has got.
func wantWritten(t *testing.T, peer *conntest.Fake, questions ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, m := range peer.Written() {
		got = append(got, string(m.Data))
	}
	require.Equal(t, questions, got)
}

func text(s string) conn.Message { return conn.Message{Type: conn.Text, Data: []byte(s)} }

var errGone = errors.New("gone")

// lose ends a connection, and waits until its session has ended.
func lose(peer *conntest.Fake) {
	peer.Fail(errGone)
	synctest.Wait()
}

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// down returns options with this policy for questions without a session.
func down(w reconnect.WhenDown) *reconnect.Options { return &reconnect.Options{WhenDown: w} }
