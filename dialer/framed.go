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

// Framed opens framed connections: messages over TCP or TLS. Its fields must not change after the
// first call of a method; from then on a Framed is safe for concurrent use, and must not be copied.
// TCP, ConnectTimeout, HandshakeTimeout and Rand are as in [WebSocket].
type Framed struct {
	// Address is the endpoint: "host:port", with a number for the port. A host name is converted as
	// in [WebSocket].URL.
	Address string

	// Addresses, instead of Address, are endpoints that serve the same: see Dial.
	Addresses []string

	// Framer delimits messages. It must be set.
	Framer conn.Framer

	// TLS is cloned once, and has the defaults of [WebSocket].TLS, which the zero Config selects.
	// Default: no TLS.
	TLS *tls.Config

	TCP TCPOptions // the options of the socket; not used with a DialContext

	// DialContext makes the connection, as in [WebSocket].
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	ConnectTimeout   time.Duration // limits name lookup and TCP
	HandshakeTimeout time.Duration // limits TLS, from the end of connecting

	Conn conn.FramedOptions // the limits of the opened connections
	Rand rand.Source        // draws the order of endpoints and addresses

	once      sync.Once
	endpoints *endpoints // made by setup
}

// Dial returns a new [conn.Framed]. For ctx, errors and several endpoints see [WebSocket.Dial].
func (d *Framed) Dial(ctx context.Context) (conn.Conn, error) {
	return d.setup().dial(ctx, d.dial)
}

// Validate returns an error naming any invalid option. The error holds no part of an address.
func (d *Framed) Validate() error { return d.setup().err }

// Host returns the addresses as [WebSocket.Host] does.
func (d *Framed) Host() string { return d.setup().hosts() }

// Endpoint returns the addresses as [WebSocket.Endpoint] does, with tcp:// or tls:// before each.
func (d *Framed) Endpoint() string { return d.setup().text() }

// DialTimeout is like [WebSocket.DialTimeout], with the limit on the handshake for TLS only.
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
