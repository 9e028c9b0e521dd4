package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// nats.go: a subscription with a callback. Its limits on what waits are off, so that
// nothing is dropped, and it redials for ever.
var natsPeers = []*peer{{name: "nats", protocol: natsCore, redials: true, open: openNATS}}

type natsClient struct {
	conn   *nats.Conn
	up     string
	closed chan struct{}
}

func openNATS(ctx context.Context, t *target) (client, error) {
	c := &natsClient{up: t.up, closed: make(chan struct{})}
	o := []nats.Option{
		nats.MaxReconnects(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { t.isDown(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { t.isUp() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if t.tls != nil {
		o = append(o, nats.Secure(t.tls))
	}
	if t.wait > 0 {
		o = append(o, nats.ReconnectWait(t.wait), nats.ReconnectJitter(0, 0))
	}
	var err error
	if c.conn, err = nats.Connect(t.url("nats", "tls"), o...); err != nil {
		return nil, err
	}
	s, err := c.conn.Subscribe(t.down, func(m *nats.Msg) { t.onMessage(m.Data) })
	if err == nil {
		err = errors.Join(s.SetPendingLimits(-1, -1), c.conn.FlushTimeout(10*time.Second)) // the server has it
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	t.isUp()
	return c, nil
}

func (c *natsClient) Send(p []byte) error { return c.conn.Publish(c.up, p) }

func (c *natsClient) Close() { c.conn.Close(); <-c.closed }
