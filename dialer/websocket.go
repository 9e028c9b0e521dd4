package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
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
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// WebSocket opens WebSocket connections. Its fields must not change after the
// first call of a method; from then on it is safe for concurrent use, and must
// not be copied.
type WebSocket struct {
	// URL is the endpoint: ws or wss, without a fragment. A host name outside of
	// ASCII is converted as net/http converts it (IDNA), here and in URLs.
	URL string

	// URLs, instead of URL, are endpoints that serve the same: see Dial.
	URLs []string

	// Header is sent with each handshake. Its Host, if it has one, replaces the
	// URL's. A header that the handshake sets itself is an error. Default: none.
	Header http.Header

	// Prepare may change the URL and the header before each endpoint is dialed,
	// for example to make new credentials. No socket is open at that time. ctx ends with the
	// attempt, and when HandshakeTimeout is over; [schedule.AttemptFrom] of it has Refresh
	// set if the server refused the last credentials, with 401 or 403. That is
	// [backoff.ClassRefresh]: a supervisor dials again within a second. An error ends
	// the attempt. It is printed, except for the URL in a [url.Error]. Prepare is
	// called by several goroutines at once if Dial is. Default: none.
	Prepare func(ctx context.Context, r *Request) error

	// FollowHint reports whether an address that a server has advised may be dialed although it
	// is at no host of URL or URLs: [schedule.Attempt].URL, which comes from a
	// reconnect.Advice. One with the scheme, host and port of such a URL is dialed without
	// asking. It takes the place of the whole URL, path and query too, for one Dial, which asks
	// nothing else. An address that is not followed is reported by Trace.AddressIgnored.
	//
	// A foreign host gets nothing that proves who you are: neither Header nor a client
	// certificate. Prepare is called with an empty header, and sees the URL: it must not add a
	// credential for another host there. Subprotocols are offered. Default: no foreign host
	// is followed, because a server, or an attacker in its place, could send clients anywhere.
	FollowHint func(to *url.URL) bool

	// Subprotocols are offered to the server, the best first. It may choose none:
	// see [conn.WebSocket.Subprotocol]. Default: none.
	Subprotocols []string

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, an empty ServerName the
	// host of the endpoint. A nil ClientSessionCache means a cache that belongs to
	// this WebSocket, so that a redial resumes the session and the server need not
	// sign anew. (That costs much with an RSA key, and little with an elliptic
	// curve.) There is no such cache with Certificates,
	// GetClientCertificate or VerifyPeerCertificate, because a resumed session keeps
	// the old client certificate and skips that check; SessionTicketsDisabled turns
	// it off too. NextProtos is not used.
	// Default: the TLSClientConfig of Transport, or the zero Config.
	TLS *tls.Config

	// Compression is permessage-deflate. Default: off.
	Compression Compression

	// Proxy chooses the proxy for each attempt, as in [http.Transport]: a URL of
	// http, https, socks5 or socks5h, or nil for none. The request that it gets has
	// the scheme http for ws and https for wss. Every proxy makes a tunnel; an HTTP proxy
	// does so by CONNECT, for ws too. An https proxy must have a certificate for its own
	// name. A failure of a proxy is a [ProxyError].
	// Default: the Proxy of Transport if there is a Transport, else
	// [http.ProxyFromEnvironment]. For no proxy, whatever the environment says: [NoProxy].
	Proxy func(*http.Request) (*url.URL, error)

	// Transport has the defaults of TLS, Proxy and DialContext. For an
	// HTTP proxy its ProxyConnectHeader, GetProxyConnectHeader and
	// OnProxyConnectResponse count too; nothing else of it is used, and it is not
	// changed. Its Dial, DialTLS and DialTLSContext are errors. Default: none.
	Transport *http.Transport

	// DialContext makes the connection to the endpoint or to the proxy, with "tcp"
	// for network. It must return when ctx ends; ctx has no deadline.
	// Default: the DialContext of Transport, or a socket made by TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// TCP has the options of the socket. It is not used with a DialContext.
	TCP TCPOptions

	// ConnectTimeout is the limit on connecting: name lookup, TCP, and what a proxy
	// takes. It holds for each endpoint and each try. Default: the Connect of the
	// [schedule.Attempt] in the dial's context, or 16 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout is the limit on TLS and the upgrade, counted from the end of
	// connecting. It holds for each endpoint and each try. Default: none under a
	// supervisor, which knows when a handshake hangs, keeps it and dials beside it (see
	// package schedule); otherwise 30 s.
	HandshakeTimeout time.Duration

	// MaxHeaderBytes is the limit on the header of an answer, the server's or a
	// proxy's. Default 64 KiB.
	MaxHeaderBytes int64

	// Conn has the limits of the connections that are opened, and whether texts must
	// be UTF-8.
	Conn conn.WebSocketOptions

	// Rand draws the order of endpoints and addresses. It is used under a lock.
	// Default: the functions of math/rand/v2.
	Rand rand.Source

	once      sync.Once
	endpoints *endpoints // made by setup
	err       error      // the option that is wrong
}

