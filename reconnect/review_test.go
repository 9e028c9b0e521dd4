package reconnect_test

import (
	"context"
	"fmt"
	"net"
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

// Cases that a review found broken.

// Promise 6: a message that the connection refuses is the sender's mistake, and
// costs neither the session nor the next ones.
func TestABadMessageHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &conntest.Network{}
		server := conntest.NewServer(n, "h:1", nil)
		defer server.Close()
		o := reconnect.Options{WhenDown: reconnect.WhenDownWait}
		c, err := reconnect.New(&dialer.WebSocket{URL: "ws://h:1", DialContext: n.DialContext}, &o)
		require.NoError(t, err)
		defer quit(c)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		err = c.Write(t.Context(), conn.Message{Data: []byte("of no type")})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), text("x")))
		require.Equal(t, uint64(1), c.Stats().Sessions)
	})
}

// told is a conn.BlockNotifier over a Fake.
type told struct {
	*conntest.Fake
	f func()
}

func (w *told) BeforeBlock(f func()) bool { w.f = f; return true }

func (w *told) Read(buf []byte) (conn.Message, error) {
	if w.f != nil {
		w.f()
	}
	return w.Fake.Read(buf)
}

// What OnSession delivers does not wait for the session to be ready.
func TestWhatALaterSessionDeliversIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		fakes := make(chan *conntest.Fake, 2) // one for each session
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			w := &told{Fake: conntest.NewFake(nil)}
			fakes <- w.Fake
			return w, nil
		})
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(text("early"))
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		c, err := reconnect.New(dial, &o)
		require.NoError(t, err)
		defer quit(c)
		(<-fakes).Fail(errLost)
		synctest.Wait()
		wantSeam(t, c)
		m, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "early", string(m.Data))
		require.Equal(t, time.Second, s.now().Truncate(time.Millisecond))
	})
}

// Promise 11.
func TestAProbeThatIgnoresItsContextIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		var late notes
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; late.add(what) }}
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error {
			time.Sleep(21 * time.Second)
			return nil
		}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(11 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, 32*time.Second, s.wantDial().at)
		require.Equal(t, []string{"Probe", "Probe", "Probe"}, late.all(), "after 5, 10 and 20 s")
	})
}

func TestWriteFailsAsSoonAsShutdownHasBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Mute()
		go c.Shutdown(t.Context())
		synctest.Wait()
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateDropped, 0)
		require.Zero(t, s.now())
	})
}

// Promise 4: a connection that was given up while it was opened is never ready.
func TestRedialDuringOnSessionIsAFailedAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		var c *reconnect.Conn
		o.OnSession = func(context.Context, *reconnect.Opening) error {
			c.Redial(1, errLost)
			return nil
		}
		var seen notes
		o.Run.Trace = recorder(&seen)
		c = s.open(&o)
		s.wantDial().accept()
		require.NotContains(t, seen.all(), "ready 1")
		require.ErrorIs(t, c.Status().Err, errLost)
	})
}

// Promise 10: a dial that succeeds when its time is over has failed.
func TestADialThatIsLateIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *scene) {
		fake := conntest.NewFake(nil)
		o := run(every(time.Hour))
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(10 * time.Minute)
			return fake, nil
		}), &o)
		require.NoError(t, err)
		defer quit(c)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.True(t, fake.Closed())
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
	})
}

// Read and Write do not wait for a dial that does not obey.
func TestCloseFreesReadersAndWritersAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(time.Minute)
			return nil, errLost
		}), &reconnect.Options{WhenDown: reconnect.WhenDownWait})
		require.NoError(t, err)
		freed := make(chan error, 2)
		go func() {
			_, err := c.Read(context.Background(), nil)
			freed <- err
		}()
		go func() { freed <- c.Write(context.Background(), text("x")) }()
		synctest.Wait()
		go c.Close()
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.Zero(t, s.now())
		<-c.Done()
	})
}

// Promise 14: a decider is asked once.
func TestClassifyIsAskedOncePerFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		asked := 0
		o.Run.Classify = func(error) backoff.Verdict {
			asked++
			return backoff.Verdict{Class: backoff.ClassRetry}
		}
		s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept().Fail(errLost)
		s.wantDial()
		require.Equal(t, 2, asked)
	})
}

// Promise 12: also in a hook.
func TestStatusIsAsNewAsTheEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		var c *reconnect.Conn
		var start, end reconnect.Status
		o.Run.Trace = &reconnect.Trace{
			SessionStart: func(*reconnect.Session) { start = c.Status() },
			End:          func(reconnect.End) { end = c.Status() },
		}
		c = s.open(&o)
		s.wantDial().accept()
		quit(c)
		require.Equal(t, "1 opening", fmt.Sprint(start.Session, start.State))
		require.Equal(t, reconnect.StateClosed, end.State)
	})
}

func TestANilDialFuncIsNoDialer(t *testing.T) {
	_, err := reconnect.New(reconnect.DialFunc(nil), nil)
	require.ErrorContains(t, err, "Dialer")
	_, err = reconnect.New((*dialer.WebSocket)(nil), nil)
	require.ErrorContains(t, err, "Dialer")
}
