package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// planted are the secrets in the URL, the query, the header, the proxy, Location
// and the server's texts.
var planted = []string{"passwd", "user", "qsecret", "hsecret", "ppasswd", "lsecret", "ssecret"}

// requireNoSecret looks at everything that a program might print of err.
func requireNoSecret(t *testing.T, err error) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), e.Endpoint, e.Unwrap().Error()} {
		for _, s := range planted {
			require.NotContains(t, text, s)
		}
		require.Less(t, len(text), 1000)
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\n")
	}
}

func TestNoFailureHoldsASecret(t *testing.T) {
	leak := http.Header{"Location": {"https://other.example/?a=lsecret"}, "X-Echo": {"ssecret"}}
	hang := func(v *wsServer) { v.Next(conntest.Hang) }
	answer := func(a conntest.Answer) func(*wsServer) { return func(v *wsServer) { v.Next(a) } }
	for name, arrange := range map[string]func(v *wsServer){
		"refused": func(v *wsServer) { v.network.Fault(serverAddr, conntest.Fault{Refuse: true}) },
		"hole":    func(v *wsServer) { v.network.Fault(serverAddr, conntest.Fault{Hang: true}) },
		"no name": func(v *wsServer) {
			v.network.Fault(serverAddr, conntest.Fault{Err: &net.DNSError{Name: "server.example", Err: "x"}})
		},
		"hang":         hang,
		"hang up":      answer(conntest.HangUp),
		"bad accept":   answer(conntest.BadAccept),
		"200":          answer(text(200, "ssecret")),
		"400":          answer(text(400, "HTTPS ssecret")),
		"401":          answer(text(401, "user user has no token qsecret")),
		"403":          answer(text(403, "the key HSECRET is wrong")),
		"503":          answer(text(503, "passwd")),
		"redirect":     answer(conntest.Status(302, leak)),
		"redirect 307": answer(conntest.Status(307, leak)),
		"bad redirect": answer(conntest.Status(301, http.Header{"Location": {"http://u:lsecret@h:x/"}})),
		"bad TLS": func(v *wsServer) {
			v.dialer.URL = "wss" + serverURL[2:]
			v.network.Fault("server.example:443", conntest.Fault{Drop: true})
		},
		"no TLS":  func(v *wsServer) { v.dialer.URL = "wss://user:passwd@server.example:80/?token=qsecret" },
		"headers": answer(conntest.Status(503, http.Header{"X": {strings.Repeat("ssecret", 20000)}})),
		"proxy": func(v *wsServer) {
			v.dialer.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "p.example", User: url.UserPassword("puser", "ppasswd")})
		},
		"odd proxy": func(v *wsServer) {
			v.dialer.Proxy = http.ProxyURL(&url.URL{Scheme: "odd", Host: "p.example", User: url.UserPassword("puser", "ppasswd")})
		},
		"round": func(v *wsServer) {
			v.dialer.URL, v.dialer.URLs = "", []string{serverURL, serverURL + "&x"}
			v.Next(text(503, ""))
		},
		"prepare": func(v *wsServer) {
			v.dialer.Prepare = func(context.Context, *Request) error {
				//lint:ignore SA1007 its error is wanted, which prints the password
				_, err := url.Parse("ws://user:passwd@h:x/?qsecret")
				got := &url.Error{Op: "Get", URL: "https://auth.example/?key=qsecret", Err: errors.New("refused")}
				return fmt.Errorf("keys: %w", errors.Join(got, err))
			}
		},
		"prepared": func(v *wsServer) {
			v.dialer.Prepare = func(_ context.Context, r *Request) error { r.URL = "ws://user:passwd@h:x/?qsecret"; return nil }
		},
		"handshake limit": func(v *wsServer) { v.dialer.HandshakeTimeout = time.Second; hang(v) },
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.dialer.Header = http.Header{"Authorization": {"hsecret"}}
				arrange(v)
				_, err := v.dialer.Dial(t.Context())
				requireNoSecret(t, err)
			})
		})
	}
}

func TestWhatAServerWroteIsCutAndQuoted(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Garbage([]byte("\x1b]0;owned\a" + strings.Repeat("x", 5000) + "\r\n\r\n")))
		e := v.fail(t, t.Context(), 0)
		require.Contains(t, e.Error(), `malformed HTTP response "\x1b]0;owned\a`)
		requireNoSecret(t, e)
		require.Len(t, e.Err.Error(), maxText+len("..."))
	})
}

func TestPrintableEscapesWhatATerminalObeys(t *testing.T) {
	require.Equal(t, `a\x1b[31m\nb\u202eü`, printable("a\x1b[31m\nb\u202eü"))
	require.Equal(t, "\ufffd", printable("\xff"))
	zeros := strings.Repeat("\x00", maxText)
	require.Equal(t, strings.Repeat(`\x00`, maxText/4)+"...", printable(zeros), "cut once escaped")
}

// Whatever URL a program is given: no text has the password or the query.
func FuzzRedaction(f *testing.F) {
	f.Add("user", "passwd", "host", "token=qsecret")
	f.Add("", ":x@", "h:80", "#")
	f.Add("%", "a/b", "[::1", "%zz")
	f.Fuzz(func(t *testing.T, user, password, host, query string) {
		if strings.ContainsAny(user+password, "/?#@\\[]:") || strings.ContainsAny(host, "/?#@\\") {
			return // these are elsewhere in a URL than we mean
		}
		const mark = "s3cr3t"
		if strings.Contains(user+host, mark) {
			return
		}
		raw := fmt.Sprintf("ws://%s:%s%s@%s/path?%s%s", user, mark, password, host, mark, query)
		d := &WebSocket{
			URL:         raw,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errFell },
		}
		_, err := d.Dial(context.Background())
		require.Error(t, err)
		require.NotContains(t, err.Error(), mark)
		_, parseErr := url.Parse(raw)
		if parseErr != nil {
			require.NotContains(t, withoutURLs(fmt.Errorf("keys: %w", parseErr)), mark)
		}
		get := &url.Error{Op: "Get", URL: raw, Err: errFell}
		require.NotContains(t, withoutURLs(fmt.Errorf("keys from %s: %w", raw, get)), mark)
	})
}

// Validate is total, and what it accepts has an endpoint that can be printed and
// a key for the gate.
func FuzzValidate(f *testing.F) {
	f.Add("wss://host:443/p?q", "X-Key", "value", "v1")
	f.Add("ws://[fe80::1%25eth0]/", "Host", "a b", "")
	f.Add("ws://a\"b/", "X\n", "\r\n", "v 1")
	f.Fuzz(func(t *testing.T, raw, name, value, protocol string) {
		d := &WebSocket{URL: raw, Header: http.Header{name: {value}}, Subprotocols: []string{protocol}}
		if d.Validate() != nil {
			return
		}
		u := d.endpoints.urls[0]
		require.NotEmpty(t, d.Host())
		require.LessOrEqual(t, len(redacted(u)), maxText+3)
		_, err := http.NewRequest(http.MethodGet, u.String(), nil)
		require.NoError(t, err)
		require.False(t, strings.ContainsAny(value, "\r\n\x00"))
	})
}
