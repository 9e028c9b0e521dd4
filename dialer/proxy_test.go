package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func proxyURL(scheme string) *url.URL {
	return &url.URL{Scheme: scheme, Host: proxyAddr, User: url.UserPassword("puser", "ppasswd")}
}

// proxied returns what went wrong with the proxy.
func (v *wsServer) proxied(t *testing.T, e *Error) *ProxyError {
	t.Helper()
	var p *ProxyError
	require.ErrorAs(t, e, &p)
	require.Zero(t, e.StatusCode, "the server has said nothing")
	requireNoSecret(t, e)
	return p
}

func TestEveryProxyMakesATunnel(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		t.Run("ws by "+scheme, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				p := v.proxy(t, scheme, &proxyServer{})
				c := v.dial(t)
				talk(t, c)
				c.CloseNow()
				require.Equal(t, []string{serverAddr}, p.targets, "the proxy looks the name up")
			})
		})
		t.Run("wss by "+scheme, func(t *testing.T) {
			withSecureServer(t, func(t *testing.T, v *wsServer) {
				p := v.proxy(t, scheme, &proxyServer{})
				v.handshake(t)
				require.Equal(t, []string{"example.com:443"}, p.targets)
			})
		})
	}
}

func TestProxyHeaderGoesToProxyOnly(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		withServer(t, func(t *testing.T, v *wsServer) {
			p := v.proxy(t, scheme, &proxyServer{})
			given := http.Header{"X-Tenant": {"blue"}, "Proxy-Authorization": {"Bearer replaced"}}
			v.dialer.ProxyHeader = given.Clone()
			seen := v.offers()
			v.dial(t).CloseNow()
			require.Len(t, p.headers, 1)
			require.Equal(t, "blue", p.headers[0].Get("X-Tenant"))
			require.Contains(t, p.headers[0].Get("Proxy-Authorization"), "Basic ", "that of the URL")
			require.Empty(t, seen.Header.Get("X-Tenant"))
			require.Equal(t, given, v.dialer.ProxyHeader)
		})
	}
}

// What the proxy says is the proxy's, and it is not for a proxy to end a connection or
// to ask for new credentials.
func TestTheAnswerOfAProxyIsTheProxys(t *testing.T) {
	for code, class := range map[int]backoff.Class{
		400: backoff.ClassRetry, 401: backoff.ClassSlow, 403: backoff.ClassSlow, 404: backoff.ClassRetry,
		407: backoff.ClassSlow, 410: backoff.ClassRetry, 426: backoff.ClassRetry, 429: backoff.ClassOverload,
		300: backoff.ClassRetry, 302: backoff.ClassRetry, 500: backoff.ClassRetry, 502: backoff.ClassRetry,
		503: backoff.ClassOverload, 504: backoff.ClassOverload, 101: backoff.ClassRetry,
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.proxy(t, "http", &proxyServer{answer: fmt.Sprintf("HTTP/1.1 %d X\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\n", code)})
			e := v.fail(t, t.Context(), 0)
			p := v.proxied(t, e)
			require.Equal(t, &ProxyError{StatusCode: code, Err: p.Err, proxy: "http://proxy.example:3128"}, p)
			require.EqualError(t, e, "dial ws://server.example/feed: proxy http://proxy.example:3128: "+statusText(code)+" (retry after 7s)")
			require.Equal(t, backoff.Verdict{Class: class, RetryAfter: 7 * time.Second}, backoff.Classify(e))
		})
	}
}

func TestA401OfAProxyAsksForNoNewCredentials(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.proxy(t, "http", &proxyServer{answer: "HTTP/1.1 401 Unauthorized\r\n\r\n"})
		v.dialer.Prepare = func(ctx context.Context, _ *Request) error {
			require.False(t, backoff.AttemptFrom(ctx).Refresh)
			return nil
		}
		v.proxied(t, v.fail(t, t.Context(), 0))
		v.proxied(t, v.fail(t, t.Context(), 0))
	})
}

func TestARefusedLoginAtAProxyIsSlow(t *testing.T) {
	for scheme, want := range map[string]string{
		"http":   "407 Proxy Authentication Required",
		"https":  "407 Proxy Authentication Required",
		"socks5": "login refused",
	} {
		for name, user := range map[string]*url.Userinfo{"wrong": url.UserPassword("puser", "ppasswd2"), "none": nil} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				withServer(t, func(t *testing.T, v *wsServer) {
					v.proxy(t, scheme, &proxyServer{})
					v.dialer.Proxy = http.ProxyURL(&url.URL{Scheme: scheme, Host: proxyAddr, User: user})
					e := v.fail(t, t.Context(), 0)
					require.ErrorContains(t, v.proxied(t, e), "proxy "+scheme+"://proxy.example:3128: "+want)
					require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
				})
			})
		}
	}
}

