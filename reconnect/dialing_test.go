package reconnect_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// hanging is a policy under which a handshake hangs after 10 s.
type hanging struct{}

func (hanging) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := time.Second
	if a.Hung {
		wait = 0
	}
	return backoff.Step{Wait: wait, Connect: 5 * time.Second, Handshake: 10 * time.Second}, true
}

// connected says that the dial is connected.
func (d *dialing) connected() {
	d.try.Connected()
	synctest.Wait()
}

// hang is open, and its first dial is connected and not answered.
func (s *scene) hang(o *reconnect.Options) (*reconnect.Conn, *dialing) {
	s.t.Helper()
	c := s.open(o)
	d := s.wantDial()
	d.connected()
	return c, d
}

// A place in a server's queue is kept, and another dial asks beside it.
func TestAHandshakeThatHangsIsKeptAndAnotherDialBegins(t *testing.T) {
	for name, winner := range map[string]int{"the kept one": 0, "the other": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				var logins []uint64
				o := run(hanging{})
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					logins = append(logins, op.Session)
					return nil
				}
				c := s.open(&o)
				first := s.wantDial()
				first.connected()
				second := s.wantDial()
				require.Equal(t, 10*time.Second, second.at)
				second.connected()
				require.Equal(t, reconnect.StateConnecting, c.State())
				dials := []*dialing{first, second}
				require.NoError(t, dials[winner].ctx.Err())
				peer := dials[winner].accept()
				require.Equal(t, reconnect.StateReady, c.State())
				require.Error(t, dials[1-winner].ctx.Err())
				require.Equal(t, winner == 1, errors.Is(context.Cause(dials[1-winner].ctx), backoff.ErrHung), "the other one does not hang")
				require.Equal(t, []uint64{1}, logins)
				require.Equal(t, uint64(2), c.Stats().Dials)
				peer.Fail(errLost)
				require.Equal(t, 11*time.Second, s.wantDial().at)
			})
		})
	}
}

func TestThereIsNoThirdDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c, first := s.hang(&o)
		for n := range 5 {
			beside := s.wantDial()
			beside.connected()
			require.Equal(t, time.Duration(n+1)*10*time.Second, beside.at)
			require.NoError(t, first.ctx.Err())
			synctest.Wait()
			defer func() { require.Error(t, beside.ctx.Err()) }()
			time.Sleep(10*time.Second - 1)
			s.wantNoDial()
			require.NoError(t, beside.ctx.Err())
		}
		first.accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestOneConnectionGivesUpAHandshakeThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var done []reconnect.DialDone
		o := run(hanging{})
		o.Run.OneConnection = true
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d) }}
		c, first := s.hang(&o)
		second := s.wantDial()
		require.Equal(t, backoff.DefaultHandshake, second.at)
		require.ErrorIs(t, first.ctx.Err(), context.DeadlineExceeded)
		require.Len(t, done, 1)
		require.ErrorIs(t, done[0].Err, backoff.ErrHung)
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		require.Equal(t, uint64(1), c.Stats().Failures)
	})
}

// The limits of a dial hold until it is connected; then the rule decides.
func TestADialThatIsConnectedHasNoDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		s.open(&o)
		d := s.wantDial()
		deadline, ok := d.ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, s.start.Add(backoff.DefaultConnect+backoff.DefaultHandshake), deadline)
		d.connected()
		_, ok = d.ctx.Deadline()
		require.False(t, ok)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, d.ctx.Err())
	})
}

// What fails beside a handshake that hangs is waited after, and the state stays.
func TestBesideAHandshakeThatHangsFailuresAreWaitedAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c, first := s.hang(&o)
		s.wantDial().refuse(errLost)
		require.Equal(t, reconnect.StateConnecting, c.State())
		s.wantNoDial()
		third := s.wantDial()
		require.Equal(t, 11*time.Second, third.at)
		first.refuse(errLost)
		require.NoError(t, third.ctx.Err())
		third.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, uint64(2), c.Stats().Failures)
	})
}

func TestAHandshakeThatHangsGivesItsPlaceAtTheGateBack(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := run(hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c := s.open(&o)
		first := s.wantDial() // after 1 s at the gate
		first.connected()
		second := s.wantDial()
		require.Equal(t, 12*time.Second, second.at)
		require.Equal(t, []string{"acquire h", "done overload", "acquire h"}, g.all())
		first.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, []string{"acquire h", "done overload", "acquire h", "done stop"}, g.all())
	})
}

// A kick during a dial says nothing about the host, and begins another.
func TestAKickDuringADialBeginsAnotherBeside(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := run(hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c := s.open(&o)
		first := s.wantDial()
		time.Sleep(time.Second)
		c.Kick()
		second := s.wantDial()
		require.Equal(t, 3*time.Second, second.at, "1 s at the gate each")
		require.NoError(t, first.ctx.Err())
		require.Equal(t, []string{"acquire h", "done stop", "acquire h"}, g.all())
		second.accept()
		require.Error(t, first.ctx.Err())
	})
}

func TestCloseEndsBothDials(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c, first := s.hang(&o)
		second := s.wantDial()
		quit(c)
		require.Error(t, first.ctx.Err())
		require.Error(t, second.ctx.Err())
		require.Equal(t, 10*time.Second, s.now())
	})
}

