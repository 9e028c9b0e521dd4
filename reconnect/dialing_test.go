package reconnect_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// A handshake that hangs may have a place in a server's queue. It is kept, and another dial
// begins beside it.
func TestAHandshakeThatHangsIsKeptAndAnotherDialBegins(t *testing.T) {
	for name, winner := range map[string]int{"the kept one": 0, "the other": 1} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				var logins []uint64
				o := withPolicy(hanging{})
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					logins = append(logins, op.Session)
					return nil
				}
				// The first handshake hangs for 10 s.
				c, first := s.hang(&o)
				logins = nil
				dials := c.Stats().Dials
				// A second dial begins beside it, and hangs too.
				second := s.wantDial()
				require.Equal(t, 10*time.Second, second.at)
				second.connected()
				require.Equal(t, reconnect.StateConnecting, c.State())
				// The winner is answered: it becomes the session, and the other dial is cut.
				both := []*pendingDial{first, second}
				require.NoError(t, both[winner].ctx.Err())
				peer := both[winner].accept()
				require.Equal(t, reconnect.StateReady, c.State())
				require.Error(t, both[1-winner].ctx.Err())
				cause := context.Cause(both[1-winner].ctx)
				require.Equal(t, winner == 1, errors.Is(cause, backoff.ErrHung), "the other one does not hang")
				// There was one login, and the loss is followed by one wait.
				require.Equal(t, []uint64{s.session}, logins)
				require.Equal(t, dials+1, c.Stats().Dials)
				peer.Fail(errLost)
				require.Equal(t, 11*time.Second, s.wantDial().at)
			})
		})
	}
}

func TestThereIsNoThirdDial(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
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

// Promise 1.
func TestAtMostTwoDialsAreInFlight(t *testing.T) {
	for name, one := range map[string]bool{"two": false, "OneConnection": true} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Second))
				o.Run.OneConnection = one
				c, d := s.down(&o)
				c.Kick()
				if !one {
					require.Zero(t, s.wantDial().at)
				}
				for range 3 {
					c.Kick()
					c.Redial(0, errLost)
					s.wantNoDial()
				}
				d.accept()
				time.Sleep(time.Hour)
				s.wantNoDial()
			})
		})
	}
}

// Promise 1, counted by the network.
func TestThereAreNeverMoreThanTwoConnections(t *testing.T) {
	t.Run("two", func(t *testing.T) { inEachWSForm(t, nil, wantAtMost(2)) })
	t.Run("OneConnection", func(t *testing.T) { inEachWSForm(t, nil, wantAtMost(1)) })
}

// wantAtMost returns a test that there are never more than n connections to a server that fails at random.
func wantAtMost(n int) func(t *testing.T, server *wsServer) {
	return func(t *testing.T, server *wsServer) {
		random := rand.New(rand.NewPCG(1, 2))
		server.network.Fault(wsAddr, conntest.Fault{Delay: 300 * time.Millisecond}, conntest.Fault{})
		o := withPolicy(every(100 * time.Millisecond))
		o.Run.OneConnection = n == 1
		c := server.ready(t, &o)
		for server.now() < time.Minute {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			late := time.Duration(random.Int64N(int64(time.Second)))
			server.network.Fault(wsAddr, conntest.Fault{
				Delay: late, IgnoresContext: random.IntN(2) == 0, CompletesAnyway: true,
			})
			server.network.ResetAll(wsAddr)
			c.Kick()
			c.Redial(c.Status().Session, errLost)
		}
		count := server.network.Count(wsAddr)
		require.Greater(t, count.Dials, 30)
		require.LessOrEqual(t, count.MaxDialing, n)
		require.LessOrEqual(t, count.MaxOpen, n)
		require.LessOrEqual(t, count.MaxHeld, n)
	}
}

func TestOneConnectionGivesUpAHandshakeThatHangs(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var done []reconnect.DialDone
		o := withPolicy(hanging{})
		o.Run.OneConnection = true
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d) }}
		c, first := s.hang(&o)
		failures := c.Stats().Failures
		second := s.wantDial()
		limit := 10 * time.Second
		if s.session == 1 {
			limit = backoff.DefaultHandshake
		}
		require.Equal(t, limit, second.at)
		require.ErrorIs(t, first.ctx.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, done[len(done)-1].Err, backoff.ErrHung)
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		require.Equal(t, failures+1, c.Stats().Failures)
	})
}

// A dial that fails beside a handshake that hangs is followed by a wait, and the state stays
// StateConnecting.
func TestBesideAHandshakeThatHangsFailuresAreWaitedAfter(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, first := s.hang(&o)
		failures := c.Stats().Failures
		s.wantDial().refuse(errLost)
		require.Equal(t, reconnect.StateConnecting, c.State())
		s.wantNoDial()
		third := s.wantDial()
		require.Equal(t, 11*time.Second, third.at)
		first.refuse(errLost)
		require.NoError(t, third.ctx.Err())
		third.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, failures+2, c.Stats().Failures)
	})
}

