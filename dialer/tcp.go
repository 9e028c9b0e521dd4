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
	"github.com/redial-go/redial/reconnect/backoff"
)

// TCP opens framed connections: messages over TCP, or over TLS. Its fields must
// not change after the first call of a method; from then on it is safe for
// concurrent use, and must not be copied.
//
// ConnectTimeout and HandshakeTimeout, where they are set, hold for every try;
// where they are not, what the [backoff.Try] in the dial's context says.
type TCP struct {
	// Address is where to dial: "host:port", with a number for the port.
	Address string

	// Addresses, instead of Address, are endpoints that serve the same: see Dial.
	Addresses []string

	// Framer says what a message is: [conn.Lines], [conn.LengthPrefix], or one of
	// your own. There is no default.
	Framer conn.Framer

	// TLS is cloned once. A MinVersion of 0 means TLS 1.2, an empty ServerName the
	// host of the endpoint. A nil ClientSessionCache means a cache that belongs to
	// this TCP, except with Certificates, GetClientCertificate or
	// VerifyPeerCertificate: see [WebSocket.TLS].
	// Default: no TLS. The zero Config is TLS with the defaults.
	TLS *tls.Config

	// Socket says how a TCP connection is made. Not used with a DialContext.
	Socket TCPOptions

	// DialContext makes the connection instead of our own TCP, with "tcp" for
	// network. It must return when ctx ends, which is no deadline that ctx knows.
	// A connection without CloseWrite cannot be half-closed: see
	// [conn.Framed.Close]. Default: TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// ConnectTimeout is the limit on name resolution and TCP, for each endpoint
	// and every try. Default: what the supervisor says, which grows while the
	// server is overloaded, or else 15 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout is the limit on TLS, for each endpoint, counted from the
	// end of connecting. Default: as above, or else 30 s.
	HandshakeTimeout time.Duration

	// Conn has the limits of the connections that are opened.
	Conn conn.FramedOptions

	// Random is where the order of endpoints and addresses is drawn from. It is
	// used under a lock. Default: that of package rand.
	Random rand.Source

	once sync.Once
	plan *plan                  // what Dial needs, made by setup
	tls  map[string]*tls.Config // by host, so that connections share it; nil without TLS
	err  error                  // why there is no plan
}

// Dial opens one connection and returns a [conn.Framed]. It ends with ctx, at
// whatever stage, and returns the context's cause then. ctx may end afterwards.
// Failures are an [*Error].
//
// With several endpoints a Dial is a round, by the rules of [WebSocket.Dial]: each
// is asked at most once, in a shuffled order, with the limits for itself; a round
// that ctx has ended is carried on by the next Dial; and the endpoint that gives
// most hope decides what the error means.
func (d *TCP) Dial(ctx context.Context) (conn.Conn, error) {
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
// part of an address is in it.
func (d *TCP) Validate() error {
	_, err := d.setup()
	return err
}

// Host is what connections to the same place have in common: the address of the
// endpoint, or of all endpoints, sorted and joined by commas. It is empty when the
// options are wrong.
func (d *TCP) Host() string {
	p, err := d.setup()
	if err != nil {
		return ""
	}
	return p.host()
}

// Patience returns how long one Dial may take when the supervisor says t: the
// limit on connecting and, with TLS, that on the handshake together. It is what a
// reconnect.Conn allows; a round that does not get to its end in that time goes on
// with the next Dial.
func (d *TCP) Patience(t backoff.Try) time.Duration {
	l := limitsFor(t, d.ConnectTimeout, d.HandshakeTimeout)
	if d.TLS == nil {
		return l.connect
	}
	return l.patience()
}

// setup makes the plan, once.
func (d *TCP) setup() (*plan, error) {
	d.once.Do(func() {
		if d.plan, d.err = d.makePlan(); d.err != nil {
			d.err = invalid("TCP", d.err)
		}
	})
	return d.plan, d.err
}

func (d *TCP) makePlan() (*plan, error) {
	scheme := "tcp"
	if d.TLS != nil {
		scheme = "tls"
	}
	endpoints, err := parseEndpoints("Address", d.Address, "Addresses", d.Addresses,
		func(raw string) (*url.URL, error) { return parseAddress(scheme, raw) })
	if err == nil {
		err = d.validateRest()
	}
	if err != nil {
		return nil, err
	}
	if d.TLS == nil {
		return newPlan(endpoints, nil, d.Random), nil
	}
	shared := tlsDefaults(d.TLS)
	d.tls = make(map[string]*tls.Config, len(endpoints))
	for _, u := range endpoints {
		c := shared
		if c.ServerName == "" {
			c = shared.Clone()
			c.ServerName = u.Hostname()
		}
		d.tls[u.Hostname()] = c
	}
	return newPlan(endpoints, shared, d.Random), nil
}

// validateRest checks all options but the addresses.
func (d *TCP) validateRest() error {
	if d.Framer == nil {
		return errors.New("Framer: missing")
	}
	if v, ok := d.Framer.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("Framer: %w", err)
		}
	}
	if err := validateLimits(d.ConnectTimeout, d.HandshakeTimeout); err != nil {
		return err
	}
	if err := d.Socket.validate(); err != nil {
		return fmt.Errorf("Socket.%w", err)
	}
	if err := d.Conn.Validate(); err != nil {
		return fmt.Errorf("Conn: %w", err)
	}
	return nil
}

// dial tries one endpoint. When it fails, everything of it has ended; when it
// does not, nothing of it is kept by the connection.
func (d *TCP) dial(parent context.Context, u *url.URL, _ bool) (conn.Conn, *Error) {
	if parent.Err() != nil {
		return nil, &Error{Endpoint: redacted(u), Err: context.Cause(parent)}
	}
	ctx, cancel := context.WithCancelCause(undated{parent})
	s := stages{limits: limitsFor(backoff.TryFrom(parent), d.ConnectTimeout, d.HandshakeTimeout), end: cancel}
	var wire conn.Wire
	cut := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(cut); wire.Cut() })

	nc, err := d.connect(ctx, u, &wire, &s)
	s.stop()
	var c *conn.Framed
	if err == nil {
		c, err = conn.NewFramed(nc, d.Framer, &d.Conn)
	}
	if err == nil && unhook() {
		cancel(nil)
		return c, nil
	}

	ended := context.Cause(ctx) // before we end it ourselves
	cancel(nil)
	<-cut
	if c != nil {
		_ = c.CloseNow()
	}
	return nil, failure(parent, u, nil, ended, err, false)
}

// connect makes the connection, with TLS if that is wanted. What it has opened is
// closed when wire is cut.
func (d *TCP) connect(ctx context.Context, u *url.URL, wire *conn.Wire, s *stages) (net.Conn, error) {
	s.connecting()
	dial := d.DialContext
	if dial == nil {
		dial = d.Socket.forMessages().dialer(d.plan.shuffle)
	}
	nc, err := made(dial(ctx, "tcp", u.Host))
	if err != nil {
		return nil, err
	}
	nc = wire.Tap(nc)
	if d.tls == nil {
		return nc, nil
	}
	s.handshaking()
	secure := tls.Client(nc, d.tls[u.Hostname()])
	return secure, secure.HandshakeContext(ctx)
}
