package gate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A handshake that hangs may have a place in a server's queue. It is kept, and another dial
// begins beside it.
func TestAHandshakeThatHangsIsKeptAndAnotherDialBegins(t *testing.T) {
	for name, winner := range map[string]int{"the kept one": 0, "the other": 1} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				var logins []uint64
				o := scene.WithPolicy(scene.Hanging{})
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					logins = append(logins, op.Session)
					return nil
				}
				// The first handshake hangs for 10 s.
				c, first := s.Hang(&o)
				logins = nil
				dials := c.Stats().Dials
				// A second dial begins beside it, and hangs too.
				second := s.WantDial()
				require.Equal(t, 10*time.Second, second.At)
				second.Connected()
				require.Equal(t, reconnect.StateConnecting, c.State())
				// The winner is answered: it becomes the session, and the other dial is cut.
				both := []*scene.PendingDial{first, second}
				require.NoError(t, both[winner].Ctx.Err())
				peer := both[winner].Accept()
				require.Equal(t, reconnect.StateReady, c.State())
				require.Error(t, both[1-winner].Ctx.Err())
				cause := context.Cause(both[1-winner].Ctx)
				require.Equal(t, winner == 1, errors.Is(cause, backoff.ErrHung), "the other one does not hang")
				// There was one login, and the loss is followed by one wait.
				require.Equal(t, []uint64{s.Session}, logins)
				require.Equal(t, dials+1, c.Stats().Dials)
				peer.Fail(scene.ErrLost)
				require.Equal(t, 11*time.Second, s.WantDial().At)
			})
		})
	}
}

func TestThereIsNoThirdDial(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, first := s.Hang(&o)
		for n := range 5 {
			beside := s.WantDial()
			beside.Connected()
			require.Equal(t, time.Duration(n+1)*10*time.Second, beside.At)
			require.NoError(t, first.Ctx.Err())
			synctest.Wait()
			defer func() { require.Error(t, beside.Ctx.Err()) }()
			time.Sleep(10*time.Second - 1)
			s.WantNoDial()
			require.NoError(t, beside.Ctx.Err())
		}
		first.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 1.
func TestAtMostTwoDialsAreInFlight(t *testing.T) {
	for name, one := range map[string]bool{"two": false, "OneConnection": true} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Second))
				o.Run.OneConnection = one
				c, d := s.Down(&o)
				c.Kick()
				if !one {
					require.Zero(t, s.WantDial().At)
				}
				for range 3 {
					c.Kick()
					c.Redial(0, scene.ErrLost)
					s.WantNoDial()
				}
				d.Accept()
				time.Sleep(time.Hour)
				s.WantNoDial()
			})
		})
	}
}

// Promise 1, counted by the network.
func TestThereAreNeverMoreThanTwoConnections(t *testing.T) {
	t.Run("two", func(t *testing.T) { scene.InEachWSForm(t, nil, wantAtMost(2)) })
	t.Run("OneConnection", func(t *testing.T) { scene.InEachWSForm(t, nil, wantAtMost(1)) })
}

// wantAtMost returns a test that there are never more than n connections to a server that fails at random.
func wantAtMost(n int) func(t *testing.T, server *scene.WSServer) {
	return func(t *testing.T, server *scene.WSServer) {
		random := rand.New(rand.NewPCG(1, 2))
		server.Network.Fault(scene.WSAddr, conntest.Fault{Delay: 300 * time.Millisecond}, conntest.Fault{})
		o := scene.WithPolicy(scene.Every(100 * time.Millisecond))
		o.Run.OneConnection = n == 1
		c := server.Ready(t, &o)
		for server.Now() < time.Minute {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			late := time.Duration(random.Int64N(int64(time.Second)))
			server.Network.Fault(scene.WSAddr, conntest.Fault{
				Delay: late, IgnoresContext: random.IntN(2) == 0, CompletesAnyway: true,
			})
			server.Network.ResetAll(scene.WSAddr)
			c.Kick()
			c.Redial(c.Status().Session, scene.ErrLost)
		}
		count := server.Network.Count(scene.WSAddr)
		require.Greater(t, len(server.Network.Dials(scene.WSAddr)), 30)
		require.LessOrEqual(t, count.MaxDialing, n)
		require.LessOrEqual(t, count.MaxOpen, n)
		require.LessOrEqual(t, count.MaxHeld, n)
	}
}

