package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
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
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// Framed opens framed connections: messages over TCP, or over TLS. Its fields must
// not change after the first call of a method; from then on it is safe for
// concurrent use, and must not be copied.
type Framed struct {
	// Address is the endpoint: "host:port", with a number for the port. A host name
	// outside of ASCII is converted as net/http converts it (IDNA), here and in
	// Addresses.
	Address string

	// Addresses, instead of Address, are endpoints that serve the same: see Dial.
	Addresses []string

	// Framer cuts the stream into messages: [conn.Lines], [conn.LengthPrefix], or one of
	// your own. It must be set.
	Framer conn.Framer

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, an empty ServerName the
	// host of the endpoint. A nil ClientSessionCache means a cache that belongs to
	// this Framed, except with Certificates, GetClientCertificate or
	// VerifyPeerCertificate: see [WebSocket.TLS].
	// Default: no TLS. The zero Config is TLS with the defaults.
	TLS *tls.Config

	// TCP has the options of the socket. It is not used with a DialContext.
	TCP TCPOptions

	// DialContext makes the connection, with "tcp" for network. It must return when
	// ctx ends; ctx has no deadline. A connection without CloseWrite cannot be
	// half-closed: see [conn.Framed.Close]. Default: a socket made by TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// ConnectTimeout is the limit on connecting: name lookup and TCP. It holds for
	// each endpoint and each try. Default: the Connect of the [schedule.Attempt] in the
	// dial's context, or 16 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout is the limit on TLS, counted from the end of connecting. It
	// holds for each endpoint and each try. Default: none under a supervisor, which
	// knows when a handshake hangs, keeps it and dials beside it (see package schedule);
	// otherwise 30 s.
	HandshakeTimeout time.Duration

	// Conn has the limits of the connections that are opened.
	Conn conn.FramedOptions

	// Rand draws the order of endpoints and addresses. It is used under a lock.
	// Default: the functions of math/rand/v2.
	Rand rand.Source

	once      sync.Once
	endpoints *endpoints // made by setup
	err       error      // the option that is wrong
}

// Dial opens one connection and returns a [conn.Framed]. It ends with ctx, at
// whatever stage, and returns the context's cause then. ctx may end afterwards.
// A failure is an [*Error].
//
// With several endpoints a Dial is a round, by the rules of [WebSocket.Dial]: it
// asks each endpoint at most once, in a shuffled order; the limits hold for each
// endpoint; the next Dial carries on a round that ctx has ended; and the most hopeful
// error decides what the [*Error] means.
func (d *Framed) Dial(ctx context.Context) (conn.Conn, error) {
	e, err := d.setup()
	if err != nil {
		return nil, err
	}
	return e.dial(ctx, d.dial)
}

// Validate returns an error that names the option which is wrong, if one is. The error
// holds no part of an address.
func (d *Framed) Validate() error {
	_, err := d.setup()
	return err
}

// Host returns the address of the endpoint, or of all endpoints, sorted and joined by
// commas. It is the same for all connections to the same place. It is empty if the
// options are wrong.
func (d *Framed) Host() string {
	e, err := d.setup()
	if err != nil {
		return ""
	}
	return e.hosts()
}

// Endpoint returns the address with tcp:// or tls:// before it, or all addresses, in their
// order and joined by ", ". It is empty if the options are wrong.
func (d *Framed) Endpoint() string {
	e, err := d.setup()
	if err != nil {
		return ""
	}
	return e.text()
}

// DialTimeout returns how long one Dial may take in the attempt t: the limit on connecting
// and, with TLS, that on the handshake together. A reconnect.Conn ends a Dial after
// that time; a round that needs longer goes on with the next Dial.
func (d *Framed) DialTimeout(t schedule.Attempt) time.Duration {
	l := limitsFor(t, d.ConnectTimeout, d.HandshakeTimeout)
	if d.TLS == nil {
		return l.connect
	}
	return l.total()
}

// dial makes one attempt at one endpoint.
func (d *Framed) dial(ctx context.Context, u *url.URL, _ bool) (conn.Conn, *Error) {
	return d.endpoints.attempt(ctx, u, false,
		func(ctx context.Context, w *conn.Wire) (net.Conn, error) {
			return d.endpoints.connectTo(ctx, w, u.Host)
		},
		func(_ context.Context, _ *conn.Wire, nc net.Conn) (conn.Conn, error) {
			return conn.NewFramed(nc, d.Framer, &d.Conn)
		})
}

// setup checks the options and makes what all dials share. It does so once.
func (d *Framed) setup() (*endpoints, error) {
	d.once.Do(func() {
		scheme := "tcp"
		if d.TLS != nil {
			scheme = "tls"
		}
		urls, err := parseEndpoints("Address", d.Address, "Addresses", d.Addresses,
			func(raw string) (*url.URL, error) { return parseAddress(scheme, raw) })
		if err == nil {
			err = d.validateFramer()
		}
		if err == nil {
			d.endpoints, err = newEndpoints(urls, d.settings())
		}
		d.err = invalid("Framed", err)
	})
	return d.endpoints, d.err
}

// settings returns the options that [WebSocket] has too.
func (d *Framed) settings() settings {
	return settings{
		tls:              d.TLS.Clone(),
		dialContext:      d.DialContext,
		tcp:              &d.TCP,
		connectTimeout:   d.ConnectTimeout,
		handshakeTimeout: d.HandshakeTimeout,
		conn:             &d.Conn,
		source:           d.Rand,
	}
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
