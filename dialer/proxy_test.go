package dialer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

var proxyURL = &url.URL{Scheme: "http", Host: "proxy.example:3128", User: url.UserPassword("puser", "ppasswd")}

// proxy is a CONNECT proxy on the venue's network that answers with code.
func (v *venue) proxy(t *testing.T, code int) {
	s := conntest.NewServer(v.network, "proxy.example:3128", nil)
	t.Cleanup(s.Close)
	s.Next(func(w http.ResponseWriter, r *http.Request) {
		if code != http.StatusOK || r.Method != http.MethodConnect {
			w.WriteHeader(code)
			return
		}
		far, err := v.network.DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		near, _, _ := http.NewResponseController(w).Hijack()
		near.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		pump(near, far)
	})
	v.dialer.Proxy = http.ProxyURL(proxyURL)
}

// pump carries bytes both ways until one side is closed, then closes both.
func pump(a, b net.Conn) {
	ended := make(chan struct{}, 2)
	for _, w := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			defer func() { ended <- struct{}{} }()
			buf := make([]byte, 4096)
			for {
				n, err := w[0].Read(buf)
				if err != nil {
					break
				}
				if _, err := w[1].Write(buf[:n]); err != nil {
					break
				}
			}
			a.Close()
			b.Close()
		}()
	}
	<-ended
	<-ended
}

func TestWSSGoesThroughAConnectProxy(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.proxy(t, 200)
		v.handshake(t)
		require.Len(t, v.network.Dials("proxy.example:3128"), 1)
		require.Len(t, v.network.Dials("example.com:443"), 1)
	})
}

func TestAProxyThatRefusesIsNamed(t *testing.T) {
	for code, want := range map[int]struct {
		text  string
		class backoff.Class
	}{
		407: {"proxy refused: 407 Proxy Authentication Required", backoff.ClassSlow},
		503: {"proxy refused: 503 Service Unavailable", backoff.ClassOverload},
		410: {"proxy refused: 410 Gone", backoff.ClassRetry}, // not the server's word
	} {
		inSecureVenue(t, func(t *testing.T, v *venue) {
			v.proxy(t, code)
			e := v.fail(t, t.Context(), 0)
			require.EqualError(t, e, "dial wss://example.com/feed: "+want.text)
			require.Equal(t, want.class, backoff.Classify(e).Class)
		})
	}
}

// The connect limit covers the proxy's answer, the handshake limit what is
// beyond; the context covers both.
func TestAProxyCannotHoldUsUp(t *testing.T) {
	for name, c := range map[string]struct {
		stall string
		want  time.Duration
		text  string
	}{
		"in CONNECT": {"proxy.example:3128", 15 * time.Second, "not connected within 15s"},
		"beyond":     {"example.com:443", 30 * time.Second, "handshake not answered within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			inSecureVenue(t, func(t *testing.T, v *venue) {
				v.proxy(t, 200)
				v.network.Fault(c.stall, conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
				require.ErrorContains(t, v.fail(t, t.Context(), c.want), c.text)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, v.fail(t, ctx, time.Second), context.DeadlineExceeded)
			})
		})
	}
}

func TestTheEnvironmentChoosesNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.example:3128")
	inVenue(t, func(t *testing.T, v *venue) {
		v.dial(t).CloseNow()
		require.Empty(t, v.network.Dials("proxy.example:3128"))
	})
}

func TestAProxyThatCannotBeChosenIsNotPrinted(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		errEnv := errors.New("invalid proxy address http://puser:ppasswd@")
		v.dialer.Proxy = func(*http.Request) (*url.URL, error) { return nil, errEnv }
		e := v.fail(t, t.Context(), 0)
		require.ErrorIs(t, e, errEnv)
		require.ErrorContains(t, e, "no proxy could be chosen")
		require.NotContains(t, e.Error(), "ppasswd")
	})
}

func TestTheHookForAProxysAnswerIsKept(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.proxy(t, 200)
		errHook := errors.New("wrong proxy")
		v.dialer.Transport = &http.Transport{
			OnProxyConnectResponse: func(context.Context, *url.URL, *http.Request, *http.Response) error { return errHook },
		}
		require.ErrorIs(t, v.fail(t, t.Context(), 0), errHook)
	})
}
