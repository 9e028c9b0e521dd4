package dialer

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// ProxyError reports that a proxy could not be reached, rejected the request, or sent an invalid
// response. The [*Error] around it has the StatusCode 0, and the RetryAfter that the proxy asked
// for.
type ProxyError struct {
	StatusCode int   // of the response to CONNECT; 0 without one, and for a SOCKS5 proxy
	Err        error // what was wrong

	proxy string // scheme://host:port, without user and password
}

func (e *ProxyError) Error() string {
	cause := statusText(e.StatusCode)
	if e.Err != nil {
		cause = e.Err.Error()
	}
	return strings.TrimSpace("proxy "+e.proxy) + ": " + cause
}

// Unwrap returns e.Err.
func (e *ProxyError) Unwrap() error { return e.Err }

// Verdict returns the verdict for [backoff.Classify], which never asks for new credentials
// (ClassRefresh) and never ends a connection for good (ClassStop). Its class depends on the status:
//
//   - 401, 403, 407: Slow
//   - 429, 503, 504: Overload
//   - any other: Retry
//   - 0: Slow for a SOCKS5 proxy that rejects our login or our request; otherwise the class of Err,
//     with Slow instead of Stop and Refresh.
func (e *ProxyError) Verdict() backoff.Verdict {
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return backoff.Verdict{Class: backoff.ClassSlow}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return backoff.Verdict{Class: backoff.ClassOverload}
	case 0:
		v := backoff.Classify(e.Err)
		if v.Class == backoff.ClassStop || v.Class == backoff.ClassRefresh {
			v.Class = backoff.ClassSlow
		}
		return v
	}
	return backoff.Verdict{Class: backoff.ClassRetry}
}

// connect returns a connection to the endpoint of r: direct, or through a proxy, whose login is then one of
// the secrets of r.
func (d *WebSocket) connect(ctx context.Context, w *conn.Wire, r *request) (net.Conn, error) {
	e, address := d.endpoints, hostPort(r.url)
	proxy, err := d.chooseProxy(ctx, r)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return e.connectTo(ctx, w, address)
	}
	if proxy, err = checkProxy(proxy); err != nil {
		return nil, &ProxyError{Err: err}
	}
	s := newSecrets(r.secrets, d.Conn.Redact)
	s.addURL(proxy)
	r.secrets = s.orBase()
	nc, err := e.connectTo(ctx, w, hostPort(proxy))
	if err == nil {
		nc, err = d.tunnel(ctx, nc, proxy, address)
	}
	if err == nil {
		return nc, nil
	}
	name := redacted(&url.URL{Scheme: proxy.Scheme, Host: hostPort(proxy)})
	if e, ok := err.(*answerError); ok {
		return nil, &ProxyError{StatusCode: e.code, Err: e, proxy: name}
	}
	return nil, &ProxyError{Err: explain(proxy, r.secrets, err), proxy: name}
}

// chooseProxy asks for the proxy of r. An error from there is not printed, because that
// of [http.ProxyFromEnvironment] holds the proxy's password.
func (d *WebSocket) chooseProxy(ctx context.Context, r *request) (*url.URL, error) {
	u := *r.url
	u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	q := (&http.Request{
		Method: http.MethodGet, URL: &u, Host: r.header.Get("Host"), Header: r.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	choose := d.Proxy
	if choose == nil {
		choose = http.ProxyFromEnvironment
	}
	proxy, err := choose(q)
	if err != nil {
		return nil, &cause{"no proxy could be chosen: look at WebSocket.Proxy, HTTP_PROXY and HTTPS_PROXY (the reason may hold a password and is not printed)", err}
	}
	return proxy, nil
}

// checkProxy returns the URL of a proxy with its host in ASCII. Its errors hold no part
// of it, because what looks like the scheme may be the user.
func checkProxy(given *url.URL) (*url.URL, error) {
	u := *given
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, newSlowError("its URL must begin with http, https, socks5 or socks5h")
	}
	if err := checkHost(&u); err != nil {
		return nil, newSlowError("its URL is wrong: " + err.Error())
	}
	return &u, nil
}

// tunnel makes the proxy at the other end of nc connect us to address.
func (d *WebSocket) tunnel(ctx context.Context, nc net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	switch proxy.Scheme {
	case "socks5", "socks5h": // both leave the name lookup to the proxy, as in net/http
		return nc, socks5(nc, proxy.User, address)
	case "https":
		var err error
		if nc, err = handshakeTLS(ctx, nc, d.endpoints.configs().forProxy(proxy.Hostname())); err != nil {
			return nil, err
		}
	}
	return nc, connectMethod(nc, proxy, address, d.ProxyHeader.Clone())
}

// connectMethod asks an HTTP proxy for a tunnel (RFC 9110, section 9.3.6). header, which may be nil, belongs to the
// request.
func connectMethod(nc net.Conn, proxy *url.URL, address string, header http.Header) error {
	if header == nil {
		header = http.Header{}
	}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		login := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		header.Set("Proxy-Authorization", "Basic "+login)
	}
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: header}
	if err := writeRequest(nc, r); err != nil {
		return err
	}
	resp, behind, err := readAnswer(nc, r)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return newAnswerError(resp, "")
	case len(behind) > 0: // neither TLS nor HTTP lets the server speak first
		return newSlowError(fmt.Sprintf("sent %d bytes behind its answer to CONNECT", len(behind)))
	}
	return nil
}
