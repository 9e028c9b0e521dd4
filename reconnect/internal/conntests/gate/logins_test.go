package gate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
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
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestTheNextDialWaitsForALogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.LoggingIn(s.Hourly(2))
		var waits []reconnect.WaitStart
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { waits = append(waits, w) }}
		c, peer := s.Ready(&o)
		waits = nil
		peer.Fail(scene.ErrLost)
		d := s.WantDial()
		require.Equal(t, time.Second, d.At)
		d.Accept().Fail(scene.ErrLost)
		synctest.Wait()
		status := c.Status()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.Equal(t, s.Start().Add(time.Hour), status.Next)
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(status.Err))
		require.ErrorIs(t, status.Err, scene.ErrLost, "the cause of the loss is there too")
		c.Kick()
		s.WantNoDial()
		require.Equal(t, time.Hour, s.WantDial().At)
		require.Len(t, waits, 2)
		require.Equal(t, backoff.ReasonOther, backoff.ReasonOf(waits[0].Cause))
		require.Equal(t, time.Hour-time.Second, waits[1].Drawn)
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(waits[1].Cause))
		require.Equal(t, waits[0].Try+1, waits[1].Try)
	})
}

func TestTheFirstDialWaitsForALogin(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		l := scene.Hourly(t, 1)
		require.NoError(t, l.Take(t.Context()))
		o := scene.LoggingIn(l)
		c := s.Open(&o)
		s.WantNoDial()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// A wait of the policy that is longer is no wait for a login.
func TestALongerWaitHasItsOwnReason(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.LoggingIn(s.Hourly(1))
		o.Run.Policy = scene.Every(2 * time.Hour)
		c, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, backoff.ReasonOther, backoff.ReasonOf(c.Status().Err))
		require.Equal(t, 2*time.Hour, s.WantDial().At)
	})
}

func TestAWriteWithoutALoginEndsTheAttempt(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.Hourly(t, 1+s.Form.DownLogins())
		o := scene.LoggingIn(l)
		var refused error
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			refused = op.Write(scene.Text("login"))
			return nil
		}
		var last atomic.Pointer[reconnect.SessionDone]
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { last.Store(&e) }}
		c, d := s.Down(&o)
		require.NoError(t, l.Take(t.Context())) // another connection is faster
		peer := d.Accept()
		require.Empty(t, peer.Written())
		require.True(t, peer.Closed(), "no connection is held while it cannot log in")
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(refused))
		done := last.Load()
		require.ErrorIs(t, done.Cause, refused)
		require.Equal(t, backoff.ReasonLogins, done.Reason)
		require.Zero(t, done.Ready)
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(c.Status().Err))
		next := s.Opened.Add(time.Hour + time.Second)
		require.Equal(t, next, c.Status().Next, "the wait of the policy follows, so that two do not meet again")
		require.Equal(t, next, s.Start().Add(s.WantDial().At))
	})
}

func TestASessionTakesOneLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := s.Hourly(5)
		o := scene.LoggingIn(l)
		var late error
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			err := errors.Join(op.Write(scene.Text("login")), op.Write(scene.Text("subscribe")))
			late = op.NoLogin()
			return err
		}
		c, peer := s.Ready(&o)
		require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
		require.Len(t, peer.Written(), 3)
		require.Equal(t, 4, l.Free())
		require.ErrorContains(t, late, "has taken a login")
	})
}

func TestASessionThatIsNotWrittenToTakesNoLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := s.Hourly(5)
		o := scene.LoggingIn(l)
		o.OnSession = func(context.Context, *reconnect.Opening) error { return nil }
		c, _ := s.Ready(&o)
		require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
		require.Equal(t, 5+int(s.Form.Rotations), l.Free())
	})
}

// A server that goes on with a session needs no login for it, so that the dial must not wait for one.
func TestASessionThatGoesOnTakesNoLogin(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		l := scene.NewLogins(t, budget.LoginsOptions{
			Windows: []budget.Window{{N: 1 + s.Form.ReadyLogins(), Per: time.Hour}},
			Resumes: true,
		})
		o := scene.LoggingIn(l)
		var over *reconnect.Opening
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if over = op; op.Session == s.Form.Rotations+2 {
				require.NoError(t, op.NoLogin())
				require.NoError(t, op.NoLogin())
			}
			return op.Write(scene.Text("hello"))
		}
		c, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		d := s.WantDial()
		require.Equal(t, time.Second, d.At, "there is no login, and none may be needed")
		peer = d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Error(t, over.NoLogin(), "the opening is over")
		peer.Fail(scene.ErrLost)
		d = s.WantDial()
		require.Equal(t, 2*time.Second, d.At)
		d.Accept() // which logs in
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(c.Status().Err))
		require.Equal(t, time.Hour+time.Second, s.WantDial().At, "now it waits")
	})
}

func TestARunAsksItsSessionForALogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, l := time.Now(), scene.Hourly(t, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		var dials, logins []time.Duration
		err := reconnect.Run(ctx, func(context.Context) (net.Conn, error) {
			dials = append(dials, time.Since(start))
			a, b := net.Pipe()
			return a, b.Close()
		}, func(ctx context.Context, _ net.Conn, s *reconnect.Session) error {
			for range 2 { // the second call does nothing
				if err := s.Login(ctx); err != nil {
					return err
				}
			}
			logins = append(logins, time.Since(start))
			s.Ready()
			return nil
		}, &reconnect.RunOptions{Policy: scene.Every(time.Minute), Logins: l})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []time.Duration{0, time.Minute, time.Hour, 61 * time.Minute}, logins)
		require.Equal(t, logins, dials, "no dial was in vain")
	})
}

func TestALoginThatARunIsRefusedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, l := time.Now(), scene.Hourly(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		var logins []time.Duration
		_ = reconnect.Run(ctx, func(context.Context) (net.Conn, error) {
			if time.Since(start) == 0 {
				require.NoError(t, l.Take(t.Context()))
			}
			a, b := net.Pipe()
			return a, b.Close()
		}, func(ctx context.Context, _ net.Conn, s *reconnect.Session) error {
			if err := s.Login(ctx); err != nil {
				return err
			}
			logins = append(logins, time.Since(start))
			return nil
		}, &reconnect.RunOptions{Policy: scene.Every(time.Minute), Logins: l})
		require.Equal(t, []time.Duration{time.Hour + time.Minute}, logins)
	})
}

func TestThreeConnsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := scene.Hourly(t, 6), time.Now()
		var mu sync.Mutex
		var at []time.Duration
		login := func() {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start))
		}
		for i := range 3 {
			o := scene.LoggingIn(l)
			o.Run.Policy = backoff.Default()
			o.Run.Rand = rand.NewPCG(uint64(i), 1)
			c, err := reconnect.New(flapping{50 * time.Second, login}, &o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
		}
		time.Sleep(10*time.Hour - 1)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 60, len(at), "6 in each hour")
		require.Equal(t, 6, mostWithin(at, time.Hour))
	})
}

// flapping is a Dialer whose connections are lost some time after the first message, which is the login. It
// calls login with each.
type flapping struct {
	after time.Duration
	login func()
}

func (f flapping) Dial(context.Context) (conn.Conn, error) {
	return &flappingConn{Fake: conntest.NewFake(nil), flapping: f}, nil
}

type flappingConn struct {
	*conntest.Fake
	flapping
	wrote bool
}

func (c *flappingConn) Write(m conn.Message) error {
	if !c.wrote {
		c.wrote = true
		c.login()
		time.AfterFunc(c.after, func() { c.Fail(scene.ErrLost) })
	}
	return c.Fake.Write(m)
}

// mostWithin returns the largest number of instants in any interval of a length, with its beginning and without
// its end.
func mostWithin(at []time.Duration, per time.Duration) (most int) {
	first := 0
	for i := range at {
		for at[i]-at[first] >= per {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// loginMemory is a LoginStore of which a restart finds the times by the wall clock.
type loginMemory struct{ ns []int64 }

func (m *loginMemory) Load() (times []time.Time, err error) {
	for _, ns := range m.ns {
		times = append(times, time.Unix(0, ns))
	}
	return times, nil
}

func (m *loginMemory) Save(times []time.Time) error {
	m.ns = m.ns[:0]
	for _, at := range times {
		m.ns = append(m.ns, at.UnixNano())
	}
	return nil
}

// week lets a Conn flap for a week, in four processes, and returns when it has logged in, and how often it has
// dialed. Its sessions are ready for 50 s or, with failing set, OnSession fails after its login.
func week(t *testing.T, failing bool, budgeted bool) (at []time.Duration, dials int) {
	start, store := time.Now(), &loginMemory{}
	for i, process := range []time.Duration{10, 40, 70, 48} { // hours; the second restart is when the budget is used up
		o := reconnect.Options{OnSession: func(_ context.Context, op *reconnect.Opening) error {
			if err := op.Write(scene.Text("login")); err != nil || !failing {
				return err
			}
			return scene.ErrLost
		}}
		o.Run.Rand = rand.NewPCG(uint64(i), 7)
		o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) { dials++ }}
		if budgeted {
			o.Run.Logins = scene.NewLogins(t, budget.LoginsOptions{
				Windows: []budget.Window{{N: 900, Per: 24 * time.Hour}},
				Store:   store,
			})
		}
		c, err := reconnect.New(flapping{50 * time.Second, func() { at = append(at, time.Since(start)) }}, &o)
		require.NoError(t, err)
		time.Sleep(process*time.Hour - 1)
		scene.CloseAndWait(c)
	}
	return at, dials
}

// The figure of the budget: 900 logins a day, in a week of flapping with three restarts.
func TestABudgetOfLoginsHoldsForAWeekOfFlapping(t *testing.T) {
	for _, failing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			at, dials := week(t, failing, true)
			free, _ := week(t, failing, false)
			perDay := make([]int, 7)
			for _, d := range at {
				perDay[d/(24*time.Hour)]++
			}
			fewest := slices.Min(perDay)
			t.Logf("OnSession fails %v: %d logins, %d dials, most in 24 h %d, fewest in a day %d; without a budget %d logins, most in 24 h %d",
				failing, len(at), dials, mostWithin(at, 24*time.Hour), fewest, len(free), mostWithin(free, 24*time.Hour))
			require.Equal(t, 900, mostWithin(at, 24*time.Hour))
			require.Equal(t, len(at), dials, "no dial was in vain")
			require.Greater(t, mostWithin(free, 24*time.Hour), 1000)
			require.Equal(t, 900, fewest)
		})
	}
}
