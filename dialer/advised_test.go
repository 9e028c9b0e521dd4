package dialer

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// told is what a dialer has reported of an advised address.
type told struct {
	calls int
	err   error
}

// advise returns a context with an address that a server has advised.
func advise(ctx context.Context, address string) (context.Context, *told) {
	t := new(told)
	followed := func(err error) { t.calls++; t.err = err }
	return backoff.WithAttempt(ctx, backoff.Attempt{URL: address, Followed: followed}), t
}

// An address at the same host takes the place of the whole URL.
func TestAnAdvisedAddressAtTheSameHostIsFollowed(t *testing.T) {
	for _, address := range []string{
		"ws://server.example/b?resume=1", "ws://server.example:80/b?resume=1", "ws://SERVER.example/b?resume=1",
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Header = http.Header{"X-Key": {"k"}}
			seen := v.offers()
			ctx, followed := advise(t.Context(), address)
			c, err := v.dialer.Dial(ctx)
			require.NoError(t, err)
			defer c.CloseNow()
			require.Equal(t, &told{calls: 1}, followed)
			require.Equal(t, "/b?resume=1", seen.RequestURI)
			require.Equal(t, "k", seen.Header.Get("X-Key"))
			require.Empty(t, seen.Header.Get("Authorization"), "the user of the URL, which is not in the new one")
		})
	}
}

func TestTheFramesOfAnAdvisedAddressAreCut(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Split.Func = bufio.ScanLines
		v.Next(v.AcceptWith(func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
			_ = c.Write(ctx, websocket.MessageText, []byte("one\ntwo"))
		}))
		ctx, _ := advise(t.Context(), "ws://server.example/b")
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		defer c.CloseNow()
		for _, want := range []string{"one", "two"} {
			m, err := c.Read(nil)
			require.NoError(t, err)
			require.Equal(t, conn.TextMessage(want), m)
		}
	})
}

// Everything else is ignored, and reported. The dial goes where it always goes.
func TestOtherAdvisedAddressesAreIgnored(t *testing.T) {
	const none = " is none of the endpoints"
	for address, why := range map[string]string{
		"ws://other.example/b?secret":        "advised address: ws://other.example" + none,
		"ws://server.example:81/b":           "advised address: ws://server.example:81" + none,
		"wss://server.example/b":             "advised address: wss://server.example" + none,
		"wss://server.example:80/b":          "advised address: wss://server.example:80" + none,
		"ws://server.example.evil/b":         "advised address: ws://server.example.evil" + none,
		"ws://u:secret@server.example/b":     "advised address: has a user",
		"http://server.example/secret":       "advised address: scheme must be ws or wss, not http",
		"ws://server.example/b#secret":       "advised address: a WebSocket URL has no fragment",
		"/secret":                            "advised address: scheme must be ws or wss: want a URL like wss://host:port/path",
		"ws://server.example\r\nX-A: secret": "advised address: malformed URL: want one like wss://host:port/path",
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			seen := v.offers()
			ctx, ignored := advise(t.Context(), address)
			c, err := v.dialer.Dial(ctx)
			require.NoError(t, err)
			defer c.CloseNow()
			require.Equal(t, 1, ignored.calls)
			require.EqualError(t, ignored.err, why)
			require.Equal(t, "/feed?token=qsecret", seen.RequestURI)
		})
	}
}

// The failure at an advised address is the failure of the dial: nothing else is asked.
func TestADialToAnAdvisedAddressAsksNothingElse(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Status(503, http.Header{"Retry-After": {"7"}}), nil)
		ctx, _ := advise(t.Context(), "ws://server.example/b?secret")
		e := v.fail(t, ctx, 0)
		require.EqualError(t, e, "dial ws://server.example/b: 503 Service Unavailable (retry after 7s)")
		require.Len(t, v.network.Dials(serverAddr), 1)
	})
}

// What an endpoint has said is remembered, whichever path was asked.
func TestAnAnswerAtAnAdvisedAddressCountsForItsEndpoint(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.URL, v.dialer.URLs = "", []string{serverURL, "ws://second.example/feed"}
		second := conntest.NewServer(v.network, "second.example:80", nil)
		defer second.Close()
		v.Next(conntest.Status(503, http.Header{"Retry-After": {"7"}}))
		ctx, _ := advise(t.Context(), "ws://server.example/b")
		v.fail(t, ctx, 0)
		for range 10 {
			defer v.dial(t).CloseNow()
		}
		require.Len(t, v.network.Dials(serverAddr), 1, "it has asked us to stay away")
	})
}

