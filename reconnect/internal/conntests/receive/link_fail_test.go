package receive_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of internal/link/link.go that are about a write or a ping which fails before the reader knows why.

// parting is a connection whose peer has sent a close frame after some messages. Nobody has read
// them yet when a ping or a write fails.
type parting struct {
	conn.Conn
	late   []conn.Message // before the close frame
	mute   bool           // nothing has come, and the reader waits
	failed chan struct{}
	cut    chan struct{}
	once   *[2]sync.Once
}

func (p parting) fail() error {
	p.once[0].Do(func() { close(p.failed) })
	return scene.ErrLost
}

func (p parting) Ping(context.Context) error { return p.fail() }

func (p parting) Write(conn.Message) error { return p.fail() }

func (p *parting) Read([]byte) (conn.Message, error) {
	select {
	case <-p.failed:
	case <-p.cut:
		return conn.Message{}, net.ErrClosed
	}
	if p.mute {
		<-p.cut
		return conn.Message{}, net.ErrClosed
	}
	if len(p.late) > 0 {
		m := p.late[0]
		p.late = p.late[1:]
		return m, nil
	}
	return conn.Message{}, &conn.CloseError{Code: 1013}
}

func (p parting) CloseNow() error {
	p.once[1].Do(func() { close(p.cut) })
	return nil
}

// partingConn opens a Conn over p.
func partingConn(t *testing.T, p parting, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	p.failed, p.cut, p.once = make(chan struct{}), make(chan struct{}), new([2]sync.Once)
	dials := 0
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		if dials++; dials > 1 {
			return nil, scene.ErrLost
		}
		return &p, nil
	}), o)
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c) })
	require.NoError(t, c.AwaitReady(t.Context()))
	synctest.Wait() // a Check in the moment of readiness asks for nothing
	return c
}

// failing are the ways in which a connection fails while the reader waits: what must be set, and
// what is done.
var failing = map[string]struct {
	set func(o *reconnect.Options)
	do  func(c *reconnect.Conn)
}{
	"ping":  {do: func(c *reconnect.Conn) { c.Check() }},
	"Write": {do: func(c *reconnect.Conn) { c.Write(context.Background(), scene.Text("x")) }},
	"Send": {
		set: func(o *reconnect.Options) { o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {} },
		do:  func(c *reconnect.Conn) { c.Send(scene.Out("x")) },
	},
	"Probe": {
		set: func(o *reconnect.Options) {
			o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
				return write(scene.Text("?"))
			}
		},
		do: func(c *reconnect.Conn) { c.Check() },
	},
	"Idle": {
		set: func(o *reconnect.Options) {
			o.KeepAlive.Every = time.Millisecond
			o.KeepAlive.Message = func() conn.Message { return scene.Text("!") }
		},
		do: func(*reconnect.Conn) { time.Sleep(time.Millisecond) },
	},
}

// eachFailure runs a test for each way to fail.
func eachFailure(t *testing.T, p parting, test func(t *testing.T, c *reconnect.Conn)) {
	for name, f := range failing {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				if f.set != nil {
					f.set(&o)
				}
				c := partingConn(t, p, &o)
				f.do(c)
				synctest.Wait()
				test(t, c)
			})
		})
	}
}

// Promise 9: the reader's error is the cause whenever there is one.
func TestAFailureDoesNotHideTheCloseCode(t *testing.T) {
	eachFailure(t, parting{late: []conn.Message{scene.Text("1")}}, func(t *testing.T, c *reconnect.Conn) {
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
		scene.WantMessage(t, c, 1, "1")
		seam := scene.WantSeam(t, c)
		require.Equal(t, &conn.CloseError{Code: 1013}, seam.Cause)
		require.Equal(t, backoff.ReasonCloseOverload, seam.Reason)
		require.ErrorAs(t, c.Status().Err, new(*conn.CloseError))
	})
}

// A reader that has nothing to say does not hold the session up for long.
func TestAfterAFailureTheReaderHasASecond(t *testing.T) {
	eachFailure(t, parting{mute: true}, func(t *testing.T, c *reconnect.Conn) {
		failed := time.Now()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
		_, err := c.Read(t.Context(), nil)
		seam, ok := err.(*reconnect.Seam)
		require.True(t, ok)
		require.ErrorIs(t, seam.Cause, scene.ErrLost)
		require.Equal(t, time.Second, time.Since(failed))
	})
}

// busyUntilItCloses is a handler that reads nothing for a while, and then closes.
func busyUntilItCloses(_ context.Context, c *websocket.Conn, _ *http.Request) {
	time.Sleep(15 * time.Second)
	c.Close(1013, "")
}

// A server that was too busy to answer a ping, and then closes, is believed.
func TestTheCloseCodeIsTheCauseWhileAPingIsNotAnswered(t *testing.T) {
	for range 20 {
		scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
			server.Next(server.AcceptWith(busyUntilItCloses))
			o := scene.WithPolicy(scene.Every(time.Hour))
			c := server.Ready(t, &o)
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			synctest.Wait()
			require.Equal(t, uint64(1), c.Stats().Probes)
			require.Equal(t, backoff.ReasonCloseOverload, scene.WantSeam(t, c).Reason)
		})
	}
}
