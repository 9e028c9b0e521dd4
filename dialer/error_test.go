package dialer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// planted are the secrets in the URL, the query and the proxy.
var planted = []string{"passwd", "user", "qsecret", "ppasswd"}

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
