package debug

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const testToken = "planted+t0ken/="

func TestTokenIsDemanded(t *testing.T) {
	p := newPage(t, &Options{Token: testToken})
	other := newPage(t, &Options{Token: testToken + "x"})
	for name, c := range map[string]struct {
		arrange func(r *http.Request)
		want    int
	}{
		"nothing":              {func(*http.Request) {}, 401},
		"Bearer":               {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }, 200},
		"bearer in lower case": {func(r *http.Request) { r.Header.Set("Authorization", "bearer  "+testToken) }, 200},
		"another scheme":       {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+testToken) }, 401},
		"no scheme":            {func(r *http.Request) { r.Header.Set("Authorization", testToken) }, 401},
		"a part of it":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken[1:]) }, 401},
		"an empty one":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"link":                 {func(r *http.Request) { r.URL.RawQuery = "token=" + url.QueryEscape(testToken) }, 200},
		"wrong link":           {func(r *http.Request) { r.URL.RawQuery = "token=x" }, 401},
		"empty link":           {func(r *http.Request) { r.URL.RawQuery = "token" }, 401},
		"cookie":               {func(r *http.Request) { r.AddCookie(&p.token.cookie) }, 200},
		"second cookie": {func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: p.token.cookie.Name, Value: "x"})
			r.AddCookie(&p.token.cookie)
		}, 200},
		"cookie of another token": {func(r *http.Request) { r.AddCookie(&other.token.cookie) }, 401},
		"that under our name": {func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: p.token.cookie.Name, Value: other.token.cookie.Value})
		}, 401},
		"cookie that is the token": {func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: p.token.cookie.Name, Value: testToken})
		}, 401},
		"remote client": {func(r *http.Request) {
			r.RemoteAddr, r.URL.RawQuery = "10.0.0.1:7", "token="+url.QueryEscape(testToken)
		}, 403},
	} {
		for _, query := range []string{"", "json", "all"} {
			r := request(http.MethodHead, "/")
			r.URL.RawQuery = query
			c.arrange(r)
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, r)
			require.Equal(t, c.want, rec.Code, "%s, %s", name, query)
			require.Equal(t, c.want == 401, rec.Header().Get("Www-Authenticate") != "", name)
			require.NotContains(t, rec.Body.String(), testToken[:8])
		}
	}
	body := get(newPage(t, nil), "/?token=x").Body.String()
	require.NotContains(t, body, "cookie", "without a token it is a query like any other")
}

func TestNoSecretOfThePageIsShown(t *testing.T) {
	p := newPage(t, &Options{Token: testToken})
	require.Empty(t, p.o.Token)
	for _, target := range []string{"/", "/?json", "/?token=" + testToken, "/?token=x"} {
		r := request(http.MethodGet, target)
		r.Header.Set("Authorization", "Bearer "+testToken)
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		for _, values := range rec.Header() {
			require.NotContains(t, strings.Join(values, " "), testToken[:8])
		}
		require.NotContains(t, rec.Body.String(), testToken[:8])
	}
	at, err := p.Listen(":0")
	require.NoError(t, err)
	require.NotContains(t, at, "token")
}

// What a browser does: it opens the link, gets the cookie, and loads the page, which its script then asks for
// JSON.
func TestLinkGivesABrowserTheCookie(t *testing.T) {
	p := newPage(t, &Options{Token: testToken})
	at, err := p.Listen(":0")
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	c := &http.Client{Jar: jar}
	load := func(query string) (resp *http.Response, body string) {
		resp, err := c.Get(at + "path/" + query)
		require.NoError(t, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp, string(all)
	}
	resp, _ := load("?show=away")
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	resp, body := load("?show=%22%3E&conn=7&token=" + url.QueryEscape(testToken))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, `content="0; url=?conn=7&amp;show=%22%3E"`)
	require.Equal(t, "no-referrer", resp.Header.Get("Referrer-Policy"))
	require.Len(t, resp.Cookies(), 1)
	cookie := resp.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.False(t, cookie.Secure, "it is not HTTPS")
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/", cookie.Path)
	_, body = load("?show=%22%3E")
	require.Contains(t, body, "<main ")
	resp, _ = load("?json")
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	// The program starts again, with the same token.
	require.NoError(t, p.Close())
	p = newPage(t, &Options{Token: testToken})
	r := request(http.MethodGet, "/")
	r.AddCookie(cookie)
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	require.Equal(t, http.StatusOK, rec.Code)
	// With TLS the cookie is for TLS.
	r = request(http.MethodGet, "/?token="+url.QueryEscape(testToken))
	r.TLS = &tls.ConnectionState{}
	rec = httptest.NewRecorder()
	p.ServeHTTP(rec, r)
	require.True(t, rec.Result().Cookies()[0].Secure)
}

// Each client of a TCP forwarder looks like one on this machine if it sends Host: localhost.
func TestTokenProtectsThePageBehindAForwarder(t *testing.T) {
	p := newPage(t, &Options{Token: testToken})
	at, err := p.Listen(":0")
	require.NoError(t, err)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			near, err := front.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.Trim(at, "htp:/"))
			if err != nil {
				near.Close()
				continue
			}
			forwarding.Go(func() { io.Copy(far, near); far.Close() })
			forwarding.Go(func() { io.Copy(near, far); near.Close() })
		}
	})
	defer forwarding.Wait()
	defer front.Close()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for bearer, want := range map[string]int{"": 401, testToken: 200} {
		r, err := http.NewRequest(http.MethodGet, "http://"+front.Addr().String()+"/?json", nil)
		require.NoError(t, err)
		r.Host = "localhost"
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := c.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode)
	}
}
