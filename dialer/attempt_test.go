package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestConnectingHasALimitOfItsOwn(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault(serverAddr, conntest.Fault{Hang: true})
		e := v.fail(t, t.Context(), 16*time.Second)
		require.EqualError(t, e, "dial ws://server.example/feed: not connected within 16s")
		require.ErrorIs(t, e, context.DeadlineExceeded)
		require.Equal(t, backoff.ClassOverload, backoff.Classify(e).Class)
	})
}

func TestHandshakingHasALimitFromTheEndOfConnecting(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault(serverAddr, conntest.Fault{Delay: 9 * time.Second})
		v.Next(conntest.Hang)
		e := v.fail(t, t.Context(), 39*time.Second)
		require.EqualError(t, e, "dial ws://server.example/feed: handshake not answered within 30s")
		require.ErrorIs(t, e, context.DeadlineExceeded)
	})
}

// A resolver that waits 5 s for each of two name servers.
func TestASlowNameLookupLeavesTimeToConnect(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		lookUp := func(ctx context.Context, network, _ string) (net.Conn, error) {
			time.Sleep(10 * time.Second)
			return v.network.DialContext(ctx, network, serverAddr)
		}
		v.network.Fault(serverAddr, conntest.Fault{Delay: 4 * time.Second})
		v.dialer.DialContext = lookUp
		v.dial(t).CloseNow()
		nc, err := (&Dialer{DialOnce: lookUp, Policy: backoff.Limit(nil, 0, 1)}).DialContext(t.Context(), "tcp", serverAddr)
		require.NoError(t, err)
		nc.Close()
	})
}

// overTLS returns a DialContext that does TLS itself, as that of tls.Dialer does.
func overTLS(n *conntest.Network, config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := n.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := tls.Client(nc, config)
		return c, c.HandshakeContext(ctx)
	}
}

// The server has no room left, so that closing TLS politely would wait for 5 s.
func TestACutDoesNotWaitForTheNetworkWhereDialContextDoesTLS(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.DialContext = overTLS(v.network, &tls.Config{RootCAs: v.dialer.TLS.RootCAs, ServerName: "example.com"})
		v.dialer.URL = "ws://example.com:443/feed"
		v.Next(func(_ http.ResponseWriter, r *http.Request) {
			conntest.PipeOf(r.Context()).Window(conntest.ToServer, 0)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, v.fail(t, ctx, time.Second), context.DeadlineExceeded)
	})
	withFramedServer(t, true, func(t *testing.T, x *framedServer) {
		x.dialer.DialContext = overTLS(x.network, &tls.Config{RootCAs: x.dialer.TLS.RootCAs, ServerName: "example.com"})
		x.dialer.TLS = nil
		c, err := x.dialer.Dial(t.Context())
		require.NoError(t, err)
		x.network.Conns(framedAddr)[0].Window(conntest.ToServer, 0)
		start := time.Now()
		c.CloseNow()
		require.Zero(t, time.Since(start))
	})
}

func TestFieldsSetTheLimits(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.ConnectTimeout, v.dialer.HandshakeTimeout = 2*time.Second, 3*time.Second
		v.network.Fault(serverAddr, conntest.Fault{Hang: true}, conntest.Fault{})
		v.Next(conntest.Hang)
		v.fail(t, t.Context(), 2*time.Second)
		v.fail(t, t.Context(), 3*time.Second)
	})
}

func TestTheTryInTheContextSetsTheLimits(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault(serverAddr, conntest.Fault{Hang: true}, conntest.Fault{})
		v.Next(conntest.Hang)
		ctx := backoff.WithAttempt(t.Context(), backoff.Attempt{Connect: 5 * time.Second, Handshake: time.Minute})
		v.fail(t, ctx, 5*time.Second)
		v.fail(t, ctx, time.Minute)
	})
}

func TestAFieldGoesBeforeTheTry(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.HandshakeTimeout = 2 * time.Second
		try := backoff.Attempt{Connect: 5 * time.Second, Handshake: time.Minute}
		require.Equal(t, 7*time.Second, v.dialer.DialTimeout(try))
		v.Next(conntest.Hang)
		v.fail(t, backoff.WithAttempt(t.Context(), try), 2*time.Second)
	})
}

func TestAHandshakeThatTricklesIsEnded(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(trickling(v.Accept))
		v.fail(t, t.Context(), 30*time.Second)
	})
}

// The attempt ends with its context at whatever stage, with the context's cause.
func TestContextEndsTheAttemptAtEachStage(t *testing.T) {
	errOver := errors.New("session over")
	for name, arrange := range map[string]func(v *wsServer){
		"prepare": func(v *wsServer) {
			v.dialer.Prepare = func(ctx context.Context, _ *Request) error { <-ctx.Done(); return ctx.Err() }
		},
		"connect": func(v *wsServer) { v.network.Fault(serverAddr, conntest.Fault{Hang: true}) },
		"accept":  func(v *wsServer) { v.network.Fault(serverAddr, conntest.Fault{AcceptDelay: time.Minute}) },
		"upgrade": func(v *wsServer) { v.Next(conntest.Hang) },
		"trickle": func(v *wsServer) { v.Next(trickling(v.Accept)) },
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				arrange(v)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errOver) })
				require.ErrorIs(t, v.fail(t, ctx, time.Second), errOver)
				time.Sleep(time.Hour) // nothing is left that could still happen
			})
		})
	}
}