func TestOneConnectionGivesUpAHandshakeThatHangs(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var done []reconnect.DialDone
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.OneConnection = true
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d) }}
		c, first := s.Hang(&o)
		failures := c.Stats().Failures
		second := s.WantDial()
		limit := 10 * time.Second
		if s.Session == 1 {
			limit = backoff.DefaultHandshake
		}
		require.Equal(t, limit, second.At)
		require.ErrorIs(t, first.Ctx.Err(), context.DeadlineExceeded)
		require.ErrorIs(t, done[len(done)-1].Err, backoff.ErrHung)
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		require.Equal(t, failures+1, c.Stats().Failures)
	})
}

// A dial that fails beside a handshake that hangs is followed by a wait, and the state stays
// StateConnecting.
func TestBesideAHandshakeThatHangsFailuresAreWaitedAfter(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, first := s.Hang(&o)
		failures := c.Stats().Failures
		s.WantDial().Refuse(scene.ErrLost)
		require.Equal(t, reconnect.StateConnecting, c.State())
		s.WantNoDial()
		third := s.WantDial()
		require.Equal(t, 11*time.Second, third.At)
		first.Refuse(scene.ErrLost)
		require.NoError(t, third.Ctx.Err())
		third.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, failures+2, c.Stats().Failures)
	})
}

// A server that has asked to wait while another handshake hung has asked from then on. What Status and WaitStart
// announce when that handshake fails is what is left.
func TestARetryAfterBesideAHandshakeThatHangsIsAnnouncedAsFarAsItIsLeft(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var waits []reconnect.WaitStart
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { waits = append(waits, w) }}
		c, first := s.Hang(&o)
		waits = nil
		s.WantDial().Refuse(backoff.RetryAfter(scene.ErrLost, 6*time.Second))
		next := s.Now() + 7*time.Second // and 1 s of the policy
		time.Sleep(4 * time.Second)
		first.Refuse(scene.ErrLost)
		require.Equal(t, s.Start().Add(next), c.Status().Next)
		require.Len(t, waits, 1)
		require.Equal(t, next-s.Now(), waits[0].Verdict.RetryAfter+waits[0].Drawn)
		require.GreaterOrEqual(t, waits[0].Drawn, time.Duration(0))
		require.Equal(t, next, s.WantDial().At)
	})
}

func TestAHandshakeThatHangsGivesItsPlaceAtTheGateBack(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := &scene.Gate{}
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c, first := s.Hang(&o)
		before := len(g.All())
		second := s.WantDial()
		require.Equal(t, 11*time.Second, second.At, "1 s at the gate")
		require.Equal(t, []string{"done overload", "acquire h"}, g.All()[before:])
		first.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, []string{"done overload", "acquire h", "done stop"}, g.All()[before:])
	})
}

// A kick during a dial says nothing about the host, and begins another dial.
func TestAKickDuringADialBeginsAnotherBeside(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := &scene.Gate{}
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.Gate, o.Run.Host = g, "h"
		c, first := s.Down(&o)
		before := len(g.All())
		time.Sleep(time.Second)
		c.Kick()
		second := s.WantDial()
		require.Equal(t, 2*time.Second, second.At, "1 s at the gate")
		require.NoError(t, first.Ctx.Err())
		require.Equal(t, []string{"done stop", "acquire h"}, g.All()[before:])
		second.Accept()
		require.Error(t, first.Ctx.Err())
	})
}

