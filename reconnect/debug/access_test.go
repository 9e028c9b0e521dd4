package debug

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newPage(t *testing.T, o *Options) *Page {
	p := New(o)
	t.Cleanup(func() { p.Close() })
	return p
}

func TestOnlyThisMachineMaySeeThePage(t *testing.T) {
	p := newPage(t, nil)
	for _, c := range []struct {
		client, host string
		header       string
		want         int
	}{
		{"127.0.0.1:7", "localhost:6060", "", 200},
		{"127.9.9.9:7", "127.0.0.1", "", 200},
		{"[::1]:7", "[::1]:6060", "", 200},
		{"[::1]:7", "[::1]", "", 200},
		{"[::ffff:127.0.0.1]:7", "LOCALHOST.:1", "", 200},
		{"127.0.0.1:7", "app.localhost", "", 200},
		{"10.0.0.1:7", "localhost", "", 403},
		{"[2001:db8::1]:7", "localhost", "", 403},
		{"@", "localhost", "", 403},
		{"", "localhost", "", 403},
		{"127.0.0.1:7", "evil.example", "", 403},
		{"127.0.0.1:7", "localhost.evil.example", "", 403},
		{"127.0.0.1:7", "10.0.0.1:6060", "", 403},
		{"127.0.0.1:7", "", "", 403},
		{"10.0.0.1:7", "localhost", "X-Forwarded-For", 403},
		{"127.0.0.1:7", "localhost", "X-Forwarded-For", 403},
		{"127.0.0.1:7", "localhost", "Forwarded", 403},
		{"127.0.0.1:7", "localhost", "Via", 403},
		{"127.0.0.1:7", "localhost", "CF-Connecting-IP", 403},
		{"127.0.0.1:7", "localhost", "X-Real-IP", 403},
		{"127.0.0.1:7", "localhost", "X-Forwarded-Proto", 403},
		{"127.0.0.1:7", "localhost", "X-Forwarded-Anything", 403},
		{"127.0.0.1:7", "localhost", "X-Forward", 200},
	} {
		r := request(http.MethodGet, "/")
		r.RemoteAddr, r.Host = c.client, c.host
		if c.header != "" {
			r.Header.Set(c.header, "127.0.0.1")
		}
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		require.Equal(t, c.want, rec.Code, "%+v", c)
		if c.want != 200 {
			require.NotContains(t, rec.Body.String(), "html", "%+v", c)
		}
	}
}

// nginx 1.22 speaks HTTP/1.0 to the page unless proxy_http_version is set, and adds no header.
func TestAProxyOfHTTP10IsRefused(t *testing.T) {
	p := newPage(t, nil)
	address, err := p.Listen(":0")
	require.NoError(t, err)
	host := strings.Trim(strings.TrimPrefix(address, "http:"), "/")
	for protocol, want := range map[string]string{"HTTP/1.0": "403", "HTTP/1.1": "200"} {
		c, err := net.Dial("tcp", host)
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET / "+protocol+"\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Equal(t, want, strings.Fields(string(answer))[1], protocol)
	}
}

// A page of another site that this machine's browser shows has its own Origin, also if it is of this machine.
func TestAForeignOriginIsRefused(t *testing.T) {
	p := newPage(t, nil)
	for origin, want := range map[string]int{
		"": 200, "http://localhost:6060": 200, "http://LOCALHOST:6060": 200, "http://localhost:3000": 403, "http://localhost": 403,
		"https://evil.example": 403, "null": 403, "%": 403,
	} {
		r := request(http.MethodGet, "/?json")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		require.Equal(t, want, rec.Code, origin)
	}
}

func TestAllowDecidesAlone(t *testing.T) {
	p := newPage(t, &Options{Allow: func(r *http.Request) bool { return r.Header.Get("Authorization") == "ok" }})
	r := request(http.MethodGet, "/")
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	require.Equal(t, http.StatusForbidden, rec.Code)
	r.RemoteAddr, r.Host = "10.0.0.1:7", "ops.example"
	r.Header.Set("Authorization", "ok")
	rec = httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	require.Equal(t, http.StatusOK, rec.Code)
}

func TestThePageCanOnlyBeRead(t *testing.T) {
	p := newPage(t, nil)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X"} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, request(method, "/"))
		require.Equal(t, http.StatusMethodNotAllowed, rec.Code, method)
		require.Equal(t, "GET, HEAD", rec.Header().Get("Allow"))
	}
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, request(http.MethodHead, "/"))
	require.Equal(t, http.StatusOK, rec.Code)
}

func TestAnotherSiteMayLinkHereAndReadNothing(t *testing.T) {
	p := newPage(t, nil)
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		r := request(http.MethodGet, "/?json")
		r.Header.Set("Sec-Fetch-Site", site)
		r.Header.Set("Sec-Fetch-Mode", "cors")
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		require.Equal(t, want, rec.Code, site)
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		rec = httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		require.Equal(t, 200, rec.Code, site)
	}
}

func TestEachAnswerHasTheHeadersOfAStrictPage(t *testing.T) {
	p := newPage(t, nil)
	for _, target := range []string{"/", "/?json", "/?conn=7", "/?conn=7&json", "/any/path"} {
		h := get(p, target).Header()
		require.Equal(t, "no-store", h.Get("Cache-Control"), target)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), target)
		require.True(t, strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; "), target)
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'", target)
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", target)
		require.NotEmpty(t, h.Get("Content-Type"), target)
	}
	require.Equal(t, http.StatusNotFound, get(p, "/?conn=7").Code)
	require.Equal(t, http.StatusNotFound, get(p, "/?conn=7&json").Code)
}

func TestNothingComesFromElsewhere(t *testing.T) {
	body := strings.ReplaceAll(get(newPage(t, nil), "/").Body.String(), "http://www.w3.org/2000/svg", "") // a name
	require.NotContains(t, body, "http://")
	require.NotContains(t, body, "https://")
	require.NotContains(t, body, " src=")
}

func FuzzLoopbackHost(f *testing.F) {
	for _, s := range []string{"localhost", "[::1]:1", "127.0.0.1:x", "[", "::1", "a.localhost.", "0::1", "::0.0.0.1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if loopbackHost(host) {
			require.Regexp(t, `(?i)^\[?([0:]*:(0*1|0\.0\.0\.1)|.*:ffff:.*|127\.\d+\.\d+\.\d+|.*\.localhost\.?|localhost\.?)(%.*)?\]?(:.*)?$`, host)
		}
	})
}
