package gate_test

import (
	"context"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// This file tests reservations: of several connections that wait for one login, only one dials.

// counting is a Dialer whose dials take a while. Some dials fail, and all connections are lost soon. It counts the dials
// that bring a connection.
type counting struct {
	flapping
	mu    sync.Mutex // guards what follows
	rand  *rand.Rand
	dials int
}

func (c *counting) Dial(ctx context.Context) (conn.Conn, error) {
	c.mu.Lock()
	fails, takes := c.rand.IntN(4) == 0, time.Duration(c.rand.Int64N(int64(3*time.Second)))
	c.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if fails {
		return nil, scene.ErrLost
	}
	c.mu.Lock()
	c.dials++
	c.mu.Unlock()
	return c.flapping.Dial(ctx)
}

// Twenty connections flap, and there are 12 logins a minute for all. Each dial that brings a connection makes a login.
func TestThoseThatWouldGetNoLoginDoNotDial(t *testing.T) {
	t.Run("without a gate", func(t *testing.T) { wantNoDialInVain(t, nil) })
	t.Run("with a gate", func(t *testing.T) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		wantNoDialInVain(t, g)
	})
}

func wantNoDialInVain(t *testing.T, g reconnect.Gate) {
	synctest.Test(t, func(t *testing.T) {
		l := scene.NewLogins(t, budget.LoginsOptions{Windows: []budget.Window{{N: 12, Per: time.Minute}}})
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		login := func() {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start))
		}
		d := &counting{flapping: flapping{10 * time.Second, login}, rand: rand.New(rand.NewPCG(1, 2))}
		for i := range 20 {
			o := scene.LoggingIn(l)
			o.Run.Policy = backoff.Default()
			o.Run.Rand = rand.NewPCG(uint64(i), 1)
			if g != nil {
				o.Run.Gate, o.Run.Host = g, "host.example"
			}
			c, err := reconnect.New(d, &o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
		}
		time.Sleep(3*time.Hour - 1)
		mu.Lock()
		defer mu.Unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		t.Logf("%d connections were made for %d logins, of %d that were possible", d.dials, len(at), 3*60*12)
		require.Equal(t, d.dials, len(at), "no connection was made in vain")
		require.Equal(t, 12, mostWithin(at, time.Minute))
		require.Greater(t, len(at), 3*60*12*9/10, "reservations do not waste the budget")
	})
}

// pair opens two connections that share the last login. The first one, which is down, dials.
func pair(t *testing.T, s *scene.Scene, l *budget.Logins) (first, second *reconnect.Conn, d *scene.PendingDial) {
	o := scene.LoggingIn(l)
	first, d = s.Down(&o)
	o = scene.LoggingIn(l)
	second = s.Open(&o)
	s.WantNoDial()
	require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(second.Status().Err))
	return first, second, d
}

func TestALoginThatIsNotMadeGoesToAnotherAtOnce(t *testing.T) {
	for name, end := range map[string]func(first *reconnect.Conn, d *scene.PendingDial){
		"the dial fails":     func(_ *reconnect.Conn, d *scene.PendingDial) { d.Refuse(scene.ErrLost) },
		"the Conn is closed": func(c *reconnect.Conn, _ *scene.PendingDial) { scene.CloseAndWait(c) },
		"the Conn ends for good": func(_ *reconnect.Conn, d *scene.PendingDial) {
			d.Refuse(backoff.Permanent(scene.ErrLost))
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				l := scene.Hourly(t, 1+s.Form.DownLogins())
				first, second, d := pair(t, s, l)
				require.Equal(t, s.Opened.Add(time.Hour), second.Status().Next, "the first login counts for so long")
				time.Sleep(100 * time.Millisecond)
				end(first, d)
				next := s.WantDial()
				require.Equal(t, 100*time.Millisecond, next.At)
				next.Accept()
				require.Equal(t, reconnect.StateReady, second.State())
				require.Zero(t, l.Free())
			})
		})
	}
}

func TestASessionWithoutALoginGivesItsReservationBack(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.Hourly(t, 1)
		o := scene.LoggingIn(l)
		o.OnSession = nil
		_, d := s.Down(&o)
		o = scene.LoggingIn(l)
		second := s.Open(&o)
		s.WantNoDial()
		d.Accept() // it is ready, and has not written
		s.WantDial().Accept()
		require.Equal(t, reconnect.StateReady, second.State())
	})
}