// A dial that has failed for good ends the other one, whose error says so.
func TestADialThatHasFailedForGoodEndsTheOther(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		var done []error
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d.Err) }}
		c, _ := s.Down(&o)
		done = nil
		c.Kick()
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		<-c.Done()
		require.Len(t, done, 2)
		require.ErrorIs(t, done[0], scene.ErrLost)
		require.ErrorIs(t, done[1], context.Canceled)
		require.ErrorContains(t, done[1], "another dial has failed for good")
	})
}

func TestCloseEndsBothDials(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, first := s.Hang(&o)
		second := s.WantDial()
		scene.CloseAndWait(c)
		require.Error(t, first.Ctx.Err())
		require.Error(t, second.Ctx.Err())
		require.Equal(t, 10*time.Second, s.Now())
	})
}

// Both dials bring a connection at one instant: one is used, and the other is closed.
func TestOfTwoConnectionsOneIsClosed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, first := s.Hang(&o)
		second := s.WantDial()
		var peers []*conntest.Fake
		both := make(chan struct{})
		for _, d := range []*scene.PendingDial{first, second} {
			peer := conntest.NewFake(nil)
			peers = append(peers, peer)
			d.Answer <- func() (conn.Conn, error) { <-both; return peer.Conn(), nil }
		}
		close(both)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		closed := slices.DeleteFunc(slices.Clone(peers), func(p *conntest.Fake) bool { return !p.Closed() })
		require.Len(t, closed, 1)
	})
}

func TestManyThatStartAtOneInstantAreSpread(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.StartSpread = time.Hour
		o.Run.Rand = rand.NewPCG(1, 2)
		c := s.Open(&o)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		d := s.WantDial()
		require.NotZero(t, d.At)
		require.Less(t, d.At, time.Hour)
		d.Refuse(scene.ErrLost)
		require.Equal(t, d.At+time.Second, s.WantDial().At)
	})
}

// Over real coder/websocket: a load balancer accepts the first connection and never answers it,
// and the server answers new connections only.
func TestAServerThatAnswersOnlyNewConnectionsIsReached(t *testing.T) {
	scene.InEachWSForm(t, nil, func(t *testing.T, server *scene.WSServer) {
		o := scene.WithPolicy(backoff.Default())
		c := server.Down(t, &o)
		before := len(server.Network.Dials(scene.WSAddr))
		server.Next(conntest.Hang, server.Accept)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Less(t, server.Now(), 12*time.Second, "2 s for the first wait")
		require.Equal(t, before+2, len(server.Network.Dials(scene.WSAddr)))
		synctest.Wait()
		require.Equal(t, 1, server.Network.Count("").Open)
	})
}

// Over real coder/websocket: the kept handshake is answered, and the dial beside it has not failed.
func TestADialThatIsNotNeededAnyMoreIsCanceled(t *testing.T) {
	scene.InEachWSForm(t, nil, func(t *testing.T, server *scene.WSServer) {
		var done []error
		o := scene.WithPolicy(backoff.Default())
		o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) { done = append(done, d.Err) }}
		c := server.Down(t, &o)
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, _ := s.Hang(&o)
		d := s.WantDial()
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, backoff.ErrHung)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		d.Refuse(backoff.Slow(scene.ErrLost))
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		require.ErrorIs(t, c.AwaitReady(t.Context()), scene.ErrLost)
	})
}

func TestADialThatIsKeptHoldsNoPlaceAtTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(backoff.Default())
		o.Run.Gate, o.Run.Host = make(oneGate, 1), "h"
		s.Hang(&o)
		for range 4 { // the first of these takes its place
			s.WantDial().Connected()
		}
		require.Less(t, s.Now(), 41*time.Second)
	})
}

// queueing is hanging, but a dial that finds the backlog full takes the place.
type queueing struct{ scene.Hanging }

func (q queueing) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	s, ok := q.Hanging.Next(a, r)
	s.SwapIfFull = true
	return s, ok
}