// A server that has asked to wait while another handshake hung has asked from then on. What Status and WaitStart
// announce when that handshake fails is what is left.
func TestARetryAfterBesideAHandshakeThatHangsIsAnnouncedAsFarAsItIsLeft(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var waits []reconnect.WaitStart
		o := withPolicy(hanging{})
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { waits = append(waits, w) }}
		c, first := s.hang(&o)
		waits = nil
		s.wantDial().refuse(backoff.RetryAfter(errLost, 6*time.Second))
		next := s.now() + 7*time.Second // and 1 s of the policy
		time.Sleep(4 * time.Second)
		first.refuse(errLost)
		require.Equal(t, s.start().Add(next), c.Status().Next)
		require.Len(t, waits, 1)
		require.Equal(t, next-s.now(), waits[0].Verdict.RetryAfter+waits[0].Drawn)
		require.GreaterOrEqual(t, waits[0].Drawn, time.Duration(0))
		require.Equal(t, next, s.wantDial().at)
	})
}

func TestAHandshakeThatHangsGivesItsPlaceAtTheGateBack(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := withPolicy(hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c, first := s.hang(&o)
		before := len(g.all())
		second := s.wantDial()
		require.Equal(t, 11*time.Second, second.at, "1 s at the gate")
		require.Equal(t, []string{"done overload", "acquire h"}, g.all()[before:])
		first.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, []string{"done overload", "acquire h", "done stop"}, g.all()[before:])
	})
}

// A kick during a dial says nothing about the host, and begins another dial.
func TestAKickDuringADialBeginsAnotherBeside(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := withPolicy(hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c, first := s.down(&o)
		before := len(g.all())
		time.Sleep(time.Second)
		c.Kick()
		second := s.wantDial()
		require.Equal(t, 2*time.Second, second.at, "1 s at the gate")
		require.NoError(t, first.ctx.Err())
		require.Equal(t, []string{"done stop", "acquire h"}, g.all()[before:])
		second.accept()
		require.Error(t, first.ctx.Err())
	})
}

// A dial that has failed for good ends the other one, whose error says so.
func TestADialThatHasFailedForGoodEndsTheOther(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		var done []error
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d.Err) }}
		c, _ := s.down(&o)
		done = nil
		c.Kick()
		s.wantDial().refuse(backoff.Permanent(errLost))
		<-c.Done()
		require.Len(t, done, 2)
		require.ErrorIs(t, done[0], errLost)
		require.ErrorIs(t, done[1], context.Canceled)
		require.ErrorContains(t, done[1], "another dial has failed for good")
	})
}

func TestCloseEndsBothDials(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, first := s.hang(&o)
		second := s.wantDial()
		closeAndWait(c)
		require.Error(t, first.ctx.Err())
		require.Error(t, second.ctx.Err())
		require.Equal(t, 10*time.Second, s.now())
	})
}

// Both dials bring a connection at one instant: one is used, and the other is closed.
func TestOfTwoConnectionsOneIsClosed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, first := s.hang(&o)
		second := s.wantDial()
		var peers []*conntest.Fake
		both := make(chan struct{})
		for _, d := range []*pendingDial{first, second} {
			peer := conntest.NewFake(nil)
			peers = append(peers, peer)
			d.answer <- func() (conn.Conn, error) { <-both; return peer.Conn(), nil }
		}
		close(both)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		closed := slices.DeleteFunc(slices.Clone(peers), func(p *conntest.Fake) bool { return !p.Closed() })
		require.Len(t, closed, 1)
	})
}

func TestManyThatStartAtOneInstantAreSpread(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
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

// Over real coder/websocket: a load balancer accepts the first connection and never answers it,
// and the server answers new connections only.
func TestAServerThatAnswersOnlyNewConnectionsIsReached(t *testing.T) {
	inEachWSForm(t, nil, func(t *testing.T, server *wsServer) {
		o := withPolicy(backoff.Default())
		c := server.down(t, &o)
		before := server.network.Count(wsAddr).Dials
		server.Next(conntest.Hang, server.Accept)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Less(t, server.now(), 12*time.Second, "2 s for the first wait")
		require.Equal(t, before+2, server.network.Count(wsAddr).Dials)
		synctest.Wait()
		require.Equal(t, 1, server.network.Open())
	})
}

// Over real coder/websocket: the kept handshake is answered, and the dial beside it has not failed.
func TestADialThatIsNotNeededAnyMoreIsCanceled(t *testing.T) {
	inEachWSForm(t, nil, func(t *testing.T, server *wsServer) {
		var done []error
		o := withPolicy(backoff.Default())
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d.Err) }}
		c := server.down(t, &o)
		done = nil
		server.Next(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(12 * time.Second)
			server.Accept(w, r)
		}, conntest.Hang)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Len(t, done, 2)
		require.NoError(t, done[0])
		require.ErrorIs(t, done[1], context.Canceled)
		require.ErrorContains(t, done[1], "another dial was answered first")
	})
}

// A login that is refused beside a handshake that hangs is in the status at once.
func TestTheStatusSaysWhatFailsBesideAHandshakeThatHangs(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, _ := s.hang(&o)
		d := s.wantDial()
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		d.refuse(backoff.Slow(errLost))
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		require.ErrorIs(t, c.AwaitReady(t.Context()), errLost)
	})
}

