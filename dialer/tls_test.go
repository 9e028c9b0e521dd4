package dialer

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

const secureURL = "wss://user:passwd@example.com/feed?token=qsecret"

// withSecureServer runs test with a wss server, whose certificate is for
// example.com and which the dialer trusts.
func withSecureServer(t *testing.T, test func(t *testing.T, v *wsServer)) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s.Client().CloseIdleConnections()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := &wsServer{Server: conntest.NewServer(n, "example.com:443", nil), network: n}
		defer v.Close()
		v.TLS = &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
		v.dialer = &WebSocket{URL: secureURL, DialContext: n.DialContext, TLS: &tls.Config{RootCAs: roots}}
		test(t, v)
		synctest.Wait()
		require.Zero(t, n.Count("").Open, "connections left open")
	})
}

// handshake dials and returns the state of TLS.
func (v *wsServer) handshake(t *testing.T) (state tls.ConnectionState) {
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(s tls.ConnectionState, _ error) { state = s },
	})
	c, err := v.dialer.Dial(ctx)
	require.NoError(t, err)
	defer c.CloseNow()
	require.NoError(t, c.Write(helloMessage))
	_, err = c.Read(nil) // the session ticket comes with the first bytes read
	require.NoError(t, err)
	return state
}

func TestARedialResumesTheTLSSession(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		require.False(t, v.handshake(t).DidResume)
		require.True(t, v.handshake(t).DidResume)
	})
}

func TestHTTP2IsNeverNegotiated(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.TLS.NextProtos = []string{"h2"}
		require.Empty(t, v.handshake(t).NegotiatedProtocol)
	})
}

func TestSessionTicketsCanBeTurnedOff(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.TLS.SessionTicketsDisabled = true
		require.False(t, v.handshake(t).DidResume)
		require.False(t, v.handshake(t).DidResume)
	})
}

func TestTLSConfigIsClonedWithDefaults(t *testing.T) {
	given := &tls.Config{ServerName: "x"}
	d := &WebSocket{URL: "wss://h", TLS: given}
	require.NoError(t, d.Validate())
	given.ServerName = "later"
	c := d.endpoints.configs().forHost("h")
	require.NotSame(t, given, c)
	require.Equal(t, "x", c.ServerName)
	require.Equal(t, uint16(tls.VersionTLS12), c.MinVersion)
	require.Equal(t, &tls.Config{ServerName: "later"}, given)
}

// A dialer of ws:// makes no TLS configuration, and remembers nothing of a server that answers.
func TestWhatIsNotNeededIsNotMade(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		defer v.dial(t).CloseNow()
		require.Nil(t, v.dialer.endpoints.made)
		require.Nil(t, v.dialer.endpoints.hangs.places)
		require.Equal(t, []endpointState{{}}, v.dialer.endpoints.states)
	})
}

func TestTheEndpointsOfOneHostShareAConfiguration(t *testing.T) {
	c := newTLSConfigs(nil, []*url.URL{{Host: "a:1"}, {Host: "a:2"}})
	require.Equal(t, "a", c.forHost("a").ServerName)
	require.Len(t, c.byHost, 1)
	require.Same(t, c.forHost("a"), c.forHost("a"))
	require.Equal(t, "b", c.forHost("b").ServerName, "Prepare may name any host")
	require.Equal(t, "p", c.forProxy("p").ServerName)
}

func TestAMinVersionThatIsGivenIsKept(t *testing.T) {
	require.Equal(t, uint16(tls.VersionTLS13), tlsDefaults(&tls.Config{MinVersion: tls.VersionTLS13}).MinVersion)
	require.Equal(t, uint16(tls.VersionTLS10), tlsDefaults(&tls.Config{MinVersion: tls.VersionTLS10}).MinVersion)
}