// The path is another, but the server, and who we are for it, are the same.
func TestARefusalOfCredentialsCountsForAnAdvisedAddress(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		var refresh []bool
		v.dialer.Prepare = func(ctx context.Context, _ *Request) error {
			refresh = append(refresh, backoff.AttemptFrom(ctx).Refresh)
			return nil
		}
		v.Next(conntest.Status(401, nil), v.Accept)
		v.fail(t, t.Context(), 0)
		ctx, _ := advise(t.Context(), "ws://server.example/b")
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		require.NoError(t, c.CloseNow())
		require.Equal(t, []bool{false, true}, refresh)
	})
}

// A user can allow more. Nothing that proves who we are goes there, unless Prepare adds it.
func TestAForeignHostGetsNoCredentials(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		var asked []string
		v.dialer.URL = "ws://home.example/feed?token=qsecret"
		v.dialer.Header = http.Header{"Authorization": {"secret"}, "Cookie": {"secret"}, "X-Key": {"secret"}, "Host": {"home.example"}}
		v.dialer.FollowHint = func(to *url.URL) bool {
			asked = append(asked, to.String())
			to.Host = "evil.example" // the copy is the user's
			return true
		}
		v.dialer.Prepare = func(_ context.Context, r *Request) error {
			require.Equal(t, &Request{URL: "ws://server.example/b?x=1", Header: http.Header{}}, r)
			r.Header.Set("X-Other", "for this host")
			return nil
		}
		seen := v.offers()
		ctx, followed := advise(t.Context(), "ws://server.example/b?x=1")
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		defer c.CloseNow()
		require.Equal(t, &told{calls: 1}, followed)
		require.Equal(t, []string{"ws://server.example/b?x=1"}, asked)
		require.Equal(t, "server.example /b?x=1 for this host", seen.Host+" "+seen.RequestURI+" "+seen.Header.Get("X-Other"))
		for _, name := range []string{"Authorization", "Cookie", "X-Key"} {
			require.Empty(t, seen.Header.Get(name))
		}
		require.Equal(t, "secret", v.dialer.Header.Get("X-Key"))
	})
}

func TestAUserCanRefuseAForeignHost(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.FollowHint = func(*url.URL) bool { return false }
		ctx, ignored := advise(t.Context(), "ws://other.example/")
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		defer c.CloseNow()
		require.EqualError(t, ignored.err, "advised address: ws://other.example is none of the endpoints")
	})
}

// The server demands a certificate, and gets none when it is known by another name.
func TestAForeignHostGetsNoClientCertificate(t *testing.T) {
	eachTLS(t, func(t *testing.T, p *tlsPeer, a, _ tls.Certificate, open func(*tls.Config) dials) {
		for name, config := range map[string]*tls.Config{
			"Certificates": {RootCAs: p.roots, Certificates: []tls.Certificate{a}, ClientSessionCache: tls.NewLRUClientSessionCache(1)},
			"GetClientCertificate": {RootCAs: p.roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &a, nil
			}},
		} {
			d, is := open(config).(*WebSocket)
			if !is {
				return // a Framed follows no address
			}
			d.FollowHint = func(*url.URL) bool { return true }
			d.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, p.addr)
			}
			p.peers = nil
			ctx, followed := advise(t.Context(), "wss://localhost:1/b")
			_, err := d.Dial(ctx)
			require.Error(t, err, name)
			require.NoError(t, followed.err)
			require.Empty(t, p.peers)
			meet(t, d)
			require.Equal(t, []string{"A"}, p.peers)
		}
	})
}

// A dialer that has no addresses to choose from does not call Followed, which the supervisor
// reports.
func TestAFramedFollowsNoAddress(t *testing.T) {
	ctx, followed := advise(t.Context(), "tcp://other.example:1")
	d := &Framed{Address: "127.0.0.1:1", Framer: conn.Lines{}}
	_, err := d.Dial(ctx)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.Zero(t, followed.calls)
}
