package dialer

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// refusal is an answer to the handshake other than 101.
type refusal struct {
	code int
	wait time.Duration // Retry-After
	text string
}

func (r *refusal) Error() string { return r.text }

// upgrade is the step between coder/websocket and net/http. It keeps what a
// refusal says and takes away from it what they would act on: the body, which
// coder would read for up to 3 s, and the Location. So no redirect is ever
// followed, nor the text of one printed.
type upgrade struct {
	next    http.RoundTripper
	refused *refusal
}

func (u *upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	u.refused = newRefusal(r, resp)
	_ = resp.Body.Close()
	resp.Header.Del("Location")
	return resp, nil
}

func newRefusal(r *http.Request, resp *http.Response) *refusal {
	f := &refusal{code: resp.StatusCode, wait: retryAfter(resp.Header), text: statusText(resp.StatusCode)}
	switch {
	case f.code >= 200 && f.code < 300:
		f.text = "not a WebSocket endpoint: " + f.text
	case f.code >= 300 && f.code < 400:
		f.text += ": " + redirected(r.URL, resp.Header.Get("Location"))
	case f.code == http.StatusBadRequest && r.URL.Scheme == "http" && wantsTLS(resp.Body):
		f.text += ": is this a wss server?"
	}
	return f
}

// redirected says where a redirect would have gone, by the name of the host and
// nothing else.
func redirected(from *url.URL, location string) string {
	to, err := url.Parse(location)
	if err != nil || location == "" {
		return "redirected (refused)"
	}
	if to.Host == "" {
		to.Host = from.Host
	}
	text := fmt.Sprintf("redirected to %s (refused)", strconv.Quote(printable(to.Host)))
	secure := to.Scheme == "https" || to.Scheme == "wss"
	if secure && from.Scheme == "http" && strings.EqualFold(to.Hostname(), from.Hostname()) {
		text += ": is this a wss server?"
	}
	return text
}

// wantsTLS reports whether a 400 is what nginx or Go say to who comes to an HTTPS
// port without TLS. One read is enough: it is a short text, sent at once.
func wantsTLS(body io.Reader) bool {
	text := make([]byte, 512)
	n, _ := body.Read(text)
	return strings.Contains(string(text[:n]), "HTTPS")
}

// retryAfter is how long a server asks us to stay away, by its own clock if it
// says what that is.
func retryAfter(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	wait, _ := backoff.ParseRetryAfter(h.Get("Retry-After"), now)
	return wait
}

// newProxyError is for a proxy that does not answer CONNECT with 200. That is
// not the server speaking: a proxy cannot say that the endpoint is gone for good.
func newProxyError(resp *http.Response) *refusal {
	f := &refusal{code: resp.StatusCode, wait: retryAfter(resp.Header), text: "proxy refused: " + statusText(resp.StatusCode)}
	if f.code == http.StatusGone || f.code == http.StatusUpgradeRequired {
		f.code = http.StatusBadGateway
	}
	return f
}