// Connecting ends when the tunnel is there, and the handshake's limit begins.
func TestAProxyIsPartOfConnecting(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		for _, stall := range []string{"hello", "login", "request", "server"} {
			t.Run(scheme+" "+stall, func(t *testing.T) {
				if stall == "login" && scheme != "socks5" {
					t.Skip("CONNECT has its login in the request")
				}
				withServer(t, func(t *testing.T, v *wsServer) {
					v.proxy(t, scheme, &proxyServer{stall: stall})
					text, limit := "proxy "+scheme+"://proxy.example:3128: not connected within 16s", 16*time.Second
					if stall == "server" {
						v.Next(conntest.Hang)
						text, limit = "handshake not answered within 30s", 30*time.Second
					}
					e := v.fail(t, t.Context(), limit)
					require.EqualError(t, e, "dial ws://server.example/feed: "+text)
					require.Equal(t, backoff.ClassOverload, backoff.Classify(e).Class)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					require.ErrorIs(t, v.fail(t, ctx, time.Second), context.DeadlineExceeded)
				})
			})
		}
	}
}

func TestATLSHandshakeWithAProxyIsPartOfConnecting(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.proxy(t, "https", &proxyServer{})
		v.network.Fault(proxyAddr, conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
		require.ErrorContains(t, v.fail(t, t.Context(), 16*time.Second), "not connected within 16s")
	})
}

func TestTheServerNameIsNotTheProxys(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		v.proxy(t, "https", &proxyServer{})
		v.dialer.TLS.ServerName, v.dialer.URL = "example.com", "wss://10.0.0.1/feed"
		v.network.Fault("10.0.0.1:443", conntest.Fault{Err: syscall.ECONNREFUSED})
		e := v.fail(t, t.Context(), 0)
		require.Equal(t, 502, v.proxied(t, e).StatusCode, "beyond TLS with the proxy")
		v.dialer = &WebSocket{URL: secureURL, TLS: v.dialer.TLS, Proxy: v.dialer.Proxy, DialContext: v.dialer.DialContext}
		v.handshake(t)
	})
}

func TestAProxyThatIsNoneIsNamed(t *testing.T) {
	for want, c := range map[string]struct {
		scheme  string
		arrange func(v *wsServer, p *proxyServer)
		class   backoff.Class
	}{
		"proxy http://proxy.example:3128: dial tcp proxy.example:3128: connect: connection refused": {"http", func(v *wsServer, _ *proxyServer) {
			v.network.Fault(proxyAddr, conntest.Fault{Err: syscall.ECONNREFUSED})
		}, backoff.ClassRetry},
		"proxy socks5://proxy.example:3128: write tcp client:1->proxy.example:3128: write: broken pipe": {"socks5", func(v *wsServer, _ *proxyServer) {
			v.network.Fault(proxyAddr, conntest.Fault{Drop: true})
		}, backoff.ClassRetry},
		`proxy http://proxy.example:3128: malformed HTTP status code "ready"`: {"http", func(_ *wsServer, p *proxyServer) {
			p.answer = "220 ready\r\n"
		}, backoff.ClassSlow},
		"proxy http://proxy.example:3128: the header of the answer exceeds 65536 bytes": {"http", func(_ *wsServer, p *proxyServer) {
			p.answer = "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<17)
		}, backoff.ClassSlow},
		"proxy http://proxy.example:3128: sent 5 bytes behind its answer to CONNECT": {"http", func(_ *wsServer, p *proxyServer) {
			p.answer = "HTTP/1.1 200 OK\r\n\r\nhello"
		}, backoff.ClassSlow},
		"proxy https://proxy.example:3128: answered without TLS: is this an http proxy?": {"http", func(v *wsServer, _ *proxyServer) {
			v.dialer.Proxy = http.ProxyURL(proxyURL("https"))
			v.network.Fault(proxyAddr, conntest.Fault{OnConn: func(p *conntest.Pipe) {
				p.Inject(conntest.ToClient, []byte("HTTP/1.0 400 Bad Request\r\n\r\n"))
			}})
		}, backoff.ClassSlow},
		"proxy https://proxy.example:3128: tls: failed to verify certificate: x509: certificate signed by unknown authority": {"https", func(v *wsServer, _ *proxyServer) {
			v.dialer.TLS = nil
		}, backoff.ClassSlow},
	} {
		t.Run(want, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				p := &proxyServer{}
				v.proxy(t, c.scheme, p)
				c.arrange(v, p)
				e := v.fail(t, t.Context(), 0)
				require.ErrorContains(t, v.proxied(t, e), want)
				require.IsType(t, new(ProxyError), e.Err)
				require.Equal(t, c.class, backoff.Classify(e).Class)
			})
		})
	}
}