// helloKey is a key for Encrypted Client Hello, and the list of it that a client gets.
func helloKey(t *testing.T) (key tls.EncryptedClientHelloKey, list []byte) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	public, name := private.PublicKey().Bytes(), "public.example"
	config := binary.BigEndian.AppendUint16([]byte{1, 0, 0x20}, uint16(len(public))) // an id, and X25519
	config = append(append(config, public...), 0, 4, 0, 1, 0, 1, 0, byte(len(name))) // HKDF-SHA256 and AES-128-GCM
	config = append(append(config, name...), 0, 0)                                   // no extensions
	config = append(binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(config))), config...)
	key = tls.EncryptedClientHelloKey{Config: config, PrivateKey: private.Bytes()}
	return key, append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}

// Whatever crypto/tls can do with a configuration, a dialer can do with it.
func TestEachFieldOfATLSConfigWorks(t *testing.T) {
	key, list := helloKey(t)
	own := newCertificate(t, "client")
	for name, set := range map[string]func(c *tls.Config){
		"none":         func(*tls.Config) {},
		"Rand":         func(c *tls.Config) { c.Rand = rand.Reader },
		"Time":         func(c *tls.Config) { c.Time = time.Now },
		"Certificates": func(c *tls.Config) { c.Certificates = []tls.Certificate{own} },
		"GetClientCertificate": func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		},
		"VerifyPeerCertificate": func(c *tls.Config) {
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
		},
		"VerifyConnection": func(c *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { return nil }
		},
		"NextProtos":         func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} },
		"ServerName":         func(c *tls.Config) { c.ServerName = "www.example.com" },
		"InsecureSkipVerify": func(c *tls.Config) { c.RootCAs, c.InsecureSkipVerify = nil, true },
		"CipherSuites": func(c *tls.Config) {
			c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
		},
		"SessionTicketsDisabled":      func(c *tls.Config) { c.SessionTicketsDisabled = true },
		"ClientSessionCache":          func(c *tls.Config) { c.ClientSessionCache = tls.NewLRUClientSessionCache(2) },
		"MinVersion":                  func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
		"MaxVersion":                  func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"CurvePreferences":            func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} },
		"DynamicRecordSizingDisabled": func(c *tls.Config) { c.DynamicRecordSizingDisabled = true },
		"Renegotiation":               func(c *tls.Config) { c.Renegotiation = tls.RenegotiateOnceAsClient },
		"KeyLogWriter":                func(c *tls.Config) { c.KeyLogWriter = io.Discard },
		"EncryptedClientHello":        func(c *tls.Config) { c.EncryptedClientHelloConfigList = list },
		"EncryptedClientHello and 1.3": func(c *tls.Config) {
			c.EncryptedClientHelloConfigList, c.MinVersion = list, tls.VersionTLS13
		},
		"RejectionVerify": func(c *tls.Config) {
			c.EncryptedClientHelloConfigList = list
			c.EncryptedClientHelloRejectionVerify = func(tls.ConnectionState) error { return errFell }
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSecureServer(t, func(t *testing.T, v *wsServer) {
				v.TLS.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{key}
				v.TLS.ClientAuth = tls.RequestClientCert
				set(v.dialer.TLS)
				f := &Framed{
					Address:     "example.com:443",
					Framer:      conn.Lines{},
					TLS:         v.dialer.TLS.Clone(),
					DialContext: v.network.DialContext,
				}
				for range 2 {
					state := v.handshake(t)
					require.Equal(t, v.dialer.TLS.EncryptedClientHelloConfigList != nil, state.ECHAccepted)
					c, err := f.Dial(t.Context())
					require.NoError(t, err)
					require.NoError(t, c.CloseNow())
				}
			})
		})
	}
}

// The list is that of the endpoint, and a proxy could not read such a hello.
func TestEncryptedClientHelloIsNotForAProxy(t *testing.T) {
	key, list := helloKey(t)
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.TLS.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{key}
		v.dialer.TLS.EncryptedClientHelloConfigList = list
		v.proxy(t, "https", &proxyServer{})
		require.True(t, v.handshake(t).ECHAccepted)
	})
}

