package dialer

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// NoProxy is a [WebSocket.Proxy] that chooses none, whatever the environment says.
func NoProxy(*http.Request) (*url.URL, error) { return nil, nil }

// ProxyError reports that there is no way through a proxy: it could not be reached, it
// refused, or its answer made no sense. The server has not answered, so a ProxyError never
// asks for new credentials (ClassRefresh) and never ends a connection for good
// (ClassStop). The [*Error] around it has the StatusCode 0, and the RetryAfter that the
// proxy asked for.
type ProxyError struct {
	Proxy      string // scheme://host:port, without user and password
	StatusCode int    // of the answer to CONNECT; 0: none, or a SOCKS5 proxy
	Err        error  // what was wrong
}

func (e *ProxyError) Error() string {
	text := "proxy"
	if e.Proxy != "" {
		text += " " + e.Proxy
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": " + statusText(e.StatusCode)
}

// Unwrap returns e.Err.
func (e *ProxyError) Unwrap() error { return e.Err }

// Verdict returns the verdict for [backoff.Classify]. It is, by the status: Slow for 401,
// 403 and 407, because a person must mend it; Overload for 429, 503 and 504; Retry for
// all others. Without a status it is Slow for a SOCKS5 proxy that refuses our login or
// our request, and otherwise the class of Err, with Slow in place of Stop and Refresh.
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

// connect returns a connection to the endpoint of r: direct, or through a proxy.
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
	nc, err := e.connectTo(ctx, w, hostPort(proxy))
	if err == nil {
		nc, err = d.tunnel(ctx, nc, proxy, address)
	}
	if err == nil {
		return nc, nil
	}
	name := printable(proxy.Scheme + "://" + hostPort(proxy))
	switch e := err.(type) {
	case *cause:
		return nil, e // of one of the user's hooks
	case *answerError:
		return nil, &ProxyError{Proxy: name, StatusCode: e.code, Err: e}
	}
	return nil, &ProxyError{Proxy: name, Err: explain(proxy, err)}
}

// chooseProxy asks for the proxy of r. An error from there is not printed, because that
// of [http.ProxyFromEnvironment] holds the proxy's password.
func (d *WebSocket) chooseProxy(ctx context.Context, r *request) (*url.URL, error) {
	u := *r.url
	u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	q := &http.Request{URL: &u}
	choose := d.Proxy
	switch {
	case choose == nil && d.Transport == nil:
		choose = http.ProxyFromEnvironment // which looks at the URL alone
	case choose == nil && d.Transport.Proxy == nil:
		return nil, nil
	default:
		if choose == nil {
			choose = d.Transport.Proxy
		}
		q.Method, q.Host, q.Header, q.Proto, q.ProtoMajor, q.ProtoMinor = http.MethodGet, r.host, r.header.Clone(), "HTTP/1.1", 1, 1
		q = q.WithContext(ctx)
	}
	proxy, err := choose(q)
	if err != nil {
		return nil, &cause{"no proxy could be chosen (the reason may hold a password and is not printed)", err}
	}
	return proxy, nil
}

// checkProxy returns the URL of a proxy with its host in ASCII. Its errors hold no part
// of it, because what looks like the scheme may be the user.
func checkProxy(given *url.URL) (*url.URL, error) {
	u, err := *given, error(nil)
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, newSlowError("its URL must begin with http, https, socks5 or socks5h")
	}
	if u.Host, err = checkHost(u.Host, u.Hostname(), u.Port()); err == nil && u.Port() != "" && !validPort(u.Port()) {
		err = errBadPort
	}
	if err != nil {
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
		if nc, err = handshakeTLS(ctx, nc, d.endpoints.tlsConfigs().forProxy(proxy.Hostname())); err != nil {
			return nil, err
		}
	}
	return nc, d.connectMethod(ctx, nc, proxy, address)
}

// connectMethod asks an HTTP proxy for a tunnel (RFC 9110, section 9.3.6).
func (d *WebSocket) connectMethod(ctx context.Context, nc net.Conn, proxy *url.URL, address string) error {
	hooks := d.Transport
	if hooks == nil {
		hooks = &http.Transport{}
	}
	header := hooks.ProxyConnectHeader.Clone()
	if hooks.GetProxyConnectHeader != nil {
		given, err := hooks.GetProxyConnectHeader(ctx, proxy, address)
		if err != nil {
			return &cause{withoutURLs(err), err}
		}
		header = given.Clone()
	}
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
	resp, behind, err := readAnswer(bufio.NewReader(nil), nc, r, d.maxHeaderBytes()) // the hook may read the body
	if err != nil {
		return err
	}
	if hooks.OnProxyConnectResponse != nil {
		if err := hooks.OnProxyConnectResponse(ctx, proxy, r, resp); err != nil {
			return &cause{withoutURLs(err), err}
		}
	}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return newAnswerError(resp, "")
	case len(behind) > 0: // neither TLS nor HTTP lets the server speak first
		return newSlowError(fmt.Sprintf("sent %d bytes behind its answer to CONNECT", len(behind)))
	}
	return nil
}