// Both bring a connection at one instant: one is used, the other closed.
func TestOfTwoConnectionsOneIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c, first := s.hang(&o)
		second := s.wantDial()
		var peers []*conntest.Fake
		for _, d := range []*dialing{first, second} {
			peer := conntest.NewFake(nil)
			peers = append(peers, peer)
			d.answer <- fake(peer)
		}
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		closed := slices.DeleteFunc(slices.Clone(peers), func(p *conntest.Fake) bool { return !p.Closed() })
		require.Len(t, closed, 1)
	})
}

func TestManyThatStartAtOneInstantAreSpread(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		o.Run.StartSpread = time.Hour
		o.Run.Rand = rand.NewPCG(1, 2)
		c := s.open(&o)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		d := s.wantDial()
		require.NotZero(t, d.at)
		require.Less(t, d.at, time.Hour)
		d.refuse(errLost)
		require.Equal(t, d.at+time.Second, s.wantDial().at)
	})
}

// Over real coder/websocket: a balancer accepts and never answers, and the server is
// there again for new connections only.
func TestAServerThatAnswersOnlyNewConnectionsIsReached(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.Next(conntest.Hang, v.Accept)
		c := v.open(t, nil)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Less(t, v.now(), 10*time.Second)
		require.Equal(t, 2, v.network.Count(venueAddr).Dials)
		synctest.Wait()
		require.Equal(t, 1, v.network.Open())
	})
}

// A connection that comes as everything ends is closed.
func TestAConnectionThatComesAtTheEndIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c atomic.Pointer[reconnect.Conn]
		o := run(hanging{})
		o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) { c.Load().Close() }}
		c.Store(s.open(&o))
		peer := s.wantDial().accept()
		<-c.Load().Done()
		require.True(t, peer.Closed())
	})
}

// Of a hook that does not return nothing is left either.
func TestAHookThatDoesNotReturnLeavesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, ended := &gate{}, &pipe{}, make(chan struct{})
		go func() {
			defer close(ended)
			reconnect.Run(t.Context(), func(context.Context) (*pipe, error) { return c, nil },
				func(context.Context, *pipe, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialDone: func(reconnect.DialDone) { runtime.Goexit() }}})
		}()
		<-ended
		require.True(t, c.closed)
		require.Equal(t, []string{"acquire h", "done stop"}, g.all())
	})
}

// uncomparable is an error of a type that has no ==.
type uncomparable []string

func (e uncomparable) Error() string { return strings.Join(e, ", ") }

func TestAnErrorNeedNotBeComparable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c := s.open(&o)
		s.wantDial().refuse(uncomparable{"no", "way"})
		require.EqualError(t, c.Status().Err, "no, way")
	})
}

// A login that is refused beside a handshake that hangs is seen at once.
func TestTheStatusSaysWhatFailsBesideAHandshakeThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c := s.open(&o)
		s.wantDial().connected()
		d := s.wantDial()
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		d.refuse(backoff.Slow(errLost))
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		require.ErrorIs(t, c.AwaitReady(t.Context()), errLost)
	})
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

func TestADialThatIsKeptHoldsNoPlaceAtTheGate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(backoff.Default())
		o.Run.Gate, o.Run.Host = make(one, 1), "h"
		s.open(&o)
		for range 5 { // the second takes the place of the first
			s.wantDial().connected()
		}
		require.Less(t, s.now(), 41*time.Second)
	})
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

// What a server says in answer to a handshake that hung holds the dial that waits at
// the gate as well, whether that is let in just then or not.
func TestADialAtTheGateIsHeldByARetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		gate  seenGate
		seen  []string
		holds time.Duration // the gate, the third dial
	}{
		"waiting": {&gate{}, []string{"acquire h", "done overload", "acquire h"}, time.Second},
		"let in":  {&yielding{}, []string{"acquire", "done overload", "acquire", "done stop"}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := run(hanging{})
				o.Run.Gate, o.Run.Host = test.gate, "h"
				c := s.open(&o)
				first := s.wantDial()
				first.connected()
				time.Sleep(10*time.Second + time.Second/2) // the next one waits at the gate
				next := s.now() + 61*time.Second
				first.refuse(backoff.RetryAfter(answered(503), time.Minute))
				require.Equal(t, test.seen, test.gate.all())
				require.Equal(t, reconnect.StateWaiting, c.State())
				require.Equal(t, s.start.Add(next), c.Status().Next)
				d := s.wantDial()
				require.Equal(t, next+test.holds, d.at)
				require.Equal(t, 2, d.try.Number)
				require.Equal(t, uint64(2), c.Stats().Dials)
			})
		})
	}
}

func TestAPermanentErrorBesideAHandshakeThatHangsIsTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(hanging{})
		c := s.open(&o)
		s.wantDial().connected()
		s.wantDial().refuse(backoff.Permanent(errLost))
		<-c.Done()
		require.ErrorIs(t, c.Err(), errLost)
		require.Equal(t, uint64(1), c.Stats().Failures)
	})
}

// impatient is a dialer whose DialTimeout does not return.
type impatient struct{ *scene }

func (impatient) DialTimeout(backoff.Attempt) time.Duration { runtime.Goexit(); return 0 }

func TestADialTimeoutThatDoesNotReturnEndsTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, err := reconnect.New(impatient{s}, nil)
		require.NoError(t, err)
		<-c.Done()
		require.ErrorIs(t, c.Err(), net.ErrClosed)
	})
}
