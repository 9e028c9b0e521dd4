package dialer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestFramedOpensAConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		withFramedServer(t, secure, func(t *testing.T, x *framedServer) {
			ctx, cancel := context.WithCancel(t.Context())
			c, err := x.dialer.Dial(ctx)
			require.NoError(t, err)
			cancel() // it has no more to say
			time.Sleep(time.Hour)
			talk(t, c)
			require.NoError(t, c.Close(t.Context(), 1000, ""))
		})
	}
}

func TestFramedAppliesTheOptionsOfConn(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		x.dialer.Conn = conn.FramedOptions{Limits: conn.Limits{ReadLimit: 5}, Type: conn.Text}
		c, err := x.dialer.Dial(t.Context())
		require.NoError(t, err)
		defer c.CloseNow()
		require.NoError(t, c.Write(helloMessage))
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Equal(t, conn.Text, m.Type)
		require.NoError(t, c.Write(conn.Message{Data: []byte("hello!")}))
		_, err = c.Read(nil)
		require.ErrorAs(t, err, new(*conn.TooBigError))
	})
}

func TestFramedRefusedSaysWhere(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		x.network.Fault(framedAddr, conntest.Fault{Err: syscall.ECONNREFUSED})
		e := x.fail(t, t.Context(), 0)
		require.ErrorIs(t, e, syscall.ECONNREFUSED)
		require.Equal(t, "tcp://example.com:7", e.Endpoint)
		require.Equal(t, backoff.ClassRetry, backoff.Classify(e).Class)
	})
}

// The stages have the limits of a WebSocket's, from the same places.
func TestFramedStagesHaveLimits(t *testing.T) {
	stall := conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }, Delay: 9 * time.Second}
	withFramedServer(t, true, func(t *testing.T, x *framedServer) {
		x.network.Fault(framedAddr, conntest.Fault{Hang: true}, stall, conntest.Fault{Hang: true}, stall)
		e := x.fail(t, t.Context(), 16*time.Second)
		require.EqualError(t, e, "dial tls://example.com:7: not connected within 16s")
		require.Equal(t, backoff.ClassOverload, backoff.Classify(e).Class)
		e = x.fail(t, t.Context(), 39*time.Second)
		require.EqualError(t, e, "dial tls://example.com:7: handshake not answered within 30s")

		try := backoff.Attempt{Connect: 20 * time.Second, Handshake: time.Minute}
		ctx := backoff.WithAttempt(t.Context(), try)
		require.Equal(t, 80*time.Second, x.dialer.DialTimeout(try))
		x.fail(t, ctx, 20*time.Second)
		x.fail(t, ctx, 69*time.Second)
	})
}

func TestFramedFieldsGoBeforeTheTry(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		x.dialer.ConnectTimeout = 2 * time.Second
		limit := x.dialer.DialTimeout(backoff.Attempt{Connect: time.Minute})
		require.Equal(t, 2*time.Second, limit, "no handshake without TLS")
		x.network.Fault(framedAddr, conntest.Fault{Hang: true})
		x.fail(t, backoff.WithAttempt(t.Context(), backoff.Attempt{Connect: time.Minute}), 2*time.Second)
	})
}

// Whatever goes on, the attempt ends with its context, with the context's cause.
func TestContextEndsFramedAtEachStage(t *testing.T) {
	errOver := errors.New("session over")
	const over, late = 1500 * time.Millisecond, 2 * time.Second // no two things happen at one instant
	for name, c := range map[string]struct {
		fault conntest.Fault
		after time.Duration
	}{
		"connect":        {conntest.Fault{Hang: true}, over},
		"late and deaf":  {conntest.Fault{Delay: late, IgnoresContext: true}, late},
		"ghost":          {conntest.Fault{Delay: time.Hour, CompletesAnyway: true}, over},
		"accept":         {conntest.Fault{AcceptDelay: time.Minute}, over},
		"handshake":      {conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }}, over},
		"hello unheard":  {conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Window(conntest.ToServer, 0) }}, over},
		"server trickle": {conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Trickle(conntest.ToClient, 1, time.Second) }}, over},
	} {
		t.Run(name, func(t *testing.T) {
			withFramedServer(t, true, func(t *testing.T, x *framedServer) {
				x.network.Fault(framedAddr, c.fault)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(over, func() { cancel(errOver) })
				require.ErrorIs(t, x.fail(t, ctx, c.after), errOver)
				time.Sleep(2 * time.Hour) // nothing is left that could still happen
			})
		})
	}
}

// What a dialer that is deaf to its context brings back is closed.
func TestALateFramedConnectionIsClosed(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		x.network.Fault(framedAddr, conntest.Fault{Delay: 20 * time.Second, IgnoresContext: true})
		x.fail(t, t.Context(), 20*time.Second)
		require.Zero(t, x.network.Count("").Open)
	})
}

// Else package net would say "i/o timeout" before anyone can tell whose limit it
// was.
func TestFramedDialsUnderNoDeadlineOfItsContext(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		dial := x.dialer.DialContext
		x.dialer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, dated := ctx.Deadline()
			require.False(t, dated)
			return dial(ctx, network, addr)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x.network.Fault(framedAddr, conntest.Fault{Hang: true})
		require.ErrorIs(t, x.fail(t, ctx, time.Second), context.DeadlineExceeded)
	})
}

func TestContextThatHasEndedOpensNoFramedSocket(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.EqualError(t, x.fail(t, ctx, 0), "dial tcp://example.com:7: context canceled")
		require.Empty(t, x.network.Dials(""))
	})
}

