package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestDialOpensAConnection(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		c := v.dial(t)
		defer c.CloseNow()
		require.NoError(t, c.Write(helloMessage))
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "hello", string(m.Data))
	})
}

func TestContextMayEndAfterTheDial(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		ctx, cancel := context.WithCancel(t.Context())
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		defer c.CloseNow()
		cancel()
		time.Sleep(time.Hour) // and no limit strikes
		require.NoError(t, c.Write(helloMessage))
		_, err = c.Read(nil)
		require.NoError(t, err)
	})
}

func TestServerChoosesASubprotocol(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Options = &websocket.AcceptOptions{Subprotocols: []string{"v1"}}
		v.dialer.Subprotocols = []string{"v2", "v1"}
		c := v.dial(t)
		defer c.CloseNow()
		require.Equal(t, "v1", c.Subprotocol())
	})
}

func TestServerMayChooseNoSubprotocol(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Subprotocols = []string{"v2"}
		c := v.dial(t)
		defer c.CloseNow()
		require.Empty(t, c.Subprotocol())
	})
}

// offers returns what the next handshake asks for.
func (v *wsServer) offers() *http.Request {
	seen := new(http.Request)
	v.Next(func(w http.ResponseWriter, r *http.Request) {
		*seen = *r.Clone(context.Background())
		v.Accept(w, r)
	})
	return seen
}

func TestHeaderAndHostAreSent(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Header = http.Header{"X-Key": {"k"}, "Host": {"other.example:8080"}}
		seen := v.offers()
		defer v.dial(t).CloseNow()
		require.Equal(t, "k", seen.Header.Get("X-Key"))
		require.Equal(t, "other.example:8080", seen.Host)
	})
}

func TestCompressionIsOfferedOnlyWhenAskedFor(t *testing.T) {
	for mode, want := range map[websocket.CompressionMode]string{
		websocket.CompressionDisabled:          "",
		websocket.CompressionNoContextTakeover: "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
		websocket.CompressionContextTakeover:   "permessage-deflate",
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Compression = mode
			seen := v.offers()
			defer v.dial(t).CloseNow()
			require.Equal(t, want, seen.Header.Get("Sec-WebSocket-Extensions"))
			require.Empty(t, seen.Header.Get("Accept-Encoding"))
		})
	}
}

func TestTextThatIsNotUTF8IsRefusedOnlyIfAsked(t *testing.T) {
	const text = "\xce\xba\xff"
	for _, check := range []bool{false, true} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Conn.CheckUTF8 = check
			v.Next(switching("\x81\x03"+text, upgradeLine, connectionLine, acceptLine))
			c := v.dial(t)
			defer c.CloseNow()
			m, err := c.Read(nil)
			if !check {
				require.NoError(t, err)
				require.Equal(t, conn.TextMessage(text), m)
				return
			}
			var broken *conn.ProtocolError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, 1007, broken.CloseCode())
		})
	}
}

func TestPrepareMakesEachHandshakeAnew(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		token := ""
		v.dialer.Header = http.Header{"X-Key": {"k"}}
		v.dialer.Prepare = func(_ context.Context, r *Request) error {
			require.Equal(t, serverURL, r.URL)
			require.Equal(t, http.Header{"X-Key": {"k"}}, r.Header)
			token += "t"
			r.URL = "ws://server.example/other?" + token
			r.Header.Set("Authorization", token)
			return nil
		}
		for _, want := range []string{"t", "tt"} {
			seen := v.offers()
			v.dial(t).CloseNow()
			require.Equal(t, want, seen.Header.Get("Authorization"))
			require.Equal(t, "/other?"+want, seen.URL.String())
		}
	})
}

func TestPrepareThatFailsOpensNoSocket(t *testing.T) {
	errKeys := errors.New("no keys")
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Prepare = func(context.Context, *Request) error { return errKeys }
		e := v.fail(t, t.Context(), 0)
		require.ErrorIs(t, e, errKeys)
		require.EqualError(t, e, "dial ws://server.example/feed: prepare: no keys")
		require.Empty(t, v.network.Dials(""))
	})
}

func TestPrepareIsEndedByTheHandshakeLimit(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Prepare = func(ctx context.Context, _ *Request) error { <-ctx.Done(); return ctx.Err() }
		e := v.fail(t, t.Context(), 30*time.Second)
		require.EqualError(t, e, "dial ws://server.example/feed: not prepared within 30s")
		require.Equal(t, backoff.ClassOverload, backoff.Classify(e).Class)
	})
}