func TestContextThatHasEndedOpensNoSocket(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Prepare = func(context.Context, *Request) error { panic("nothing to prepare") }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := v.fail(t, ctx, 0)
		require.EqualError(t, e, "dial ws://server.example/feed: context canceled")
		require.Empty(t, v.network.Dials(""))
	})
}

// slowClose is a connection whose Close takes a second, though it is closed at once.
type slowClose struct{ net.Conn }

func (s slowClose) Close() error {
	err := s.Conn.Close()
	time.Sleep(time.Second)
	return err
}

func TestDialReturnsWhenItsSocketIsClosed(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Hang)
		v.dialer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := v.network.DialContext(ctx, network, addr)
			return slowClose{nc}, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v.fail(t, ctx, 2*time.Second)
	})
}

func TestACancelledDialIsWaitedFor(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		var flying atomic.Int32
		v.dialer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			flying.Add(1)
			defer flying.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second) // some dials do not notice at once that they are over
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		v.fail(t, ctx, 1020*time.Millisecond)
		require.Zero(t, flying.Load())
	})
}

// Package net would report the deadline before the context does.
func TestTheDialKnowsNoDeadline(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, ok := ctx.Deadline()
			require.False(t, ok)
			return v.network.DialContext(ctx, network, addr)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		c.CloseNow()
	})
}

// If the context ends just when the server accepts, there is a connection that
// works or there is none.
func TestAContextThatEndsAtTheLastMoment(t *testing.T) {
	for range 200 {
		withServer(t, func(t *testing.T, v *wsServer) {
			ctx, cancel := context.WithCancel(t.Context())
			v.Next(v.AcceptWith(func(ctx context.Context, c *websocket.Conn, r *http.Request) {
				cancel()
				conntest.Echo(ctx, c, r)
			}))
			c, err := v.dialer.Dial(ctx)
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				return
			}
			defer c.CloseNow()
			require.NoError(t, c.Write(helloMessage))
			_, err = c.Read(nil)
			require.NoError(t, err)
		})
	}
}

// closes counts the calls of CloseNow.
type closes struct {
	conn.Conn
	n int
}

func (c *closes) CloseNow() error { c.n++; return nil }

func TestAConnectionThatComesTogetherWithTheEndIsClosed(t *testing.T) {
	for _, over := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		opened := &closes{}
		a := &attempt{
			request: &request{url: &url.URL{Scheme: "tcp", Host: "host:1"}},
			connect: func(context.Context, *conn.Wire) (net.Conn, error) { return &net.TCPConn{}, nil },
			open: func(context.Context, *conn.Wire, net.Conn) (conn.Conn, error) {
				if over {
					cancel()
				}
				return opened, nil
			},
		}
		c, err := new(endpoints).attempt(ctx, a)
		cancel()
		if over {
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 1, opened.n)
		} else {
			require.Nil(t, err)
			require.Equal(t, opened, c)
			require.Zero(t, opened.n)
		}
	}
}

// watched is a context that package context must watch with a goroutine: a
// child that is not released leaves it behind, and the bubble finds it.
type watched struct {
	context.Context
	done chan struct{}
}

func (w watched) Done() <-chan struct{} { return w.done }

func TestAConnectionHoldsNothingOfItsContext(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		c, err := v.dialer.Dial(watched{t.Context(), make(chan struct{})})
		require.NoError(t, err)
		c.CloseNow()
	})
}

func TestNoLimitStrikesAfterTheLastStage(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		c := v.dial(t)
		time.Sleep(time.Minute)
		talk(t, c)
		c.CloseNow()
	})
}

func TestADialThatAnswersTooLateIsClosed(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault(serverAddr, conntest.Fault{Delay: time.Minute, IgnoresContext: true})
		e := v.fail(t, t.Context(), time.Minute)
		require.ErrorContains(t, e, "not connected within 16s")
	})
}

func TestHeadersAreCapped(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 64<<10))
			v.Accept(w, r)
		})
		e := v.fail(t, t.Context(), 0)
		require.ErrorContains(t, e, "the header of the answer exceeds 65536 bytes")
		require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
	})
}

// dialWith dials with a context that carries something large, and returns a
// channel that is closed when that has been collected.
func dialWith(t *testing.T, d *WebSocket) (conn.Conn, <-chan struct{}) {
	type key struct{}
	large, gone := new([1 << 20]byte), make(chan struct{})
	runtime.AddCleanup(large, func(gone chan struct{}) { close(gone) }, gone)
	c, err := d.Dial(context.WithValue(context.Background(), key{}, large))
	require.NoError(t, err)
	return c, gone
}

func TestAnIdleConnectionKeepsNothingOfItsAttempt(t *testing.T) {
	n := new(conntest.Network)
	defer conntest.NewServer(n, serverAddr, nil).Close()
	c, gone := dialWith(t, &WebSocket{URL: serverURL, DialContext: n.DialContext})
	defer c.CloseNow()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, time.Minute, 10*time.Millisecond)
}

// trickling gives answer a, of which one byte arrives per second.
func trickling(a conntest.Answer) conntest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		conntest.PipeOf(r.Context()).Trickle(conntest.ToClient, 1, time.Second)
		a(w, r)
	}
}
