package conntest_test

import (
	"context"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestServerEchoesOverRealWebSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		c := mustDial(t, &n)
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
		_, data, err := c.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, "hello", string(data))
		require.Len(t, s.Conns(), 1)
		require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
		synctest.Wait()
		require.Empty(t, s.Conns())
		require.Empty(t, n.Unclosed())
	})
}

func TestServerCloseCutsItsConnectionsAndWaitsForItsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		ended := false
		s := conntest.NewServer(&n, addr, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
		})
		c := mustDial(t, &n)
		s.Close()
		require.True(t, ended)
		s.Close()
		_, _, err := c.Read(t.Context())
		require.ErrorIs(t, err, io.EOF, "no close frame")
		_, _, err = dial(t.Context(), &n)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

func TestServerCloseEndsHandshakesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		s.Next(conntest.Hang)
		failed := make(chan error, 1)
		go func() { _, _, err := dial(t.Context(), &n); failed <- err }()
		idle, err := n.DialContext(t.Context(), "tcp", addr) // and sends nothing
		require.NoError(t, err)
		synctest.Wait()
		s.Close()
		require.ErrorIs(t, <-failed, io.EOF)
		require.Equal(t, io.EOF, readErr(t, idle))
		idle.Close()
		synctest.Wait()
		require.Empty(t, n.Unclosed())
	})
}

func TestServerStartsAgainOnTheSameAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		mustDial(t, &n)
		s.Close()
		s.Start()
		s.Start()
		mustDial(t, &n)
		synctest.Wait()
		require.Len(t, s.Conns(), 1)
		require.Len(t, n.Conns(addr), 1)
	})
}

func TestNewServerPanicsOnAnAddressInUse(t *testing.T) {
	var n conntest.Network
	s := conntest.NewServer(&n, addr, nil)
	defer s.Close()
	require.PanicsWithValue(t, "conntest: listen tcp feed.test:80: bind: address already in use",
		func() { conntest.NewServer(&n, addr, nil) })
}

func TestDisconnectLeavesTheServerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		c := mustDial(t, &n)
		start := time.Now()
		done := make(chan struct{})
		go func() { s.Disconnect(websocket.StatusTryAgainLater, "busy"); close(done) }()
		_, _, err := c.Read(t.Context())
		var closed websocket.CloseError
		require.ErrorAs(t, err, &closed)
		require.Equal(t, websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "busy"}, closed)
		<-done
		require.Zero(t, time.Since(start))
		mustDial(t, &n)
	})
}

func TestAnswersAreTakenInTurnAndTheLastStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		s.Next(conntest.Status(503, nil), nil, s.Accept, conntest.Status(401, nil))
		for _, want := range []int{503, 101, 101, 401, 401} {
			c, resp, _ := dial(t.Context(), &n)
			require.Equal(t, want, resp.StatusCode)
			if c != nil {
				c.CloseNow()
			}
		}
		s.Next()
		mustDial(t, &n)
	})
}

func TestHandlerFindsItsPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, func(ctx context.Context, _ *websocket.Conn, r *http.Request) {
			if p := conntest.PipeOf(ctx); p == conntest.PipeOf(r.Context()) {
				p.Reset()
			}
		})
		defer s.Close()
		c := mustDial(t, &n)
		_, _, err := c.Read(t.Context())
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Nil(t, conntest.PipeOf(t.Context()))
	})
}

func TestServerOptionsReachTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		s.Options = &websocket.AcceptOptions{Subprotocols: []string{"v2"}}
		c, _, err := websocket.Dial(t.Context(), "ws://feed.test/", &websocket.DialOptions{
			Subprotocols: []string{"v1", "v2"},
			HTTPClient:   &http.Client{Transport: &http.Transport{DialContext: n.DialContext}},
		})
		require.NoError(t, err)
		require.Equal(t, "v2", c.Subprotocol())
		c.CloseNow()
	})
}

// The client has its answer before the server has its connection.
func TestDisconnectReachesAConnectionThatIsJustBeingAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		n.Fault(addr, conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Window(conntest.ToClient, 0) }})
		failed := make(chan error, 1)
		go func() {
			c, _, err := dial(t.Context(), &n)
			if err == nil {
				_, _, err = c.Read(t.Context())
				c.CloseNow()
			}
			failed <- err
		}()
		synctest.Wait() // the server is stuck in its 101
		time.AfterFunc(time.Second, func() { n.Conns(addr)[0].Window(conntest.ToClient, -1) })
		start := time.Now()
		s.Disconnect(websocket.StatusServiceRestart, "")
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, websocket.StatusServiceRestart, websocket.CloseStatus(<-failed))
	})
}

// A frame cut by a FIN.
func TestCutInsideAFrameIsAnUnexpectedEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		c := mustDial(t, &n)
		n.Conns(addr)[0].Cut(conntest.ToClient, 4) // a header of two and two of five
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
		_, _, err := c.Read(t.Context())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}