// Request is one handshake, about to be made.
type Request struct {
	URL    string      // where to dial
	Header http.Header // never nil; a copy that belongs to this handshake
}

// Compression is how messages are compressed (RFC 7692), if the server agrees.
type Compression uint8

// The modes of compression. Context takeover compresses better, but each connection
// then holds memory for as long as it lives: about 1.2 MB from the first message of 128
// bytes or more that it sends, and up to 32 KiB of what it has received. A compressed
// message travels in one frame, so that no ping is answered while a large one is sent.
const (
	CompressionOff               Compression = iota
	CompressionNoContextTakeover             // each message alone
	CompressionContextTakeover               // a message may refer to those before it
)

func (c Compression) mode() websocket.CompressionMode {
	switch c {
	case CompressionNoContextTakeover:
		return websocket.CompressionNoContextTakeover
	case CompressionContextTakeover:
		return websocket.CompressionContextTakeover
	}
	return websocket.CompressionDisabled
}

// Dial opens one connection and returns a [conn.WebSocket]. It ends with ctx, at
// whatever stage, and returns the context's cause then. ctx may end afterwards.
// A failure is an [*Error].
//
// With several endpoints a Dial is a round. It asks each endpoint at most once, in
// a shuffled order, until one answers. The limits hold for each endpoint, and ctx
// for the round. If ctx ends a round, the next Dial goes on with the endpoint after
// the last one, so that an endpoint that never answers keeps no other from being
// asked. An endpoint that asked us to stay away for a time is left out until then,
// unless all endpoints did.
//
// An address that a server has advised, if it may be followed, is dialed instead of a round:
// see FollowHint.
//
// When all endpoints fail, the most hopeful error decides what the [*Error] means,
// by its class of [backoff.Classify]: Overload first, because a server with too much
// to do needs longer waits from us; then Retry, Refresh, Slow, and Stop only if every
// endpoint says so. RetryAfter is the shortest, if all endpoints asked for one, and
// else 0, because the others are tried meanwhile. An endpoint that wants new
// credentials gets them in the next Dial, whatever the others say.
func (d *WebSocket) Dial(ctx context.Context) (conn.Conn, error) {
	e, err := d.setup()
	if err != nil {
		return nil, err
	}
	if a := d.advised(ctx, e); a != nil {
		return d.dialAdvised(ctx, e, a)
	}
	return e.dial(ctx, d.dial)
}

// Validate returns an error that names the option which is wrong, if one is. The error
// holds no part of a URL.
func (d *WebSocket) Validate() error {
	_, err := d.setup()
	return err
}

// Host returns the host and port of the endpoint, or of all endpoints, sorted and joined
// by commas. It is the same for all connections to the same place. It is empty if the
// options are wrong.
func (d *WebSocket) Host() string {
	e, err := d.setup()
	if err != nil {
		return ""
	}
	return e.hosts()
}

