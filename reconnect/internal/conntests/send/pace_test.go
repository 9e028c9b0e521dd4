package send_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// policed is a connection that notes when it is written to and pinged. A venue does the same,
// and bans a client that sends too much.
type policed struct {
	*conntest.Fake
	mu sync.Mutex // guards at
	at []time.Time
}

func (p *policed) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Now())
}

func (p *policed) Write(m conn.Message) error { p.note(); return p.Fake.Conn().Write(m) }

func (p *policed) Ping(ctx context.Context) error {
	p.note()
	return p.Fake.Conn().(conn.Pinger).Ping(ctx)
}

// watch requires that no interval has more than w allows, and returns when all came.
func (p *policed) watch(t *testing.T, w budget.Window) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	require.True(t, slices.IsSortedFunc(p.at, time.Time.Compare))
	for i := w.N; i < len(p.at); i++ {
		require.GreaterOrEqual(t, p.at[i].Sub(p.at[i-w.N]), w.Per, "messages %d to %d", i-w.N, i)
	}
	return p.at
}

// paced is ready with a window before a policed peer.
func paced(s *scene.Scene, o *reconnect.Options, w budget.Window) (*reconnect.Conn, *policed) {
	o.Pace = w
	var p *policed
	s.Fake = scene.Alive
	s.Wrap = func(peer *conntest.Fake) conn.Conn {
		p = &policed{Fake: peer}
		return p
	}
	c, _ := s.Ready(o)
	s.Wrap = nil
	return c, p
}

// Whoever sends, by whatever way: no interval has more than N messages and pings.
func TestPaceHoldsForAllThatIsSent(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		w := budget.Window{N: 5, Per: time.Second}
		o, log := scene.Sending(reconnect.WhenDownFail)
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			for range 4 {
				require.NoError(t, op.Write(scene.Text("login")))
			}
			return nil
		}
		o.KeepAlive = reconnect.KeepAlive{
			Every:   700 * time.Millisecond,
			Message: func() conn.Message { return scene.Text("idle") },
		}
		o.Liveness.ProbeEvery = 300 * time.Millisecond
		c, p := paced(s, o, w)
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for range 5 {
					require.NoError(t, c.Write(context.Background(), scene.Text("write")))
				}
			})
		}
		for range 20 {
			scene.Queue(t, c, "send")
		}
		writers.Wait()
		time.Sleep(10 * time.Second)
		require.Len(t, log.All(), 20)
		all := p.watch(t, w)
		require.Greater(t, len(all), 44+20)
		require.Equal(t, all[0], all[4]) // what may go at once goes at once
	})
}

func TestPaceHoldsInOnSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Pace = budget.Window{N: 2, Per: time.Second}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			for range 5 {
				if err := op.Write(scene.Text("login")); err != nil {
					return err
				}
			}
			return nil
		}
		c, d := s.Down(&o)
		d.Accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, 2*time.Second, s.Now())
	})
}

// Messages keep their order, and go as early as they may.
func TestPacedMessagesGoInOrderAsSoonAsTheyMay(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Liveness.Limit = -1
		c, p := paced(s, o, budget.Window{N: 2, Per: time.Second})
		scene.Queue(t, c, "a", "b", "c", "d", "e")
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, scene.Texts(p.Fake))
		var at []time.Duration
		for _, when := range p.watch(t, budget.Window{N: 2, Per: time.Second}) {
			at = append(at, when.Sub(s.Start()))
		}
		require.Equal(t, []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second}, at)
	})
}

// Neither the end of the caller's context nor a deadline waits for the window.
func TestAPacedMessageCanBeTooLate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, log := scene.Sending(reconnect.WhenDownFail)
		o.Liveness.Limit = -1
		c, p := paced(s, o, budget.Window{N: 1, Per: time.Minute})
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Write(ctx, scene.Text("b")), context.DeadlineExceeded)
		require.Equal(t, time.Second, s.Now())
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("c"), Deadline: time.Now().Add(time.Second)}))
		time.Sleep(2 * time.Minute)
		log.Want(t, "c: dropped 0")
		require.Equal(t, []string{"a"}, scene.Texts(p.Fake))
	})
}

// A wait for the window ends with the session and with the Conn.
func TestAPacedWriteEndsWithTheSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, p := paced(s, &o, budget.Window{N: 1, Per: time.Hour})
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), scene.Text("b")) }()
		synctest.Wait()
		p.Fail(scene.ErrLost)
		require.ErrorContains(t, <-done, "dropped")
	})
}

