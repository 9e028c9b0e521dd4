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
	"net/url"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Framed opens framed connections: messages over TCP, or over TLS. Its fields must not change after
// the first call of a method; from then on a Framed is safe for concurrent use, and must not be
// copied. [WebSocket] documents TCP, ConnectTimeout, HandshakeTimeout and Rand: they are the same here.
type Framed struct {
	// Address is the endpoint: "host:port", with a number for the port. A host name
	// outside of ASCII is converted as net/http converts it (IDNA), here and in
	// Addresses.
	Address string

	// Addresses, instead of Address, are endpoints that serve the same: see Dial.
	Addresses []string

	// Framer cuts the stream into messages: [conn.Lines], [conn.LengthPrefix], or a Framer of
	// your own. It must be set.
	Framer conn.Framer

	// TLS is cloned once, and has the defaults of [WebSocket].TLS. Default: no TLS. The zero Config is
	// TLS with the defaults.
	TLS *tls.Config

	TCP TCPOptions // the options of the socket; not used with a DialContext

	// DialContext makes the connection, with "tcp" for network. It must return when
	// ctx ends; ctx has no deadline. A connection without CloseWrite cannot be
	// half-closed: see [conn.Framed.Close]. Default: a socket made by TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	ConnectTimeout   time.Duration // the limit on name lookup and TCP. Default: see WebSocket
	HandshakeTimeout time.Duration // the limit on TLS, from the end of connecting. Default: see WebSocket

	Conn conn.FramedOptions // the limits of the connections that are opened
	Rand rand.Source        // the source of the order of endpoints and addresses. Default: see WebSocket

	once      sync.Once
	endpoints *endpoints // made by setup
}

// Dial opens one connection and returns a [conn.Framed]. It ends with ctx, at
// whatever stage, and returns the context's cause then. ctx may end afterwards.
// A failure is an [*Error]. With several endpoints a Dial is a round: see [WebSocket.Dial].
func (d *Framed) Dial(ctx context.Context) (conn.Conn, error) {
	return d.setup().dial(ctx, d.dial)
}

// Validate returns an error that names the wrong option, if there is one. The error
// holds no part of an address.
func (d *Framed) Validate() error { return d.setup().err }

// Host returns the address of the endpoint, or of all endpoints, sorted and joined by
// commas. If an option is wrong, Host is empty.
func (d *Framed) Host() string { return d.setup().hosts() }

// Endpoint returns the address with tcp:// or tls:// before it, or all addresses, in their
// order and joined by ", ". If an option is wrong, Endpoint is empty.
func (d *Framed) Endpoint() string { return d.setup().text() }

// DialTimeout returns how long one Dial may take in the attempt t: the limit on connecting and, with
// TLS, the limit on the handshake together. See [WebSocket.DialTimeout].
func (d *Framed) DialTimeout(t backoff.Attempt) time.Duration {
	if connect, _ := d.setup().limits(t); d.TLS == nil {
		return connect
	}
	return d.setup().dialTimeout(t)
}

// dial makes one attempt at one endpoint.
func (d *Framed) dial(ctx context.Context, u *url.URL, _ bool) (conn.Conn, *Error) {
	return d.endpoints.attempt(ctx, &attempt{
		request: &request{url: u},
		connect: func(ctx context.Context, w *conn.Wire) (net.Conn, error) {
			return d.endpoints.connectTo(ctx, w, u.Host)
		},
		open: func(_ context.Context, _ *conn.Wire, nc net.Conn) (conn.Conn, error) {
			return conn.NewFramed(nc, d.Framer, &d.Conn)
		},
	})
}

// setup checks the options and makes what all dials share. It does so once.
func (d *Framed) setup() *endpoints {
	d.once.Do(func() {
		scheme := "tcp"
		if d.TLS != nil {
			scheme = "tls"
		}
		urls, err := parseEndpoints("Address", d.Address, "Addresses", d.Addresses,
			func(raw string) (*url.URL, error) { return parseAddress(scheme, raw) })
		d.endpoints = newEndpoints("Framed", urls, settings{
			tls: d.TLS.Clone(), dialContext: d.DialContext, tcp: &d.TCP, conn: &d.Conn, source: d.Rand,
			connectTimeout: d.ConnectTimeout, handshakeTimeout: d.HandshakeTimeout,
		}, cmp.Or(err, d.validateFramer()))
	})
	return d.endpoints
}

func (d *Framed) validateFramer() error {
	if d.Framer == nil {
		return errors.New("Framer: missing")
	}
	if v, ok := d.Framer.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("Framer: %w", err)
		}
	}
	return nil
}