// Endpoint returns the scheme, host and path of the URL, or of all URLs, in their order and
// joined by ", ". The user and the query are left out, because they may hold secrets, as in
// the Endpoint of an [Error]. It is empty if the options are wrong.
func (d *WebSocket) Endpoint() string {
	e, err := d.setup()
	if err != nil {
		return ""
	}
	return e.text()
}

// DialTimeout returns how long one Dial may take in the attempt t: the limits on connecting
// and on the handshake together. A reconnect.Conn ends a Dial after that time; a round that needs
// longer goes on with the next Dial.
func (d *WebSocket) DialTimeout(t schedule.Attempt) time.Duration {
	return limitsFor(t, d.ConnectTimeout, d.HandshakeTimeout).total()
}

// dial makes one attempt at one endpoint. A [prepareError] in its error ends the round.
func (d *WebSocket) dial(ctx context.Context, u *url.URL, refresh bool) (conn.Conn, *Error) {
	return d.dialWith(ctx, u, d.Header, refresh, false)
}

// dialWith makes one attempt at u, which is at a foreign host or at that of an endpoint.
func (d *WebSocket) dialWith(ctx context.Context, u *url.URL, h http.Header, refresh, foreign bool) (conn.Conn, *Error) {
	r, err := d.prepare(ctx, u, h, refresh)
	if err != nil {
		return nil, &Error{Endpoint: redacted(u), Err: err}
	}
	r.foreign = foreign
	c, failure := d.attempt(ctx, r)
	if failure != nil && d.Prepare != nil {
		failure.refused = failure.StatusCode == http.StatusUnauthorized || failure.StatusCode == http.StatusForbidden
	}
	return c, failure
}

// setup checks the options and makes what all dials share. It does so once.
func (d *WebSocket) setup() (*endpoints, error) {
	d.once.Do(func() {
		urls, err := parseEndpoints("URL", d.URL, "URLs", d.URLs, parseURL)
		if err == nil {
			err = d.validate()
		}
		if err == nil {
			d.endpoints, err = newEndpoints(urls, d.settings())
		}
		d.err = invalid("WebSocket", err)
	})
	return d.endpoints, d.err
}

// settings returns the options that [Framed] has too.
func (d *WebSocket) settings() settings {
	s := settings{
		tls:              d.TLS,
		dialContext:      d.DialContext,
		tcp:              &d.TCP,
		connectTimeout:   d.ConnectTimeout,
		handshakeTimeout: d.HandshakeTimeout,
		conn:             &d.Conn,
		source:           d.Rand,
	}
	if t := d.Transport; t != nil {
		if s.tls == nil {
			s.tls = t.TLSClientConfig
		}
		if s.dialContext == nil {
			s.dialContext = t.DialContext
		}
	}
	if s.tls = s.tls.Clone(); s.tls != nil {
		s.tls.NextProtos = nil // because the upgrade is HTTP/1.1
	}
	return s
}

func (d *WebSocket) maxHeaderBytes() int64 {
	if d.MaxHeaderBytes > 0 {
		return d.MaxHeaderBytes
	}
	return 64 << 10 // far above any handshake
}

// validate checks the options that only a WebSocket has, but not the URLs.
func (d *WebSocket) validate() error {
	if err := validateHeader(d.Header); err != nil {
		return fmt.Errorf("Header: %w", err)
	}
	for i, s := range d.Subprotocols {
		if !validToken(s) || slices.Contains(d.Subprotocols[:i], s) {
			return fmt.Errorf("Subprotocols[%d]: %q is no token, or there twice", i, printable(s))
		}
	}
	if t := d.Transport; t != nil {
		//lint:ignore SA1019 the deprecated fields are refused
		if t.Dial != nil || t.DialTLS != nil || t.DialTLSContext != nil {
			return errors.New("Transport: Dial, DialTLS and DialTLSContext are not used; set DialContext and TLS")
		}
	}
	switch {
	case d.Compression > CompressionContextTakeover:
		return fmt.Errorf("Compression: %d is no mode", d.Compression)
	case d.MaxHeaderBytes < 0:
		return fmt.Errorf("MaxHeaderBytes: %d is negative", d.MaxHeaderBytes)
	}
	return nil
}