func TestTheURLOfAProxyIsChecked(t *testing.T) {
	for raw, want := range map[string]string{
		"odd://puser:ppasswd@p.example":     "proxy: its URL must begin with http, https, socks5 or socks5h",
		"puser:ppasswd@p.example:3128":      "proxy: its URL must begin with http, https, socks5 or socks5h",
		"http://puser:ppasswd@":             "proxy: its URL is wrong: no host",
		"http://puser:ppasswd@p.example:0":  "proxy: its URL is wrong: port must be 1 to 65535",
		"http://puser:ppasswd@p\"x.example": "proxy: its URL is wrong: malformed host",
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(raw) }
			e := v.fail(t, t.Context(), 0)
			require.EqualError(t, v.proxied(t, e), want)
			require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
			require.Empty(t, v.network.Dials(""))
		})
	}
}

func TestAProxyThatCannotBeChosenIsNotPrinted(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		port := "port"
		_, errURL := url.Parse("http://puser:ppasswd@p.example:" + port)
		for _, errEnv := range []error{errors.New("invalid proxy address http://puser:ppasswd@"), errURL} {
			v.dialer.Proxy = func(*http.Request) (*url.URL, error) { return nil, errEnv }
			e := v.fail(t, t.Context(), 0)
			require.ErrorIs(t, e, errEnv)
			require.ErrorContains(t, e, "no proxy could be chosen: look at WebSocket.Proxy, HTTP_PROXY and HTTPS_PROXY")
			requireNoSecret(t, e)
		}
	})
}

func TestTheProxyIsChosenForARequestOfHTTP(t *testing.T) {
	for scheme, want := range map[string]string{"ws": "http", "wss": "https"} {
		var asked *http.Request
		d := &WebSocket{URL: scheme + "://server.example/feed?x", Header: http.Header{"X-Key": {"k"}},
			Proxy:       func(r *http.Request) (*url.URL, error) { asked = r; return nil, nil },
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errFell },
		}
		_, err := d.Dial(t.Context())
		require.ErrorIs(t, err, errFell)
		require.Equal(t, want+"://server.example/feed?x", asked.URL.String())
		require.Equal(t, "k", asked.Header.Get("X-Key"))
	}
}

func TestAProxyErrorMadeByHand(t *testing.T) {
	e := &ProxyError{StatusCode: 429, proxy: "http://p:1"}
	require.EqualError(t, e, "proxy http://p:1: 429 Too Many Requests")
	require.Equal(t, backoff.ClassOverload, backoff.Classify(fmt.Errorf("x: %w", e)).Class)
	require.Equal(t, backoff.ClassSlow, (&ProxyError{Err: backoff.Permanent(errFell)}).Verdict().Class)
	require.Equal(t, backoff.ClassRetry, (&ProxyError{StatusCode: 502, Err: context.DeadlineExceeded}).Verdict().Class)
}

// The environment is read once for each process, so this test has one of its own. The
// name of the server is none of loopback, for which the environment never chooses a
// proxy; its addresses are.
func TestTheProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv(inChild) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestTheProxyOfTheEnvironment$", "-test.v")
		child.Env = append(os.Environ(), inChild+"=1")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p := &proxyServer{user: "puser", password: "ppasswd", dial: toLoopback}
		p.serve(l)
		defer func() { l.Close(); p.work.Wait() }()
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
			child.Env = append(child.Env, name+"=http://puser:ppasswd@"+l.Addr().String())
		}
		child.Env = append(child.Env, "NO_PROXY=direct.example")
		output, err := child.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: TestTheProxyOfTheEnvironment")
		require.Len(t, p.targets, 2, "ws and wss: %v", p.targets)
		return
	}
	for _, secure := range []bool{false, true} {
		s, scheme := httptest.NewUnstartedServer(http.HandlerFunc(echoWebSocket)), "ws"
		s.Config.ErrorLog = silent
		own := newCertificate(t, "server.example")
		d := &WebSocket{Header: http.Header{}}
		d.TCP.LookupNetIP = (&names{addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}).LookupNetIP
		if secure {
			s.TLS, scheme, d.TLS = tlsOf(own), "wss", tlsOf(own)
			s.StartTLS()
		} else {
			s.Start()
		}
		defer s.Close()
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		d.URL = scheme + "://server.example:" + port
		meet(t, d)
		direct := &WebSocket{URL: d.URL, TLS: d.TLS, TCP: d.TCP, Proxy: http.ProxyURL(nil)}
		meet(t, direct)
		if !secure {
			meet(t, &WebSocket{URL: "ws://direct.example:" + port, TCP: d.TCP})
		}
	}
}

// toLoopback dials the port of addr on loopback, as a resolver would have it.
func toLoopback(ctx context.Context, network, addr string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var n net.Dialer
	return n.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
}