// A kick does not begin a dial while the login is reserved.
func TestAKickDoesNotTakeAReservedLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		_, second, d := pair(t, s, scene.Hourly(t, 1+s.Form.DownLogins()))
		second.Kick()
		s.WantNoDial()
		d.Accept()
		s.WantNoDial()
		require.Equal(t, s.Opened.Add(time.Hour), second.Status().Next)
		require.Equal(t, s.Opened.Add(time.Hour), s.Start().Add(s.WantDial().At))
	})
}

func TestARotationThatBreaksFirstWaitsForALoginBesideItsSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		o := scene.LoggingIn(s.Hourly(1))
		c, peer := s.Ready(&o)
		c.Rotate(s.Session, reconnect.Advice{})
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		require.False(t, peer.Closed())
		require.Equal(t, reconnect.StateReady, c.State())
		s.WantDial().Accept()
		require.True(t, peer.Closed())
		require.Equal(t, s.Session+1, c.Status().Session)
		require.Equal(t, s.Form.Rotations+1, c.Stats().Rotations)
	})
}

// The gate of a host that is down may hold a Conn for long. No session can have passed it.
func TestAConnAtAGateLeavesTheLastLoginToOthers(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		g := make(oneGate, 1)
		o.Run.Gate, o.Run.Host = g, "down.example"
		first, peer := s.Ready(&o)
		g <- struct{}{} // no other dial is admitted
		peer.Fail(scene.ErrLost)
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, first.Status().AtGate)
		o = scene.LoggingIn(l)
		second := s.Open(&o)
		d := s.WantDial()
		require.Equal(t, time.Second, d.At)
		d.Accept()
		require.Equal(t, reconnect.StateReady, second.State())
		require.Zero(t, l.Free())
	})
}

// The dial functions of two Runs take the logins. The sessions are never ready.
func TestALoginThatTheDialFunctionTakesCountsOnce(t *testing.T) {
	for name, x := range map[string]struct {
		logins budget.Window
		dials  []time.Duration
	}{
		"two are left": {budget.Window{N: 2, Per: time.Hour}, []time.Duration{0, 0}},
		"one is left":  {budget.Window{N: 1, Per: time.Minute}, []time.Duration{0, time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := scene.NewLogins(t, budget.LoginsOptions{Windows: []budget.Window{x.logins}}), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				var mu sync.Mutex
				var dials []time.Duration
				var runs sync.WaitGroup
				for range 2 {
					runs.Go(func() {
						_ = reconnect.Run(ctx, func(ctx context.Context) (net.Conn, error) {
							if err := l.Take(ctx); err != nil {
								return nil, err
							}
							mu.Lock()
							defer mu.Unlock()
							dials = append(dials, time.Since(start))
							a, b := net.Pipe()
							return a, b.Close()
						}, func(ctx context.Context, _ net.Conn, _ *reconnect.Session) error {
							<-ctx.Done()
							return nil
						}, &reconnect.RunOptions{Logins: l})
					})
				}
				runs.Wait()
				require.Equal(t, x.dials, dials)
			})
		})
	}
}

func TestAKickWhileNoLoginIsLeftIsNotLost(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.LoggingIn(s.Hourly(1))
		o.Run.Policy = scene.Every(10 * time.Hour)
		c, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		c.Kick()
		s.WantNoDial()
		require.Equal(t, time.Hour, s.WantDial().At, "the wait of the policy is over")
	})
}

func TestAKickWhileTheLastLoginIsReservedIsNotLost(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		o.Run.Policy = scene.Every(10 * time.Hour)
		c, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		o = scene.LoggingIn(l)
		other := s.Open(&o)
		s.WantDial() // for the last login
		c.Kick()
		s.WantNoDial()
		time.Sleep(time.Second)
		scene.CloseAndWait(other)
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// The clock of the budget is an hour behind time.Now.
func TestAWaitForALoginGoesByTheClockOfTheBudget(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.NewLogins(t, budget.LoginsOptions{
			Windows: []budget.Window{{N: 1 + s.Form.ReadyLogins(), Per: time.Minute}},
			Now:     func() time.Time { return time.Now().Add(-time.Hour) },
		})
		o, waits := scene.LoggingIn(l), 0
		o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.WaitStart) {
			waits++
			require.Equal(t, 1, waits, "a second wait would begin at once, without end")
		}}
		_, peer := s.Ready(&o)
		waits = 0
		peer.Fail(scene.ErrLost)
		require.Equal(t, s.Opened.Add(time.Minute), s.Start().Add(s.WantDial().At))
	})
}