func TestAFramedRedialResumesTheTLSSession(t *testing.T) {
	withFramedServer(t, true, func(t *testing.T, x *framedServer) {
		var resumed []bool
		x.dialer.TLS.VerifyConnection = func(s tls.ConnectionState) error {
			resumed = append(resumed, s.DidResume)
			require.GreaterOrEqual(t, s.Version, uint16(tls.VersionTLS12))
			return nil
		}
		for range 2 {
			c, err := x.dialer.Dial(t.Context())
			require.NoError(t, err)
			talk(t, c) // the session ticket comes with the first bytes read
			c.CloseNow()
		}
		require.Equal(t, []bool{false, true}, resumed)
		require.Empty(t, x.dialer.TLS.ServerName, "it is cloned")
	})
}

func TestFramedCertificateProblemsAreSlow(t *testing.T) {
	for want, spoil := range map[string]func(c *tls.Config){
		"certificate signed by unknown authority":           func(c *tls.Config) { c.RootCAs = x509.NewCertPool() },
		"not other.example":                                 func(c *tls.Config) { c.ServerName = "other.example" },
		"certificate is valid only from 1970-01-01T00:00:0": func(c *tls.Config) { c.Time = func() time.Time { return time.Unix(1<<33, 0) } },
	} {
		withFramedServer(t, true, func(t *testing.T, x *framedServer) {
			spoil(x.dialer.TLS)
			e := x.fail(t, t.Context(), 0)
			require.ErrorContains(t, e, want)
			require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
		})
	}
}

func TestAServerWithoutTLSIsNamed(t *testing.T) {
	withFramedServer(t, false, func(t *testing.T, x *framedServer) {
		x.dialer.TLS = &tls.Config{}
		greet := func(p *conntest.Pipe) { p.Inject(conntest.ToClient, []byte("220 ready\r\n")) }
		x.network.Fault(framedAddr, conntest.Fault{OnConn: greet})
		e := x.fail(t, t.Context(), 0)
		require.EqualError(t, e, "dial tls://example.com:7: answered without TLS: is this a server without TLS?")
		require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
	})
}

func TestAServerThatHangsUpInTLSIsRetried(t *testing.T) {
	withFramedServer(t, true, func(t *testing.T, x *framedServer) {
		x.network.Fault(framedAddr, conntest.Fault{Drop: true})
		e := x.fail(t, t.Context(), 0)
		require.ErrorContains(t, e, "dial tls://example.com:7: ")
		require.Equal(t, backoff.ClassRetry, backoff.Classify(e).Class)
	})
}

func TestAFramedRoundAsksEachAddressUntilOneAnswers(t *testing.T) {
	withFramedServer(t, true, func(t *testing.T, x *framedServer) {
		x.dialer.Address, x.dialer.Addresses = "", []string{"a.test:1", framedAddr, "b.test:2"}
		x.dialer.Rand = rand.NewPCG(1, 2)
		require.Equal(t, "a.test:1,b.test:2,example.com:7", x.dialer.Host())
		for range 10 {
			c, err := x.dialer.Dial(t.Context())
			require.NoError(t, err)
			talk(t, c)
			c.CloseNow()
		}
		require.NotEmpty(t, x.network.Dials("a.test:1"))
		x.network.Fault("", conntest.Fault{Err: syscall.ECONNREFUSED})
		e := x.fail(t, t.Context(), 0)
		require.Len(t, e.Endpoints, 3)
		require.ErrorContains(t, e, "dial 3 endpoints: tls://")
	})
}

func TestFramedValidateNamesTheOption(t *testing.T) {
	const good = "host:1"
	lines := conn.Lines{}
	for want, d := range map[string]*Framed{
		"Address: missing":                        {},
		"Address: want host:port":                 {Address: "user:passwd@host:1"},
		"Address: no host":                        {Address: ":1"},
		"Address: malformed host":                 {Address: "passwd@host:1"},
		"Address: port must be 1 to 65535":        {Address: "host:https"},
		"Address and Addresses: want one of them": {Address: good, Addresses: []string{good}},
		"Addresses[1]: want host:port":            {Addresses: []string{good, "host"}},
		"Framer: missing":                         {Address: good},
		"Framer: conn: option Lines.Limit is -1":  {Address: good, Framer: conn.Lines{Limit: -1}},
		"ConnectTimeout: -1ns is negative":        {Address: good, Framer: lines, ConnectTimeout: -1},
		"HandshakeTimeout: -1ns is negative":      {Address: good, Framer: lines, HandshakeTimeout: -1},
		"Conn: conn: option ReadLimit is -1":      {Address: good, Framer: lines, Conn: conn.FramedOptions{Limits: conn.Limits{ReadLimit: -1}}},
		"TCP.UserTimeout: 2s is less than KeepAl": {Address: good, Framer: lines, TCP: TCPOptions{UserTimeout: 2 * time.Second}},
	} {
		t.Run(want, func(t *testing.T) {
			err := d.Validate()
			require.ErrorContains(t, err, "dialer: Framed."+want)
			require.NotContains(t, err.Error(), "passwd")
			_, dialErr := d.Dial(context.Background())
			require.Equal(t, err, dialErr)
			require.Equal(t, backoff.ClassStop, backoff.Classify(err).Class)
			require.Empty(t, d.Host())
		})
	}
}

func TestFramedOverRealSockets(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := httptest.NewTLSServer(nil)
		config := s.Client().Transport.(*http.Transport).TLSClientConfig
		defer s.Close()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		d := &Framed{Address: l.Addr().String(), Framer: conn.LengthPrefix{}}
		if secure {
			d.TLS = config
			l = tls.NewListener(l, &tls.Config{Certificates: s.TLS.Certificates})
		}
		go echo(l)
		c, err := d.Dial(t.Context())
		require.NoError(t, err)
		talk(t, c)
		require.NoError(t, c.Close(t.Context(), 0, ""), "the server hears of it, and hangs up")
		l.Close()
	}
}
