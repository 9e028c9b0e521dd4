package dialer

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// WebSocket opens WebSocket connections. Its fields must not change after the
// first call of a method; from then on it is safe for concurrent use, and must
// not be copied.
//
// ConnectTimeout and HandshakeTimeout, where they are set, hold for every try;
// where they are not, what the [backoff.Try] in the dial's context says.
type WebSocket struct {
	// URL is where to dial: ws or wss, with no fragment.
	URL string

	// URLs, instead of URL, are endpoints that serve the same: see Dial.
	URLs []string

	// Header is sent with each handshake. Its Host, if it has one, replaces the
	// URL's. What the handshake itself sets is an error. Default: none.
	Header http.Header

	// Prepare may change the URL and the header before each endpoint is dialled,
	// so that credentials can be made anew. No socket has been opened yet. ctx is
	// the attempt's, and ends after the handshake's limit too; in it
	// [backoff.TryFrom] says with Refresh that the last credentials were refused.
	// An error ends the attempt; its text is printed but for the URL in a
	// [url.Error]. It may be called from several goroutines at once, if Dial is.
	// Default: none.
	Prepare func(ctx context.Context, r *Request) error

	// Subprotocols are offered to the server, the best first. It may choose none:
	// see [conn.WebSocket.Subprotocol]. Default: none.
	Subprotocols []string

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, an empty ServerName the
	// host of the endpoint. A nil ClientSessionCache means a cache that belongs to
	// this WebSocket, so that a redial resumes the session, at two thirds of the
	// cost for both sides. There is no such cache with Certificates,
	// GetClientCertificate or VerifyPeerCertificate, because a resumed session keeps
	// the old client certificate and skips that check; SessionTicketsDisabled turns
	// it off too. NextProtos is not used.
	// Default: the TLSClientConfig of Transport, or the zero Config.
	TLS *tls.Config

	// Compression is permessage-deflate. Default: off.
	Compression Compression

	// Proxy chooses the proxy, as in [http.Transport]; it sees the scheme http for
	// ws and https for wss. wss goes through an HTTP proxy by CONNECT, ws is
	// sent to it as it is. Default: that of Transport, or none: the environment
	// counts only with [http.ProxyFromEnvironment] here.
	Proxy func(*http.Request) (*url.URL, error)

	// Transport is what to start from. It is cloned for each attempt and never
	// used itself: HTTP keepalive, HTTP/2 and its timeouts are switched off in the
	// clone. Its own Dial, DialTLS and DialTLSContext are errors. Default: none.
	Transport *http.Transport

	// DialContext makes the connection instead of our own TCP. It must return
	// when ctx ends, which is no deadline that ctx knows. Default: that of Transport, or TCP's.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// TCP is not used with a DialContext.
	TCP TCPOptions

	// ConnectTimeout is the limit on name resolution, TCP and the answer of a
	// proxy to CONNECT, for each endpoint and every try. Default: what the
	// supervisor says, which grows while the server is overloaded, or else 15 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout is the limit on TLS and the upgrade, for each endpoint,
	// counted from the end of connecting. Default: as above, or else 30 s.
	HandshakeTimeout time.Duration

	// MaxHeaderBytes is the limit on the header of an answer. Default 64 KiB.
	MaxHeaderBytes int64

	// Conn has the limits of the connections that are opened.
	Conn conn.WebSocketOptions

	// Random is where the order of endpoints and addresses is drawn from. It is
	// used under a lock. Default: that of package rand.
	Random rand.Source

	once sync.Once
	plan *plan // what Dial needs, made by setup
	err  error // why there is none
}

// Request is one handshake, about to be made.
type Request struct {
	URL    string      // where to dial
	Header http.Header // never nil; a copy that belongs to this handshake
}

// Compression is how messages are compressed (RFC 7692), if the server agrees.
type Compression uint8

// The modes of compression. Context takeover compresses better, and holds some
// memory for each connection for as long as it lives. A compressed stream that ends
// inside a message is an error, although coder/websocket does not say so.
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
// Failures are an [*Error].
//
// With several endpoints a Dial is a round. Each is asked at most once, in a
// shuffled order, until one answers; each has the limits for itself, and ctx
// ends the round. A round that ended in this way is carried on by the next
// Dial, with the endpoint after the last one, so that a black hole starves
// nobody. An endpoint that asked us to stay away for a time is left out until
// then, unless all did.
//
// When all have failed, the error that decides is that of the endpoint which gives
// most hope, by [backoff.Classify]: any Overload comes first, since a server
// with too much to do needs longer waits from us; then Retry, Refresh, Slow,
// and Stop only if every endpoint says so. RetryAfter is the shortest that was
// asked for, if all endpoints asked for one; else the others are tried meanwhile.
// An endpoint that wants new credentials is given them next time (Refresh),
// whatever the others say.
func (d *WebSocket) Dial(ctx context.Context) (conn.Conn, error) {
	p, err := d.setup()
	if err != nil {
		return nil, err
	}
	c, e := p.round(ctx, d.dial)
	if e != nil {
		return nil, e
	}
	return c, nil
}

// Validate returns an error that names the option which is wrong, if one is. No
// part of a URL is in it.
func (d *WebSocket) Validate() error {
	_, err := d.setup()
	return err
}

// Host is what connections to the same place have in common: host and port of
// the endpoint, or of all endpoints, sorted and joined by commas. It is empty
// when the options are wrong.
func (d *WebSocket) Host() string {
	p, err := d.setup()
	if err != nil {
		return ""
	}
	return p.host()
}

// Patience returns how long one Dial may take when the supervisor says t: the
// limits on connecting and on the handshake together. It is what a
// reconnect.Conn allows; a round that does not get to its end in that time goes on
// with the next Dial.
func (d *WebSocket) Patience(t backoff.Try) time.Duration {
	return limitsFor(t, d.ConnectTimeout, d.HandshakeTimeout).patience()
}

// dial tries one endpoint. A [prepareError] in its error ends the round.
func (d *WebSocket) dial(ctx context.Context, u *url.URL, refresh bool) (conn.Conn, *Error) {
	if ctx.Err() != nil {
		return nil, &Error{Endpoint: redacted(u), Err: context.Cause(ctx)}
	}
	l := limitsFor(backoff.TryFrom(ctx), d.ConnectTimeout, d.HandshakeTimeout)
	t, err := d.prepare(ctx, u, refresh, l.handshake)
	if err != nil {
		return nil, &Error{Endpoint: redacted(u), Err: err}
	}
	return d.open(ctx, t, l)
}