func TestPrepareCannotMakeABadHandshake(t *testing.T) {
	for want, prepare := range map[string]func(r *Request){
		"prepare: Request.URL: malformed URL":                                 func(r *Request) { r.URL = "ws://u:passwd@h:x" },
		"prepare: Request.URL: a WebSocket URL has no fragment":               func(r *Request) { r.URL += "#" },
		"prepare: Request.Header: Upgrade is set by the handshake":            func(r *Request) { r.Header.Set("Upgrade", "h2c") },
		"prepare: Request.Header: Host: want one host, by that name":          func(r *Request) { r.Header.Set("Host", "a b") },
		"prepare: Request.Header: X: a value has a line break or another con": func(r *Request) { r.Header.Set("X", "a\r\nb") },
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Prepare = func(_ context.Context, r *Request) error { prepare(r); return nil }
			e := v.fail(t, t.Context(), 0)
			require.ErrorContains(t, e, "dial ws://server.example/feed: "+want)
			require.NotEqual(t, backoff.ClassStop, backoff.Classify(e).Class)
		})
	}
}

func TestPrepareSeesThatCredentialsWereRefused(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		refreshes := v.recordRefreshes()
		v.Next(conntest.Status(401, nil), v.Accept)
		require.Equal(t, 401, v.fail(t, t.Context(), 0).StatusCode)
		v.dial(t).CloseNow()
		v.dial(t).CloseNow()
		c, err := v.dialer.Dial(backoff.WithAttempt(t.Context(), backoff.Attempt{Refresh: true}))
		require.NoError(t, err)
		c.CloseNow()
		require.Equal(t, []bool{false, true, false, true}, *refreshes)
	})
}

func TestDialsMayBeConcurrent(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.URL, v.dialer.URLs = "", []string{serverURL, serverURL + "&second"}
		var dials sync.WaitGroup
		for range 20 {
			dials.Go(func() {
				c, err := v.dialer.Dial(t.Context())
				if err == nil {
					c.CloseNow()
				}
			})
		}
		dials.Wait()
		require.Len(t, v.network.Dials(serverAddr), 20)
	})
}

func TestValidateNamesTheOption(t *testing.T) {
	const good = "wss://host/path?q=1"
	for want, d := range map[string]*WebSocket{
		"URL: missing": {},
		"URL: scheme must be ws or wss, not https":                         {URL: "https://host"},
		"URL: scheme must be ws or wss":                                    {URL: "passwd:x"},
		"URL: a WebSocket URL has no fragment":                             {URL: good + "#"},
		"URL: no host":                                                     {URL: "ws://:80/"},
		"URL: malformed host":                                              {URL: `ws://a"b/`},
		"URL: port must be 1 to 65535":                                     {URL: "ws://host:65536"},
		"URL and URLs: want one of them":                                   {URL: good, URLs: []string{good}},
		"URLs[1]: scheme must be ws or wss":                                {URLs: []string{good, ""}},
		"Header: X: a value has a line break or another control character": {URL: good, Header: http.Header{"X": {"passwd\r\nY: z"}}},
		"Header: the name of a header has ' ' at byte 1: want letters, digits and !#$%&'*+-.^_`|~ only": {
			URL: good, Header: http.Header{"X passwd": {""}},
		},
		"Header: the name of a header is empty": {URL: good, Header: http.Header{"": {""}}},
		"Header: Sec-Websocket-Extensions is set by the handshake": {
			URL: good, Header: http.Header{"Sec-Websocket-Extensions": {"x"}},
		},
		"Header: Host: want one host, by that name": {URL: good, Header: http.Header{"Host": {"a/b"}}},
		"ProxyHeader: X: a value has a line break or another control character": {
			URL: good, ProxyHeader: http.Header{"X": {"passwd\n"}},
		},
		"ProxyHeader: Host is set by CONNECT": {URL: good, ProxyHeader: http.Header{"Host": {"passwd"}}},
		"Subprotocols[2]: it is the same as Subprotocols[1]": {
			URL: good, Subprotocols: []string{"a", "passwd", "passwd"},
		},
		"Subprotocols[1]: it has '/' at byte 6: want letters, digits and !#$%&'*+-.^_`|~ only": {
			URL: good, Subprotocols: []string{"a", "passwd/"},
		},
		"Subprotocols[0]: it has '\\u202e' at byte 6: want letters, digits and !#$%&'*+-.^_`|~ only": {
			URL: good, Subprotocols: []string{"passwd\u202e"},
		},
		"Subprotocols[0]: it is empty":       {URL: good, Subprotocols: []string{""}},
		"Compression: 3 is no mode":          {URL: good, Compression: 3},
		"Split: conn: Split.Parts is -1":     {URL: good, Split: conn.Split{Parts: -1}},
		"ConnectTimeout: -1ns is negative":   {URL: good, ConnectTimeout: -1},
		"HandshakeTimeout: -1ns is negative": {URL: good, HandshakeTimeout: -1},
		"Conn: conn: option ReadLimit is -1": {
			URL: good, Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: -1}},
		},
		"TCP.UserTimeout: 2s is less than KeepAlive.Idle + 2 KeepAlive.Interval (3s)": {
			URL: good, TCP: TCPOptions{UserTimeout: 2 * time.Second},
		},
		"URL: a space or a line break stands before or behind it: remove that": {
			URL: "wss://user:passwd@host/\n",
		},
		"URL: malformed URL: want one like wss://host:port/path": {URL: "wss://user:passwd@host:port/"},
	} {
		t.Run(want, func(t *testing.T) {
			err := d.Validate()
			require.ErrorContains(t, err, "dialer: WebSocket."+want)
			require.NotContains(t, err.Error(), "passwd")
			_, dialErr := d.Dial(context.Background())
			require.Equal(t, err, dialErr)
			require.Equal(t, backoff.ClassStop, backoff.Classify(err).Class)
			require.Empty(t, d.Host())
		})
	}
}

