package loop

// The loop and redial, before servers that misbehave, in virtual time. Both ends are coder/websocket.

import (
	"context"
	"io"
	"log"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

const (
	addr      = "feed.test:80"
	url       = "ws://feed.test/"
	login     = `{"op":"subscribe"}`
	roundTrip = 5 * time.Millisecond
)

// result is what ten minutes have brought.
type result struct{ connections, messages int }

// play runs client for ten minutes of virtual time, on a network in memory with a round trip of 5 ms. arrange makes the server.
func play(t *testing.T, arrange func(*conntest.Network) *conntest.Server, client func(context.Context, *conntest.Network, func([]byte))) (got result) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		n.Fault("", conntest.Fault{Delay: roundTrip, OnConn: func(p *conntest.Pipe) { p.Latency(conntest.Both, roundTrip/2) }})
		s := arrange(n)
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		client(ctx, n, func([]byte) { got.messages++ })
		got.connections = len(n.Dials(addr))
	})
	return got
}

func byLoop(ctx context.Context, n *conntest.Network, handle func([]byte)) {
	transport := &http.Transport{DialContext: n.DialContext}
	defer transport.CloseIdleConnections()
	_ = Follow(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}, []byte(login), handle)
}

func byRedial(ctx context.Context, n *conntest.Network, handle func([]byte)) {
	feed, err := reconnect.New(&dialer.WebSocket{URL: url, DialContext: n.DialContext}, &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error { return o.Write(conn.TextMessage(login)) },
	})
	if err != nil {
		panic(err)
	}
	for m, err := range feed.Messages(ctx) {
		if err == nil {
			handle(m.Data)
		}
	}
	feed.Close()
	<-feed.Done()
}

// ticker returns a server that sends messages of size bytes after a login. The first message comes after a wait, and each later one after
// an interval. The server sends count messages at most.
func ticker(size int, first, interval time.Duration, count int) conntest.Handler {
	return func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		if _, _, err := c.Read(ctx); err != nil {
			return
		}
		ctx = c.CloseRead(ctx)
		wait := time.NewTimer(first)
		defer wait.Stop()
		for range count {
			select {
			case <-wait.C:
			case <-ctx.Done():
				return
			}
			if c.Write(ctx, websocket.MessageText, make([]byte, size)) != nil {
				return
			}
			wait.Reset(interval)
		}
	}
}

const forever = 1 << 30

// hangsUp accepts each connection and closes it, as a server or proxy does whose backend is away.
func hangsUp(n *conntest.Network) *conntest.Server {
	return conntest.NewServer(n, addr, func(context.Context, *websocket.Conn, *http.Request) {})
}

// fallsSilent sends a message each second. After ten messages the connection carries nothing more in either direction, and neither side
// gets an error.
func fallsSilent(n *conntest.Network) *conntest.Server {
	s := conntest.NewServer(n, addr, ticker(100, time.Second, time.Second, forever))
	s.Next(s.AcceptWith(func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		time.AfterFunc(10500*time.Millisecond, func() { conntest.PipeOf(ctx).Stall(conntest.Both) })
		ticker(100, time.Second, time.Second, forever)(ctx, c, r)
	}), nil)
	return s
}

// leavesOneUnanswered ends the first connection after ten messages, one a second. The next handshake has no answer; all others have.
func leavesOneUnanswered(n *conntest.Network) *conntest.Server {
	s := conntest.NewServer(n, addr, ticker(100, time.Second, time.Second, forever))
	s.Next(s.AcceptWith(ticker(100, time.Second, time.Second, 10)), conntest.Hang, nil)
	return s
}

// sendsMuch sends a snapshot of 40 KiB 200 ms after the login, and then every 10 s.
func sendsMuch(n *conntest.Network) *conntest.Server {
	return conntest.NewServer(n, addr, ticker(40<<10, 200*time.Millisecond, 10*time.Second, forever))
}

// limits are what a figure must be within, because the waits of redial are random, and of two events at one instant either may come first.
type limits struct{ leastConnections, mostConnections, leastMessages, mostMessages int }

func (l limits) require(t *testing.T, who string, got result) {
	t.Helper()
	require.GreaterOrEqual(t, got.connections, l.leastConnections, who)
	require.LessOrEqual(t, got.connections, l.mostConnections, who)
	require.GreaterOrEqual(t, got.messages, l.leastMessages, who)
	require.LessOrEqual(t, got.messages, l.mostMessages, who)
}

// Each server, by the loop and by redial with its defaults. README.md has these figures.
func TestTenMinutesOfAServerThat(t *testing.T) {
	for _, c := range []struct {
		name         string
		arrange      func(*conntest.Network) *conntest.Server
		loop, redial limits
	}{
		{"accepts and hangs up", hangsUp, limits{59_900, 60_001, 0, 0}, limits{60, 130, 0, 0}},
		{"falls silent without a FIN", fallsSilent, limits{1, 1, 10, 10}, limits{2, 2, 560, 575}},
		{"leaves one handshake unanswered", leavesOneUnanswered, limits{2, 2, 10, 10}, limits{3, 3, 575, 595}},
		{"sends messages of 40 KiB", sendsMuch, limits{2_700, 2_900, 0, 0}, limits{1, 1, 60, 60}},
	} {
		t.Run(c.name, func(t *testing.T) {
			loop, redial := play(t, c.arrange, byLoop), play(t, c.arrange, byRedial)
			t.Logf("the loop: %d connections, %d messages; redial: %d connections, %d messages",
				loop.connections, loop.messages, redial.connections, redial.messages)
			c.loop.require(t, "the loop", loop)
			c.redial.require(t, "redial", redial)
		})
	}
}
