package reconnect_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// elsewhere is a connection whose local address this machine does not have. The address is
// one for documentation (RFC 5737).
type elsewhere struct {
	conn.Conn
	conn.Pinger
	conn.Transport
}

// moved returns a connection of a machine that has moved. c must be one of alive.
func moved(c conn.Conn) elsewhere { return elsewhere{c, c.(conn.Pinger), c.(conn.Transport)} }

// quiet returns e without a way to probe it.
func (e elsewhere) quiet() conn.Conn {
	return struct {
		conn.Conn
		conn.Transport
	}{e.Conn, e}
}

func (elsewhere) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// A machine that was suspended may be elsewhere now, and a probe would wait for an answer.
func TestAConnectionWhoseAddressIsGoneAfterASuspensionIsCut(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var slept atomic.Int64
		o := withPolicy(every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
		c, d := s.down(&o)
		s.wrap = func(peer *conntest.Fake) conn.Conn { return moved(peer.Conn()) }
		d.accept()
		slept.Store(int64(8 * time.Hour))
		time.Sleep(10 * time.Second) // the next look
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, backoff.ReasonLocal, wantSeam(t, c).Reason)
	})
}

// readInbox opens a Conn with this inbox and returns its first connection.
func readInbox(t *testing.T, s *scene, in reconnect.Inbox) (*reconnect.Conn, *conntest.Fake) {
	o := withPolicy(every(time.Second))
	o.Inbox = in
	c := s.open(&o)
	return c, s.wantDial().accept()
}

// blob returns a binary message of so many bytes.
func blob(size int) conn.Message { return conn.Message{Type: conn.Binary, Data: make([]byte, size)} }

// led is a connection that counts the messages which the reader of the Conn has read itself.
type led struct {
	*conn.WebSocket
	whole *atomic.Int32
}

func (l led) ReadWhole(buf []byte) (conn.Message, bool, bool) {
	m, more, whole := l.WebSocket.ReadWhole(buf)
	if whole {
		l.whole.Add(1)
	}
	return m, more, whole
}

// echo is a server that sends each message back.
func echo(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	for {
		kind, p, err := c.Read(ctx)
		if err != nil || c.Write(ctx, kind, p) != nil {
			return
		}
	}
}

// withReader runs a test with a Conn whose reader reads the connection itself, because some messages have come one by
// one. ask sends a message and reads its echo.
func withReader(t *testing.T, o *reconnect.Options, test func(t *testing.T, c *reconnect.Conn, s *wsServer, whole *atomic.Int32, ask func(data string))) {
	withWSServer(t, echo, func(t *testing.T, s *wsServer) {
		whole := new(atomic.Int32)
		c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			ws, err := s.dialer.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return led{ws.(*conn.WebSocket), whole}, nil
		}), o)
		require.NoError(t, err)
		t.Cleanup(func() { closeAndWait(c) })
		require.NoError(t, c.AwaitReady(t.Context()))
		buf := make([]byte, 100)
		ask := func(data string) {
			t.Helper()
			read := make(chan error, 1)
			go func() {
				m, err := c.Read(t.Context(), buf)
				if err == nil && string(m.Data) != data {
					err = fmt.Errorf("got %q", m.Data)
				}
				read <- err
			}()
			synctest.Wait() // the reader waits
			require.NoError(t, c.Write(t.Context(), text(data)))
			require.NoError(t, <-read)
		}
		for i := 0; whole.Load() < 2; i++ { // mostly 6 times; a Wake of the reader that returns late ends its first read
			require.Less(t, i, 30, "the reader does not get the turn")
			ask(fmt.Sprint(i))
		}
		test(t, c, s, whole, ask)
	})
}

// suspended returns a Conn whose machine was suspended when a message came after 5 s: the wall
// clock goes on, and the timers do not.
func suspended(s *scene) (*reconnect.Conn, *conntest.Fake) {
	s.fake = alive
	var slept atomic.Int64
	o := withPolicy(every(time.Hour))
	reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
	c, peer := s.ready(&o)
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the first look after the machine wakes up probes the peer.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: after the machine wakes up, the peer has another third of the limit to answer.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.now())
	})
}

// Promise 8: a suspension never makes the verdict later than it would be without one.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = alive
			var slept atomic.Int64
			o := withPolicy(every(time.Hour))
			reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
			c, peer := s.ready(&o)
			peer.Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.now(), 30*time.Second)
		})
	}
}

// A wall clock that is set back does not look like a suspension.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		back := time.Duration(0)
		o := withPolicy(every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { back -= time.Hour; return time.Now().Add(back) })
		c, peer := s.ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
	})
}

// The tests of RunOptions.Logins: Conns, and Runs, that are given one budget.

func newLogins(t testing.TB, o budget.LoginsOptions) *budget.Logins {
	t.Helper()
	l, err := budget.NewLogins(&o)
	require.NoError(t, err)
	return l
}

// hourly is a budget of so many logins in an hour.
func hourly(t testing.TB, n int) *budget.Logins {
	return newLogins(t, budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
}

// hourly is a budget of n logins in an hour, and those that s takes until its test begins.
func (s *scene) hourly(n int) *budget.Logins { return hourly(s.t, n+s.form.readyLogins()) }

// loggingIn are options that log in by a message, and take the logins from l.
func loggingIn(l *budget.Logins) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Run.Logins = l
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(text("login")) }
	return o
}

// acceptLate is accept with a peer that answers each ping after a while, or never if that is
// negative.
func acceptLate(d *pendingDial, answers time.Duration) *conntest.Fake {
	peer := conntest.NewFake(&d.s.fake)
	if peer.PongAfter(answers); answers < 0 {
		peer.Mute()
	}
	d.bring(peer)
	return peer
}

// overlapping opens a Conn whose first session is being replaced by the second.
func overlapping(s *scene, o *reconnect.Options) (c *reconnect.Conn, old, next *conntest.Fake) {
	c = s.open(o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	next = s.wantDial().accept()
	return c, old, next
}

// texts returns what a peer got.
func texts(peer *conntest.Fake) (list []string) {
	for _, m := range peer.Written() {
		list = append(list, string(m.Data))
	}
	return list
}

// rotating returns options without waits, with this way to rotate.
func rotating(way reconnect.Overlap) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Rotate.Overlap = way
	return o
}

// refusedRotation returns a Conn whose session was to be replaced, which the server has refused
// because of why, and that session. done gets the errors of Trace.RotateDone.
func (s *scene) refusedRotation(why error) (c *reconnect.Conn, old *conntest.Fake, done *[]error) {
	done = new([]error)
	o := rotating(reconnect.OverlapHold)
	o.Run.Trace = &reconnect.Trace{RotateDone: func(r reconnect.RotateDone) { *done = append(*done, r.Err) }}
	c = s.open(&o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	s.wantDial().refuse(why)
	return c, old, done
}

// stallOptions returns options with a limit on the time without data, and without a wait before
// a redial.
func stallOptions(limit time.Duration) reconnect.Options {
	o := withPolicy(every(0))
	o.Stall.Limit = limit
	return o
}

// Expected gets the time of the wall clock.
func TestExpectedGetsTheWallClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		wall := time.Date(2027, 1, 4, 9, 30, 0, 0, time.UTC)
		o := stallOptions(time.Second)
		reconnect.SetWallClock(&o, func() time.Time { return wall })
		o.Stall.Expected = func(at time.Time) bool {
			require.Equal(t, wall, at)
			return false
		}
		c := s.open(&o)
		s.wantDial().accept()
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}