// Its error is that of a context only if that was its own.
func TestAPacedWriteHidesTheContextThatEndedTheSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, _ := paced(s, &o, budget.Window{N: 1, Per: time.Hour})
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), scene.Text("b")) }()
		synctest.Wait()
		c.Redial(s.Session, context.Canceled)
		err := <-done
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// A paced write for one session is dropped with ErrSessionLost when that session ends, whether it waits in the queue or not.
func TestAPacedWriteToASessionSaysThatItWasLost(t *testing.T) {
	for name, onReceipt := range map[string]func(context.Context, reconnect.Receipt){"queue": func(context.Context, reconnect.Receipt) {}, "no queue": nil} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.Outbox.OnReceipt = onReceipt
				c, p := paced(s, &o, budget.Window{N: 1, Per: time.Hour})
				require.NoError(t, c.Write(t.Context(), scene.Text("a")))
				done := make(chan error, 2)
				for range cap(done) { // one waits for the window, the other for its turn
					go func() { done <- c.WriteTo(context.Background(), s.Session, scene.Text("b")) }()
					synctest.Wait()
				}
				p.Fail(scene.ErrLost)
				for range cap(done) {
					require.ErrorIs(t, <-done, reconnect.ErrSessionLost)
				}
			})
		})
	}
}

// Each connection has a window of its own, as the server counts.
func TestTheNextSessionHasAWindowOfItsOwn(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, p := paced(s, &o, budget.Window{N: 1, Per: time.Hour})
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		p.Fail(scene.ErrLost)
		next := s.WantDial().Accept()
		require.NoError(t, c.Write(t.Context(), scene.Text("b")))
		require.Equal(t, []string{"b"}, scene.Texts(next))
		require.Equal(t, time.Second, s.Now())
	})
}

// A Write that waits for the window does not hold up the goodbye.
func TestShutdownEndsAPacedWrite(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			c, p := paced(s, o, budget.Window{N: 1, Per: time.Hour})
			require.NoError(t, c.Write(t.Context(), scene.Text("a")))
			done := make(chan error, 1)
			go func() { done <- c.Write(context.Background(), scene.Text("b")) }()
			synctest.Wait()
			require.NoError(t, c.Shutdown(t.Context()))
			require.ErrorIs(t, <-done, net.ErrClosed)
			_, _, polite := p.ClosedWith()
			require.True(t, polite)
			require.Less(t, s.Now(), time.Second)
		})
	}
}

// What Send has queued is written at its pace before the end.
func TestShutdownWritesWhatIsQueuedAtItsPace(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		c, p := paced(s, o, budget.Window{N: 1, Per: time.Second})
		scene.Queue(t, c, "a", "b", "c")
		require.NoError(t, c.Shutdown(t.Context()))
		require.Equal(t, []string{"a", "b", "c"}, scene.Texts(p.Fake))
		require.Equal(t, 2*time.Second, s.Now())
	})
}

// A ping that the window holds back is no ping, so that its answer is not missed.
func TestAPeerIsNotSilentBecausePingsWaitForTheWindow(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, p := paced(s, &o, budget.Window{N: 1, Per: time.Minute})
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		time.Sleep(10 * time.Minute)
		require.Equal(t, s.Session, c.Status().Session)
		require.NotZero(t, p.Pings())
		p.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting)) // and yet a silent one is found
	})
}

// Nor is one that waits behind messages which the window holds back.
func TestAPeerIsNotSilentBecauseMessagesWaitForTheWindow(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		c, p := paced(s, o, budget.Window{N: 1, Per: time.Minute})
		scene.Queue(t, c, "a", "b", "c", "d", "e")
		time.Sleep(4*time.Minute + 30*time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.Session, c.Status().Session)
		p.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
	})
}

// A ping counts, whoever has given up waiting for the window meanwhile.
func TestASilentPeerIsFoundThoughWritesGiveUpWaitingForTheWindow(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, p := paced(s, &o, budget.Window{N: 1, Per: 15 * time.Second})
		p.Mute()
		for c.State() == reconnect.StateReady {
			require.Less(t, s.Now(), 5*time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			c.Write(ctx, scene.Text("a"))
			cancel()
		}
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

func TestPaceIsRefusedByName(t *testing.T) {
	for _, w := range []budget.Window{{N: -1}, {N: 1}, {Per: time.Second}} {
		_, err := reconnect.New(scene.New(t), &reconnect.Options{Pace: w})
		require.ErrorContains(t, err, "Options.Pace")
	}
}
