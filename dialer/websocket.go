package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// WebSocket opens WebSocket connections. Its fields must not change after the first call of a
// method; from then on a WebSocket is safe for concurrent use, and must not be copied.
type WebSocket struct {
	// URL is the endpoint: ws or wss, without a fragment. A host name outside ASCII is converted as
	// in net/http (IDNA).
	URL string

	// URLs, instead of URL, are endpoints that serve the same: see Dial.
	URLs []string

	// Header is sent with each handshake. Its Host, if any, replaces that of the URL. A header that
	// the handshake sets itself is an error.
	Header http.Header

	// Prepare may change the URL and the header before each endpoint is dialed and a socket is
	// opened, for example to make new credentials. ctx is done when the attempt ends or
	// HandshakeTimeout is over. With Prepare a rejection by 401 or 403 is a [backoff.ClassRefresh],
	// and in the next attempt [backoff.AttemptFrom] of ctx has Refresh set, and Err, which wraps the
	// [*Error] with the Header of the rejection, such as its WWW-Authenticate. An error of Prepare
	// ends the attempt, and is printed without the URL in a [url.Error] and the secrets in the
	// Request. If a supervisor has a Gate and the URL is at another host, Prepare is called again
	// when the gate has admitted that host. It is called concurrently if Dial is. Default: none.
	Prepare func(ctx context.Context, r *Request) error

	// FollowHint reports whether an address that a server has advised, [backoff.Attempt].URL, may
	// be dialed although no URL has its host, such as the resume_gateway_url of Discord. An address
	// with the scheme, host and port of a URL is dialed without asking. It replaces the whole URL,
	// with path and query, for one Dial, which tries no other endpoint.
	//
	// A foreign host gets neither Header nor a client certificate. Prepare is called with an empty
	// header and the advised URL, and must not add a credential that is meant for another host.
	// Subprotocols are offered. Default: no foreign host is followed.
	FollowHint func(to *url.URL) bool

	// Subprotocols are offered to the server, the best first. It may choose none: see
	// [conn.WebSocket.Subprotocol].
	Subprotocols []string

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, or TLS 1.3 with an
	// EncryptedClientHelloConfigList, which is not used for a proxy. An empty ServerName means the
	// host of the endpoint. NextProtos is not used. A nil ClientSessionCache means a cache of this
	// WebSocket, except with SessionTicketsDisabled, and with Certificates, GetClientCertificate or
	// VerifyPeerCertificate, because a resumed session keeps the old client certificate and skips
	// that check. Default: the zero Config.
	TLS *tls.Config

	// Compression is the mode of permessage-deflate (RFC 7692), if the server agrees.
	// websocket.CompressionContextTakeover compresses better, but each connection then holds about
	// 1.2 MB from the first message of 128 bytes or more that it sends, and up to 32 KiB of
	// received messages. A server that responds with a parameter that was not offered (RFC 7692,
	// section 7.1), such as client_max_window_bits, is rejected, and needs CompressionDisabled, the
	// default.
	Compression websocket.CompressionMode

	// Proxy chooses the proxy for each attempt, as in [http.Transport]: an http, https, socks5 or
	// socks5h URL, or nil for none. Its argument is the handshake, with the scheme http for ws and
	// https for wss. Every proxy makes a tunnel, an HTTP proxy by CONNECT, for ws too. An https
	// proxy must have a certificate for its own name. Default: [http.ProxyFromEnvironment]. For no
	// proxy: http.ProxyURL(nil).
	Proxy func(*http.Request) (*url.URL, error)

	// ProxyHeader is sent to an HTTP proxy with CONNECT. The user and password of the proxy's URL,
	// if any, replace its Proxy-Authorization. Default: none.
	ProxyHeader http.Header

	// DialContext makes the connection to the endpoint or the proxy, with "tcp" for network. It
	// must return when ctx is done; ctx has no deadline. Default: a socket made by TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// TCP has the options of the socket. Not used with a DialContext.
	TCP TCPOptions

	// ConnectTimeout limits each connection attempt, per endpoint: name lookup, which fails after
	// three quarters of it as a [net.DNSError], TCP, and the tunnel of a proxy. Default: the
	// Connect of the [backoff.Attempt] in the dial's context, or 16 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout limits TLS and the upgrade in each attempt, per endpoint, from the end of
	// connecting. Default: 30 s, or none under a supervisor, which keeps a hanging handshake and
	// dials concurrently.
	HandshakeTimeout time.Duration

	// Conn has the options of the opened connections.
	Conn conn.WebSocketOptions

	// Split splits frames that hold several messages. Default: a frame is a message.
	Split conn.Split

	// Rand draws the order of endpoints and addresses. It is used under a lock. Default:
	// math/rand/v2.
	Rand rand.Source

	once      sync.Once
	endpoints *endpoints // made by setup
	secrets   *secrets   // of all dials; likewise
}

// Request is one handshake, about to be made.
type Request struct {
	URL    string      // where to dial
	Header http.Header // never nil; a copy that belongs to this handshake
}

