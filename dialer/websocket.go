package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
	"cmp"
	"context"
	"crypto/tls"
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

// WebSocket opens WebSocket connections. Its fields must not change after the first call of a method;
// from then on a WebSocket is safe for concurrent use, and must not be copied.
type WebSocket struct {
	// URL is the endpoint: ws or wss, without a fragment. A host name outside of
	// ASCII is converted as net/http converts it (IDNA), here and in URLs.
	URL string

	// URLs, instead of URL, are endpoints that serve the same: see Dial.
	URLs []string

	// Header is sent with each handshake. Its Host, if it has one, replaces the host of the
	// URL. A header that the handshake sets itself is an error. Default: none.
	Header http.Header

	// Prepare may change the URL and the header before each endpoint is dialed, for example to make new
	// credentials. No socket is open at that time. ctx ends with the attempt, and when HandshakeTimeout is
	// over. If the server refused the last credentials, with 401 or 403, [backoff.AttemptFrom] of ctx has
	// Refresh set; such a refusal is a [backoff.ClassRefresh], after which a supervisor dials again within a
	// second. An error of Prepare ends the attempt, and is printed, except for the URL in a [url.Error] and
	// the secrets in the Request. If a supervisor has a Gate and the URL is at another host, Prepare is
	// called again when the gate has admitted that host. Prepare is called by several goroutines concurrently
	// if Dial is. Default: none.
	Prepare func(ctx context.Context, r *Request) error

	// FollowHint reports whether an address that a server has advised may be dialed although no URL
	// has its host. A client of Discord needs it, because its resume_gateway_url has another host than the
	// first URL. The address is [backoff.Attempt].URL, which comes from a reconnect.Advice. An address with
	// the scheme, host and port of a URL is dialed without asking. The address takes the place of the whole
	// URL, path and query too, for one Dial, which asks no other endpoint. If an address is not followed, a
	// supervisor calls Trace.AddressIgnored.
	//
	// A foreign host gets nothing that proves who you are: neither Header nor a client
	// certificate. Prepare is called with an empty header, and sees the URL: it must not add a
	// credential for another host there. Subprotocols are offered. Default: no foreign host
	// is followed, because a server, or an attacker in its place, could send clients anywhere.
	FollowHint func(to *url.URL) bool

	// Subprotocols are offered to the server, the best first. It may choose none:
	// see [conn.WebSocket.Subprotocol]. Default: none.
	Subprotocols []string

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, or TLS 1.3 with an EncryptedClientHelloConfigList,
	// which is not used for a proxy. An empty ServerName means the host of the endpoint. NextProtos is not
	// used. A nil ClientSessionCache means a cache of this WebSocket, so that a redial resumes the session
	// and the server need not sign again, which costs much with an RSA key. There is no such cache with
	// SessionTicketsDisabled, and none with Certificates, GetClientCertificate or VerifyPeerCertificate,
	// because a resumed session keeps the old client certificate and skips that check. Default: the zero
	// Config.
	TLS *tls.Config

	// Compression is how messages are compressed (permessage-deflate, RFC 7692), if the server
	// agrees. With websocket.CompressionContextTakeover a message may refer to earlier ones,
	// which compresses better, but each connection then holds memory for as long as it lives:
	// about 1.2 MB from the first message of 128 bytes or more that it sends, and up to 32 KiB of
	// the messages received. A server that answers with a parameter which was not offered
	// (RFC 7692, section 7.1), such as client_max_window_bits, is refused: such a server needs
	// CompressionDisabled. Default: websocket.CompressionDisabled.
	Compression websocket.CompressionMode

	// Proxy chooses the proxy for each attempt, as in [http.Transport]: a URL of
	// http, https, socks5 or socks5h, or nil for none. Its argument is the handshake, with
	// the scheme http for ws and https for wss. Every proxy makes a tunnel; an HTTP proxy
	// does so by CONNECT, for ws too. An https proxy must have a certificate for its own
	// name. A failure of a proxy is a [ProxyError].
	// Default: [http.ProxyFromEnvironment]. For no proxy: http.ProxyURL(nil).
	Proxy func(*http.Request) (*url.URL, error)

	// DialContext makes the connection to the endpoint or to the proxy, with "tcp"
	// for network. It must return when ctx ends; ctx has no deadline.
	// Default: a socket made by TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// TCP has the options of the socket. It is not used with a DialContext.
	TCP TCPOptions

	// ConnectTimeout is the limit on connecting, for each endpoint and each try: name lookup, TCP,
	// and the tunnel of a proxy. A name lookup that takes three quarters of it fails, as a
	// [net.DNSError]. Default: the Connect of the [backoff.Attempt] in the dial's context, or 16 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout is the limit on TLS and the upgrade, for each endpoint and each try, counted
	// from the end of connecting. Default: none under a supervisor, which notices a handshake that
	// hangs, keeps it and dials beside it (see package reconnect); otherwise 30 s.
	HandshakeTimeout time.Duration

	// Conn has the limits of the connections that are opened, and whether texts must
	// be UTF-8.
	Conn conn.WebSocketOptions

	// Split cuts frames that hold several messages. Then OnSession, the layers and the reader of a
	// reconnect.Conn get each of these as a message of its own, and Dial returns the result of
	// conn.NewSplit, whose method Unwrap returns the [conn.WebSocket]. Default: a frame is a message.
	Split conn.Split

	// Rand draws the order of endpoints and addresses. It is used under a lock.
	// Default: the functions of math/rand/v2.
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

// Dial opens one connection and returns a [conn.WebSocket], or the result of [conn.NewSplit] if Split is set.
// When ctx ends, Dial returns the cause of ctx, at whatever stage it is. After Dial has returned, ctx may end.
// A failure is an [*Error].
//
// With several endpoints a Dial is a round: it asks each endpoint at most once, in a shuffled order,
// until one answers. The rules of a round:
//
//   - The limits hold for each endpoint, and ctx for the round. If ctx ends a round, the next Dial goes
//     on with the next endpoint, so that an endpoint that never answers keeps no other from
//     being asked.
//   - An endpoint that asked us to stay away for a time is left out until then, unless all endpoints did.
//   - An endpoint that could not be connected to in time, or did not answer the handshake, is asked last for
//     10 minutes. A refusal, such as 503, is an answer.
//   - Connecting to an endpoint that has not answered yet, or not since it was too slow, may take no longer
//     than 2 s while another endpoint is left that is not asked last for that reason.
//   - If all endpoints fail, the most hopeful error decides what the [*Error] means, by its class of
//     [backoff.Classify]: Overload first, because a server with too much to do needs longer waits
//     from us; then Retry, Refresh, Slow, and Stop only if every endpoint says so.
//   - RetryAfter is the shortest, if all endpoints asked for one, and else 0, because the others are
//     tried meanwhile.
//   - An endpoint that wants new credentials gets them in the next Dial, whatever the others say.
//
// An address that a server has advised, if it may be followed, is dialed instead of a round:
// see FollowHint.
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

// Validate returns an error that names the wrong option, if there is one. The error
// holds no part of a URL.
func (d *WebSocket) Validate() error { return d.setup().err }

// Host returns the host and port of the endpoint, or of all endpoints, sorted and joined
// by commas. If Prepare or an advised address sends a dial to another host, a supervisor is
// notified: see [backoff.Attempt].Host. If an option is wrong, Host is empty.
func (d *WebSocket) Host() string { return d.setup().hosts() }

// Endpoint returns the scheme, host and path of the URL, or of all URLs, in their order and
// joined by ", ". It has no user and no query, because these may hold secrets. If an option is wrong,
// Endpoint is empty.
func (d *WebSocket) Endpoint() string { return d.setup().text() }

// DialTimeout returns how long one Dial may take in the attempt t: the limits on connecting
// and on the handshake together. A reconnect.Conn ends a Dial after that time; a round that needs
// longer goes on with the next Dial.
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
