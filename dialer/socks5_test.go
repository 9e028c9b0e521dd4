package dialer

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestRepliesOfSOCKS5AreExplained(t *testing.T) {
	for reply, want := range map[byte]struct {
		text  string
		class backoff.Class
	}{
		1:  {"general failure", backoff.ClassRetry},
		2:  {"not allowed by its rules", backoff.ClassSlow},
		5:  {"connection refused", backoff.ClassRetry},
		8:  {"address type not supported", backoff.ClassSlow},
		77: {"unknown reply 77", backoff.ClassRetry},
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.proxy(t, "socks5", &proxyServer{reply: reply})
			e := v.fail(t, t.Context(), 0)
			require.EqualError(t, v.proxied(t, e), "proxy socks5://proxy.example:3128: "+want.text)
			require.Equal(t, want.class, backoff.Classify(e).Class)
		})
	}
}

func TestSOCKS5CarriesAddressesAsTheyAre(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1:80", "[::1]": "[::1]:80", "Bücher.example": "xn--bcher-kva.example:80",
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			p := v.proxy(t, "socks5", &proxyServer{reply: 4})
			v.dialer.URL = "ws://" + host
			v.fail(t, t.Context(), 0)
			require.Equal(t, []string{want}, p.targets)
		})
	}
}

func TestAnswersThatSOCKS5DoesNotKnowAreSlow(t *testing.T) {
	for said, want := range map[string]string{
		"HTTP/1.1 400":                     "is no SOCKS5 proxy",
		"\x05\x00HTTP":                     "is no SOCKS5 proxy",
		"\x05\x02\x01\x00":                 "login refused: no method of ours is acceptable", // none was offered
		"\x05\x00\x05\x00\x00\x07\x00\x00": "sent an address of the unknown type 7",
	} {
		err := socks5(answers{strings.NewReader(said)}, nil, "host:80")
		require.EqualError(t, err, want)
		require.Equal(t, backoff.ClassSlow, backoff.Classify(err).Class)
	}
}

func TestALoginThatSOCKS5CannotCarryIsAnError(t *testing.T) {
	long := strings.Repeat("p", 256)
	for _, user := range []*url.Userinfo{url.UserPassword("", "ppasswd"), url.UserPassword("puser", long), url.User(long)} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.proxy(t, "socks5", &proxyServer{})
			v.dialer.Proxy = http.ProxyURL(&url.URL{Scheme: "socks5", Host: proxyAddr, User: user})
			require.ErrorContains(t, v.proxied(t, v.fail(t, t.Context(), 0)), "takes a login of 1 to 255 bytes")
		})
	}
}

// answers is the other side of SOCKS5: whatever is written, it has these bytes to read.
type answers struct{ io.Reader }

func (answers) Write(p []byte) (int, error) { return len(p), nil }

func TestSOCKS5ReadsNoByteTooMany(t *testing.T) {
	for _, said := range []string{
		"\x05\x00" + "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50",
		"\x05\x00" + "\x05\x00\x00\x04" + strings.Repeat("6", 16) + "\x00\x50",
		"\x05\x02" + "\x01\x00" + "\x05\x00\x00\x03\x02ab\x00\x50",
	} {
		r := strings.NewReader(said + "behind")
		require.NoError(t, socks5(answers{r}, url.User("puser"), "host:80"))
		require.Equal(t, len("behind"), r.Len())
	}
}

// Whatever a proxy says is an error or a tunnel.
func FuzzSOCKS5(f *testing.F) {
	f.Add([]byte("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x02\x01\x00\x05\x00\x00\x03\x02ab\x00\x50"))
	f.Add([]byte("\x05\x02\x01\x01"))
	f.Add([]byte("\x05\xff"))
	f.Fuzz(func(t *testing.T, said []byte) {
		err := socks5(answers{bytes.NewReader(said)}, url.UserPassword("puser", "ppasswd"), "host:80")
		if err == nil {
			require.GreaterOrEqual(t, len(said), 2+4+1+2) // a bound address without a name
			return
		}
		require.NotContains(t, err.Error(), "ppasswd")
	})
}

// Without a user no login is offered.
func TestSOCKS5RequestsAreExact(t *testing.T) {
	for methods, user := range map[string]*url.Userinfo{
		"\x05\x01\x00":     nil,
		"\x05\x02\x00\x02": url.User("me"), // who need not log in
	} {
		var sent bytes.Buffer
		answers := strings.NewReader("\x05\x00" + "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
		c := struct {
			io.Reader
			io.Writer
		}{answers, &sent}
		require.NoError(t, socks5(c, user, "192.0.2.1:80"))
		require.Equal(t, methods+"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", sent.String())
	}
}