func TestHostIsTheSameForTheSameEndpoints(t *testing.T) {
	for want, d := range map[string]*WebSocket{
		"host:443":             {URL: "wss://u:p@HOST/path?q"},
		"host:80":              {URL: "ws://host"},
		"[::1]:8080":           {URL: "ws://[::1]:8080"},
		"a:443,b:80":           {URLs: []string{"ws://b", "wss://a/x"}},
		"a:443,b:80 2":         {URLs: []string{"wss://a/x", "ws://b", "ws://b/y"}},
		"xn--bcher-kva.de:443": {URL: "wss://Bücher.de/"},
	} {
		require.NoError(t, d.Validate())
		require.Contains(t, want, d.Host())
	}
}

func TestTheEndpointHasNoUserAndNoQuery(t *testing.T) {
	for want, d := range map[string]reconnect.Dialer{
		"wss://host:7/a%20path":       &WebSocket{URL: "wss://user:passwd@host:7/a%20path?token=passwd"},
		"wss://host/a, ws://host.b/b": &WebSocket{URLs: []string{"wss://host/a?passwd", "ws://passwd@host.b/b"}},
		"wss://xn--bcher-kva.de/":     &WebSocket{URL: "wss://Bücher.de/"},
		"tcp://host:7":                &Framed{Address: "host:7", Framer: conn.Lines{}},
		"tls://host:7, tls://b:8":     &Framed{Addresses: []string{"host:7", "b:8"}, Framer: conn.Lines{}, TLS: &tls.Config{}},
	} {
		c, err := reconnect.New(d, &reconnect.Options{Run: reconnect.RunOptions{StartSpread: time.Hour}})
		require.NoError(t, err)
		require.Equal(t, want, c.Endpoint())
		c.Close()
		<-c.Done()
	}
	require.Empty(t, new(WebSocket).Endpoint())
	require.Empty(t, new(Framed).Endpoint())
}

// hostGate is a gate that notes the hosts it is asked for, and lets nobody in.
type hostGate chan string

func (g hostGate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g <- host
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTheGateIsAskedForTheHostOfTheDialer(t *testing.T) {
	for want, d := range map[string]reconnect.Dialer{
		"a.example:443,b.example:80": &WebSocket{URLs: []string{"ws://b.example/x", "wss://a.example"}},
		"a.example:7":                &Framed{Address: "a.example:7", Framer: conn.Lines{}},
	} {
		g := make(hostGate, 1)
		o := &reconnect.Options{}
		o.Run.Gate = g
		c, err := reconnect.New(d, o)
		require.NoError(t, err)
		require.Equal(t, want, <-g)
		c.Close()
		<-c.Done()
	}
}

// Credentials that were refused are worth a second try only where Prepare can make new
// ones; then they are, at once.
func TestARefusalOfCredentialsIsForPrepareToMend(t *testing.T) {
	for _, code := range []int{401, 403} {
		for _, prepares := range []bool{false, true} {
			withServer(t, func(t *testing.T, v *wsServer) {
				var refresh []bool
				want := backoff.Verdict{Class: backoff.ClassSlow}
				if prepares {
					want.Class = backoff.ClassRefresh
					v.dialer.Prepare = func(ctx context.Context, _ *Request) error {
						refresh = append(refresh, backoff.AttemptFrom(ctx).Refresh)
						return nil
					}
				}
				v.Next(conntest.Status(code, nil))
				e := v.fail(t, t.Context(), 0)
				require.Equal(t, want, backoff.Classify(e))
				require.Equal(t, code, e.StatusCode)
				v.fail(t, t.Context(), 0)
				if prepares {
					require.Equal(t, []bool{false, true}, refresh)
				}
			})
		}
	}
}