func TestADialThatIsKeptHoldsNoPlaceAtTheGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(backoff.Default())
		o.Run.Gate, o.Run.Host = make(oneGate, 1), "h"
		s.hang(&o)
		for range 4 { // the first of these takes its place
			s.wantDial().connected()
		}
		require.Less(t, s.now(), 41*time.Second)
	})
}

// queueing is hanging, but a dial that finds the backlog full takes the place.
type queueing struct{ hanging }

func (q queueing) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	s, ok := q.hanging.Next(a, r)
	s.SwapIfFull = true
	return s, ok
}

// The time at a gate is none in which a dial connects, so that it says nothing about the backlog.
func TestADialThatFindsTheBacklogFullTakesThePlaceOfTheKeptOne(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(queueing{})
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		_, first := s.hang(&o)
		// The dial beside waits at the gate for as long, is connected at once, and has 10 s.
		second := s.wantDial()
		second.connected()
		third := s.wantDial()
		require.Equal(t, second.at+11*time.Second, third.at)
		require.NoError(t, first.ctx.Err())
		// The next needs a second to connect, and takes the place.
		time.Sleep(time.Second)
		third.connected()
		require.Equal(t, third.at+12*time.Second, s.wantDial().at)
		require.Error(t, first.ctx.Err())
		require.NoError(t, third.ctx.Err())
	})
}

// A Retry-After in the answer to a handshake that hung also holds the dial that waits at the
// gate, whether the gate lets it in just then or not.
func TestADialAtTheGateIsHeldByARetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		gate  func() seenGate
		seen  []string
		holds time.Duration // the gate, the third dial
	}{
		"waiting": {
			func() seenGate { return new(gate) },
			[]string{"done overload", "acquire h"}, time.Second,
		},
		"let in": {
			func() seenGate { return new(yieldingGate) },
			[]string{"done overload", "acquire h", "done stop"}, time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				g := test.gate()
				o := withPolicy(hanging{})
				o.Run.Gate, o.Run.Host = g, "h"
				// The first handshake hangs, and the next dial waits at the gate.
				c, first := s.hang(&o)
				before, dials := len(g.all()), c.Stats().Dials
				if g, ok := g.(*yieldingGate); ok {
					g.shut.Store(true)
				}
				time.Sleep(10*time.Second + time.Second/2) // the next one waits at the gate
				// The answer to the first asks to wait for a minute. The dial at the gate is held.
				next := s.now() + 61*time.Second
				first.refuse(backoff.RetryAfter(answered(503), time.Minute))
				require.Equal(t, test.seen, g.all()[before:])
				require.Equal(t, reconnect.StateWaiting, c.State())
				require.Equal(t, s.start().Add(next), c.Status().Next)
				// It begins after that minute and the wait of a second.
				d := s.wantDial()
				require.Equal(t, next+test.holds, d.at)
				require.Equal(t, first.try.Number+1, d.try.Number)
				require.Equal(t, dials+1, c.Stats().Dials)
			})
		})
	}
}

func TestAPermanentErrorBesideAHandshakeThatHangsIsTheEnd(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, _ := s.hang(&o)
		failures := c.Stats().Failures
		s.wantDial().refuse(backoff.Permanent(errLost))
		<-c.Done()
		require.ErrorIs(t, c.Err(), errLost)
		require.Equal(t, failures+1, c.Stats().Failures)
	})
}

// Two in three of the server's backends accept connections and answer no handshake. Nearly
// all clients must find another one within minutes.
func TestClientsConnectThoughMostBackendsHang(t *testing.T) {
	const clients = 200
	withWSServer(t, conntest.Discard, func(t *testing.T, server *wsServer) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 * clients {
			if random.IntN(3) > 0 {
				server.Next(conntest.Hang)
			} else {
				server.Next(server.Accept)
			}
		}
		conns := make([]*reconnect.Conn, clients)
		for i := range conns {
			server.dialer = &dialer.WebSocket{URL: server.dialer.URL, DialContext: server.network.DialContext}
			conns[i] = server.open(t, nil)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		ready := 0
		for _, c := range conns {
			if c.State() == reconnect.StateReady {
				ready++
			}
		}
		require.Greater(t, ready, clients*95/100)
	})
}

// One of the endpoints is a black hole. The next dial goes on where the last one ended.
func TestSeveralFramedEndpoints(t *testing.T) {
	inEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		server.dialer.Address, server.dialer.Addresses = "", []string{"hole.test:7", "shut.test:7", framedAddr}
		server.network.Fault("hole.test:7", conntest.Fault{Hang: true})
		server.network.Fault("shut.test:7", conntest.Fault{Refuse: true})
		o := withPolicy(every(time.Second))
		c, peer := server.ready(t, &o)
		for n := range uint64(20) {
			peer.say(t, "hello\n")
			wantMessage(t, c, server.session+n, "hello")
			peer.pipe.Reset()
			wantSeam(t, c)
			peer = server.next(t)
		}
		require.NotEmpty(t, server.network.Dials("hole.test:7"))
		require.NotEmpty(t, server.network.Dials("shut.test:7"))
	})
}