func TestARotationThatBreaksFirstFollowsALoginThatIsGivenBack(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		c, peer := s.Ready(&o)
		o = scene.LoggingIn(l)
		other := s.Open(&o)
		s.WantDial() // for the last login
		c.Rotate(s.Session, reconnect.Advice{})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.False(t, peer.Closed())
		scene.CloseAndWait(other)
		require.LessOrEqual(t, s.WantDial().At, 5*time.Second)
		require.True(t, peer.Closed())
	})
}

// The session of the first Conn needs no login, and is not ready yet.
func TestNoLoginGivesTheReservationBackAtOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.Hourly(t, 1)
		o := scene.LoggingIn(l)
		o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
			err := op.NoLogin()
			if op.Session == s.Session {
				<-ctx.Done()
			}
			return err
		}
		first, d := s.Down(&o)
		o = scene.LoggingIn(l)
		s.Open(&o)
		s.WantNoDial()
		d.Accept()
		require.Zero(t, s.WantDial().At)
		require.NotEqual(t, reconnect.StateReady, first.State())
	})
}

func TestACallbackThatExitsLeavesNoReservation(t *testing.T) {
	for _, place := range []string{"dial", "DialStart", "DialDone", "SessionStart", "session"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, exits := scene.Hourly(t, 1), 0
				at := func(p string) {
					if p == place {
						exits++
						runtime.Goexit()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var running sync.WaitGroup
				running.Go(func() {
					_ = reconnect.Run(ctx, func(context.Context) (net.Conn, error) {
						at("dial")
						a, b := net.Pipe()
						return a, b.Close()
					}, func(context.Context, net.Conn, *reconnect.Session) error {
						at("session")
						return nil
					}, &reconnect.RunOptions{Logins: l, Trace: &reconnect.Trace{
						DialStart:    func(reconnect.DialStart) { at("DialStart") },
						DialDone:     func(reconnect.DialDone) { at("DialDone") },
						SessionStart: func(*reconnect.Session) { at("SessionStart") },
					}})
				})
				running.Wait()
				require.NotZero(t, exits)
				_, short, _ := l.Reserve(nil)
				require.Nil(t, short)
			})
		})
	}
}

// A Conn has the same hooks as a Run, and OnSession instead of the session.
func TestConnLeavesNoReservationWhenCallbackExits(t *testing.T) {
	for _, place := range []string{"DialStart", "DialDone", "SessionStart", "OnSession"} {
		t.Run(place, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				l := scene.Hourly(t, 1+s.Form.DownLogins())
				o := scene.LoggingIn(l)
				exits := false
				at := func(p string) {
					if exits && p == place {
						runtime.Goexit()
					}
				}
				login := o.OnSession
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					at("OnSession")
					return login(ctx, op)
				}
				o.Run.Trace = &reconnect.Trace{
					DialStart:    func(reconnect.DialStart) { at("DialStart") },
					DialDone:     func(reconnect.DialDone) { at("DialDone") },
					SessionStart: func(*reconnect.Session) { at("SessionStart") },
				}
				c, d := s.Down(&o)
				exits = true
				if place == "DialStart" {
					d.Refuse(scene.ErrLost)
				} else {
					d.Accept()
				}
				if place != "OnSession" { // which ends the session only
					<-c.Done()
				}
				_, short, _ := l.Reserve(nil)
				require.Nil(t, short)
			})
		})
	}
}

// A dial beside a handshake that hangs waits at a gate.
func TestAHandshakeThatHangsKeepsItsLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.Hourly(t, 1+s.Form.DownLogins())
		o := scene.LoggingIn(l)
		o.Run.Policy = scene.Hanging{}
		g := make(oneGate, 1)
		o.Run.Gate, o.Run.Host = g, "h"
		first, d := s.Hang(&o)
		go func() { g <- struct{}{} }() // another takes the place
		o = scene.LoggingIn(l)
		second := s.Open(&o)
		s.WantNoDial()
		time.Sleep(11 * time.Second) // the handshake hangs, and another dial waits at the gate
		synctest.Wait()
		s.WantNoDial()
		d.Accept()
		require.Equal(t, reconnect.StateReady, first.State())
		require.Equal(t, reconnect.StateWaiting, second.State())
	})
}