// The name of an interface, such as enP2p1s0 of Linux, may have letters of both cases. A certificate has
// none.
func TestAZoneKeepsItsCaseAndIsInNoCertificate(t *testing.T) {
	const address = "[fe80::1%enP2p1s0]:443"
	own := newCertificate(t, "server")
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := conntest.NewServer(n, address, nil)
		defer v.Close()
		v.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
		for _, d := range []interface {
			dials
			Host() string
		}{
			&WebSocket{
				URL:         "wss://[FE80::1%25enP2p1s0]",
				TLS:         &tls.Config{RootCAs: poolOf(own)},
				DialContext: n.DialContext,
			},
			&Framed{
				Address:     "[fe80::1%enP2p1s0]:443",
				Framer:      conn.Lines{},
				TLS:         &tls.Config{RootCAs: poolOf(own)},
				DialContext: n.DialContext,
			},
		} {
			require.Equal(t, address, d.Host())
			c, err := d.Dial(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.CloseNow())
		}
	})
}

// tlsPeer is a server of TLS on a loopback port that demands a client certificate, and
// sends back what it reads. It notes the clients' names.
type tlsPeer struct {
	addr   string
	roots  *x509.CertPool // with which to trust it
	mu     sync.Mutex
	peers  []string
	resume []bool
}

// eachTLS runs test with both kinds of dialer, and TLS 1.2 and 1.3. The certificates a
// and b are those of the client.
func eachTLS(t *testing.T, test func(t *testing.T, p *tlsPeer, a, b tls.Certificate, open func(*tls.Config) dials)) {
	server, a, b := newCertificate(t, "localhost"), newCertificate(t, "A"), newCertificate(t, "B")
	for _, kind := range []string{"WebSocket", "Framed"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(kind+" "+tls.VersionName(version), func(t *testing.T) {
				p := &tlsPeer{roots: poolOf(server)}
				l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
					Certificates: []tls.Certificate{server}, MaxVersion: version,
					ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: poolOf(a, b), VerifyConnection: p.note,
				})
				require.NoError(t, err)
				p.addr = l.Addr().String()
				if kind == "WebSocket" {
					s := &http.Server{Handler: http.HandlerFunc(echoWebSocket), ErrorLog: silent}
					t.Cleanup(func() { s.Close() })
					go s.Serve(l)
					test(t, p, a, b, func(c *tls.Config) dials { return &WebSocket{URL: "wss://" + p.addr, TLS: c} })
					return
				}
				t.Cleanup(func() { l.Close() })
				go echo(l)
				test(t, p, a, b, func(c *tls.Config) dials { return &Framed{Address: p.addr, Framer: conn.Lines{}, TLS: c} })
			})
		}
	}
}

// dials is either dialer.
type dials interface {
	Dial(ctx context.Context) (conn.Conn, error)
}

func (p *tlsPeer) note(s tls.ConnectionState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peers, p.resume = append(p.peers, s.PeerCertificates[0].Subject.CommonName), append(p.resume, s.DidResume)
	return nil
}

func echoWebSocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	if kind, data, err := c.Read(r.Context()); err == nil {
		_ = c.Write(r.Context(), kind, data)
		_, _, _ = c.Read(r.Context())
	}
}

// meet dials and talks, because a session ticket comes with the first bytes read.
func meet(t *testing.T, d dials) {
	t.Helper()
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	talk(t, c)
	c.CloseNow()
}

// The server would go on seeing A if the session of A's handshake were resumed.
func TestTheNextDialUsesARotatedClientCertificate(t *testing.T) {
	eachTLS(t, func(t *testing.T, p *tlsPeer, a, b tls.Certificate, open func(*tls.Config) dials) {
		current := &a
		d := open(&tls.Config{RootCAs: p.roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return current, nil
		}})
		list := []tls.Certificate{a}
		other := open(&tls.Config{RootCAs: p.roots, Certificates: list})
		meet(t, d)
		meet(t, other)
		current, list[0] = &b, b
		meet(t, d)
		meet(t, other)
		require.Equal(t, []string{"A", "A", "B", "B"}, p.peers)
	})
}