// The time at a gate is none in which a dial connects, so that it says nothing about the backlog.
func TestADialThatFindsTheBacklogFullTakesThePlaceOfTheKeptOne(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(queueing{})
		o.Run.Gate, o.Run.Host = &scene.Gate{}, "h"
		_, first := s.Hang(&o)
		// The dial beside waits at the gate for as long, is connected at once, and has 10 s.
		second := s.WantDial()
		second.Connected()
		third := s.WantDial()
		require.Equal(t, second.At+11*time.Second, third.At)
		require.NoError(t, first.Ctx.Err())
		// The next needs a second to connect, and takes the place.
		time.Sleep(time.Second)
		third.Connected()
		require.Equal(t, third.At+12*time.Second, s.WantDial().At)
		require.Error(t, first.Ctx.Err())
		require.NoError(t, third.Ctx.Err())
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
			func() seenGate { return new(scene.Gate) },
			[]string{"done overload", "acquire h"}, time.Second,
		},
		"let in": {
			func() seenGate { return new(yieldingGate) },
			[]string{"done overload", "acquire h", "done stop"}, time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				g := test.gate()
				o := scene.WithPolicy(scene.Hanging{})
				o.Run.Gate, o.Run.Host = g, "h"
				// The first handshake hangs, and the next dial waits at the gate.
				c, first := s.Hang(&o)
				before, dials := len(g.All()), c.Stats().Dials
				if g, ok := g.(*yieldingGate); ok {
					g.shut.Store(true)
				}
				time.Sleep(10*time.Second + time.Second/2) // the next one waits at the gate
				// The answer to the first asks to wait for a minute. The dial at the gate is held.
				next := s.Now() + 61*time.Second
				first.Refuse(backoff.RetryAfter(scene.Answered(503), time.Minute))
				require.Equal(t, test.seen, g.All()[before:])
				require.Equal(t, reconnect.StateWaiting, c.State())
				require.Equal(t, s.Start().Add(next), c.Status().Next)
				// It begins after that minute and the wait of a second.
				d := s.WantDial()
				require.Equal(t, next+test.holds, d.At)
				require.Equal(t, first.Try.Number+1, d.Try.Number)
				require.Equal(t, dials+1, c.Stats().Dials)
			})
		})
	}
}

func TestAPermanentErrorBesideAHandshakeThatHangsIsTheEnd(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, _ := s.Hang(&o)
		failures := c.Stats().Failures
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		<-c.Done()
		require.ErrorIs(t, c.Err(), scene.ErrLost)
		require.Equal(t, failures+1, c.Stats().Failures)
	})
}

// Two in three of the server's backends accept connections and answer no handshake. Nearly
// all clients must find another one within minutes.
func TestClientsConnectThoughMostBackendsHang(t *testing.T) {
	const clients = 200
	scene.WithWSServer(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
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
			server.Dialer = &dialer.WebSocket{URL: server.Dialer.URL, DialContext: server.Network.DialContext}
			conns[i] = server.Open(t, nil)
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
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		server.Dialer.Address, server.Dialer.Addresses = "", []string{"hole.test:7", "shut.test:7", scene.FramedAddr}
		server.Network.Fault("hole.test:7", conntest.Fault{Hang: true})
		server.Network.Fault("shut.test:7", conntest.Fault{Err: syscall.ECONNREFUSED})
		o := scene.WithPolicy(scene.Every(time.Second))
		c, peer := server.Ready(t, &o)
		for n := range uint64(20) {
			peer.Say(t, "hello\n")
			scene.WantMessage(t, c, server.Session+n, "hello")
			peer.Pipe.Reset()
			scene.WantSeam(t, c)
			peer = server.Next(t)
		}
		require.NotEmpty(t, server.Network.Dials("hole.test:7"))
		require.NotEmpty(t, server.Network.Dials("shut.test:7"))
	})
}