// Dial returns a new [conn.WebSocket], or with Split a Conn whose method Unwrap returns it. When
// ctx is done, at any stage, Dial returns the cause of ctx. A failure is an [*Error].
//
// With several endpoints a Dial is a round: it tries each at most once, in a shuffled order, until
// one answers:
//
//   - The limits hold for each endpoint, and ctx for the round. If ctx ends a round, the next Dial
//     continues with the next endpoint.
//   - An endpoint that asked us to stay away is left out until then, unless all endpoints did.
//   - An endpoint that did not connect in time, or did not answer the handshake, is tried last for
//     10 minutes. A rejection, such as 503, is an answer.
//   - Connecting to an endpoint that has not answered yet, or not since it was too slow, may take at
//     most 2 s while there is another endpoint that is not tried last for that reason.
//   - If all endpoints fail, the most hopeful error decides what the [*Error] means, by its class
//     of [backoff.Classify]: Overload first, then Retry, Refresh, Slow, and Stop only if every
//     endpoint says so.
//   - RetryAfter is the shortest if all endpoints asked for one, and otherwise 0.
//   - An endpoint that wants new credentials gets them in the next Dial.
func (d *WebSocket) Dial(ctx context.Context) (conn.Conn, error) {
	c, err := d.dialFrames(ctx, d.setup())
	if err != nil || d.Split.Func == nil {
		return c, err
	}
	return conn.NewSplit(c, d.Split) // has no error, because setup has checked Split
}

// dialFrames is Dial without Split.
func (d *WebSocket) dialFrames(ctx context.Context, e *endpoints) (conn.Conn, error) {
	if e.err != nil {
		return nil, e.err
	}
	if to, endpoint := d.advised(ctx, e); to != nil {
		return d.dialAdvised(ctx, e, to, endpoint)
	}
	return e.dial(ctx, d.dial)
}

// Validate returns an error naming any invalid option. The error holds no part of a URL.
func (d *WebSocket) Validate() error { return d.setup().err }

// Host returns the host and port of the endpoint, or of all endpoints, sorted and joined by commas,
// or "" if an option is invalid.
func (d *WebSocket) Host() string { return d.setup().hosts() }

// Endpoint returns the scheme, host and path of the URL, or of all URLs, in their order and joined
// by ", ", or "" if an option is invalid.
func (d *WebSocket) Endpoint() string { return d.setup().text() }

// DialTimeout returns how long one Dial may take in the attempt t: the sum of the limits on
// connecting and on the handshake. A reconnect.Conn ends a Dial after that time.
func (d *WebSocket) DialTimeout(t backoff.Attempt) time.Duration {
	return d.setup().dialTimeout(t)
}

// dial makes one attempt at one endpoint. A [prepareError] in its error ends the round.
func (d *WebSocket) dial(ctx context.Context, u *url.URL, refresh bool) (conn.Conn, *Error) {
	return d.dialWith(ctx, u, refresh, false)
}

// dialWith makes one attempt at u, which is at a foreign host or at the host of an endpoint.
func (d *WebSocket) dialWith(ctx context.Context, u *url.URL, refresh, foreign bool) (conn.Conn, *Error) {
	header := d.Header.Clone()
	if foreign || header == nil {
		header = http.Header{}
	}
	r := d.newRequest(u, header)
	if err := d.prepare(ctx, r, refresh); err != nil {
		return nil, &Error{Endpoint: r.endpoint(), Err: err}
	}
	if err := d.announce(ctx, r); err != nil {
		return nil, &Error{Endpoint: r.endpoint(), Err: err, unasked: true}
	}
	c, failure := d.attempt(ctx, r, foreign)
	if failure != nil && d.Prepare != nil {
		failure.refused = failure.StatusCode == http.StatusUnauthorized || failure.StatusCode == http.StatusForbidden
	}
	return c, failure
}

// connOptions returns the options of the connection that r opens.
func (d *WebSocket) connOptions(r *request) *conn.WebSocketOptions {
	if r.secrets == nil {
		return &d.Conn
	}
	o := d.Conn
	o.Redact = r.secrets.redact
	return &o
}

// setup checks the options and makes what all dials share. It does so once.
func (d *WebSocket) setup() *endpoints {
	d.once.Do(func() {
		urls, err := parseEndpoints("URL", d.URL, "URLs", d.URLs, parseURL)
		config := d.TLS.Clone()
		if config != nil {
			config.NextProtos = nil // because the upgrade is HTTP/1.1
		}
		s := newSecrets(nil, d.Conn.Redact)
		for _, u := range urls {
			s.addURL(u)
		}
		s.addHeader(d.Header)
		s.addHeader(d.ProxyHeader)
		s.add(d.Subprotocols...)
		d.secrets = s.orBase()
		d.endpoints = newEndpoints("WebSocket", urls, settings{
			tls: config, dialContext: d.DialContext, tcp: &d.TCP, conn: &d.Conn, source: d.Rand,
			connectTimeout: d.ConnectTimeout, handshakeTimeout: d.HandshakeTimeout,
		}, cmp.Or(err, d.validate()))
	})
	return d.endpoints
}

// validate checks the options that only a WebSocket has, but not the URLs.
func (d *WebSocket) validate() error {
	if err := validateHeader(d.Header, d.secrets); err != nil {
		return fmt.Errorf("Header: %w", err)
	}
	if err := validateHeader(d.ProxyHeader, d.secrets); err != nil {
		return fmt.Errorf("ProxyHeader: %w", err)
	}
	if d.ProxyHeader["Host"] != nil {
		return errors.New("ProxyHeader: Host is set by CONNECT")
	}
	for i, s := range d.Subprotocols {
		if err := checkToken(s); err != nil { // which does not print it, because it may be a credential
			return fmt.Errorf("Subprotocols[%d]: it %w", i, err)
		}
		if first := slices.Index(d.Subprotocols, s); first < i {
			return fmt.Errorf("Subprotocols[%d]: it is the same as Subprotocols[%d]", i, first)
		}
	}
	if err := d.Split.Validate(); err != nil {
		return fmt.Errorf("Split: %w", err)
	}
	switch d.Compression {
	case websocket.CompressionDisabled, websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover:
		return nil
	}
	return fmt.Errorf("Compression: %d is no mode", d.Compression)
}