func TestVerifyPeerCertificateIsCalledForEachConnection(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		calls := 0
		v.dialer.TLS.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { calls++; return nil }
		for range 3 {
			v.handshake(t)
		}
		require.Equal(t, 3, calls)
	})
}

// So it needs no full handshake.
func TestVerifyConnectionIsCalledForEachConnection(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		var resumed []bool
		v.dialer.TLS.VerifyConnection = func(s tls.ConnectionState) error {
			resumed = append(resumed, s.DidResume)
			require.NotEmpty(t, s.VerifiedChains)
			return nil
		}
		for range 3 {
			v.handshake(t)
		}
		require.Equal(t, []bool{false, true, true}, resumed)
	})
}

func TestASessionCacheThatIsGivenIsKept(t *testing.T) {
	given := tls.NewLRUClientSessionCache(1)
	require.Same(t, given, tlsDefaults(&tls.Config{ClientSessionCache: given}).ClientSessionCache)
	eachTLS(t, func(t *testing.T, p *tlsPeer, a, _ tls.Certificate, open func(*tls.Config) dials) {
		d := open(&tls.Config{RootCAs: p.roots, Certificates: []tls.Certificate{a}, ClientSessionCache: tls.NewLRUClientSessionCache(1)})
		meet(t, d)
		meet(t, d)
		require.Equal(t, []bool{false, true}, p.resume)
	})
}

func TestCertificateProblemsAreSlow(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(v *wsServer)
		want  string
	}{
		"authority": {func(v *wsServer) { v.dialer.TLS.RootCAs = x509.NewCertPool() }, "certificate signed by unknown authority"},
		"name":      {func(v *wsServer) { v.dialer.TLS.ServerName = "other.example" }, "not other.example"},
		"expired": {func(v *wsServer) { v.dialer.TLS.Time = func() time.Time { return time.Unix(1<<33, 0) } },
			"certificate is valid only from 1970-01-01T00:00:00Z to 2084-01-29T16:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			withSecureServer(t, func(t *testing.T, v *wsServer) {
				c.spoil(v)
				e := v.fail(t, t.Context(), 0)
				require.Contains(t, e.Error(), c.want)
				require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
			})
		})
	}
}

func TestAWrongSchemeIsNamedBothWays(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.URL = "ws://example.com:443/"
		e := v.fail(t, t.Context(), 0)
		require.EqualError(t, e, "dial ws://example.com:443/: 400 Bad Request: is this a wss server?")
	})
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.URL = "wss://server.example:80/"
		e := v.fail(t, t.Context(), 0)
		require.EqualError(t, e, "dial wss://server.example:80/: answered without TLS: is this a ws server?")
		require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
	})
}

// A server that is silent in TLS: net/http would shake hands for ever.
func TestTheHandshakeLimitCoversTLS(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault("example.com:443", conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
		e := v.fail(t, t.Context(), 30*time.Second)
		require.EqualError(t, e, "dial wss://example.com/feed: handshake not answered within 30s")
	})
}

func TestContextEndsTLS(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.network.Fault("example.com:443", conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, v.fail(t, ctx, time.Second), context.DeadlineExceeded)
	})
}

// Only the text of a certificate that has expired has the present time in it.
func TestOtherCertificateErrorsKeepTheirText(t *testing.T) {
	invalid := x509.CertificateInvalidError{Cert: new(x509.Certificate), Reason: x509.IncompatibleUsage}
	u := &url.URL{Scheme: "wss", Host: "example.com"}
	require.EqualError(t, explain(u, new(secrets), invalid), invalid.Error())
}