// The second rotation begins while the first has not closed its session yet.
func TestTwoRotationsThatBreakFirstDoNotCloseForOneLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		l := s.Hourly(3)
		var second *reconnect.Conn
		o := scene.LoggingIn(l)
		o.Run.Trace = &reconnect.Trace{RotateStart: func(reconnect.RotateStart) {
			if second != nil {
				second.Rotate(1, reconnect.Advice{})
				time.Sleep(time.Millisecond)
			}
		}}
		first, _ := s.Ready(&o)
		o = scene.LoggingIn(l)
		o.Rotate.Overlap = reconnect.OverlapBreakFirst
		second = s.Open(&o)
		peer := s.WantDial().Accept()
		first.Rotate(s.Session, reconnect.Advice{})
		s.WantDial().Accept()
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, first.State())
		require.Equal(t, s.Session+1, first.Status().Session)
		require.False(t, peer.Closed())
		require.Equal(t, reconnect.StateReady, second.State())
		require.Zero(t, l.Free())
		time.Sleep(time.Hour - time.Minute)
		synctest.Wait()
		require.False(t, peer.Closed())
	})
}

// A Conn ends in the moment in which its rotation has reserved a login, and has not closed the session.
func TestARotationThatBreaksFirstLeavesNoReservation(t *testing.T) {
	for name, end := range map[string]func(c *reconnect.Conn, peer *conntest.Fake){
		"Close":       func(c *reconnect.Conn, _ *conntest.Fake) { c.Close() },
		"a lost Conn": func(_ *reconnect.Conn, peer *conntest.Fake) { peer.Fail(backoff.Permanent(scene.ErrLost)) },
		"Goexit":      func(*reconnect.Conn, *conntest.Fake) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.BreakFirst()
				l := s.Hourly(2)
				o := scene.LoggingIn(l)
				rotating := func() {}
				o.Run.Trace = &reconnect.Trace{RotateStart: func(reconnect.RotateStart) { rotating() }}
				c, peer := s.Ready(&o)
				rotating = func() {
					end(c, peer)
					time.Sleep(time.Millisecond)
				}
				c.Rotate(s.Session, reconnect.Advice{})
				<-c.Done()
				_, short, _ := l.Reserve(nil)
				require.Nil(t, short)
			})
		})
	}
}

// The peer does not answer the close, so that the rotation is due while Shutdown waits.
func TestARotationThatIsDueDuringShutdownLeavesNoReservation(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		c, peer := s.Ready(&o)
		peer.Mute()
		c.Rotate(s.Session, reconnect.Advice{Wait: time.Second})
		require.Error(t, c.Shutdown(t.Context()))
		_, short, _ := l.Reserve(nil)
		require.Nil(t, short)
	})
}

// Another Conn waits for the login when the rotation has closed the session, and waits at a gate.
func TestARotationThatBreaksFirstKeepsItsLoginAtAGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		o.Run.Gate, o.Run.Host = new(scene.Gate), "host.example"
		rotating := func() {}
		o.Run.Trace = &reconnect.Trace{RotateStart: func(reconnect.RotateStart) { rotating() }}
		c, _ := s.Ready(&o)
		var other *reconnect.Conn
		rotating = func() {
			o := scene.LoggingIn(l)
			other = s.Open(&o)
			time.Sleep(time.Millisecond)
		}
		c.Rotate(s.Session, reconnect.Advice{})
		s.WantDial().Accept()
		require.Equal(t, s.Session+1, c.Status().Session)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, reconnect.StateWaiting, other.State())
	})
}

// The login that was reserved for the session after OverlapBreakFirst is that session's only, also if the server
// refuses the session.
func TestReservationEndsWithRefusedNextSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.BreakFirst()
		l := s.Hourly(2)
		o := scene.LoggingIn(l)
		refused := false
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			err := op.Write(scene.Text("login"))
			if err == nil && refused {
				err = scene.ErrLost
			}
			return err
		}
		o.Rotate.Overlap = reconnect.OverlapBreakFirst
		c, _ := s.Ready(&o)
		refused = true
		c.Rotate(s.Session, reconnect.Advice{})
		s.WantDial().Accept()
		require.Zero(t, l.Free())
		require.Greater(t, s.WantDial().At, 59*time.Minute)
	})
}
