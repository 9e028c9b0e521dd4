package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dialer is a reconnect.Dialer whose connections answer the heartbeats of the server. Its fields must not
// change after the first call of a method.
type Dialer struct {
	// Dialer dials the connections, such as a *dialer.WebSocket. It must be set.
	Dialer interface {
		Dial(ctx context.Context) (conn.Conn, error)
	}

	// Answer reports whether m is a heartbeat, and returns the response, or the zero Message for none. It is
	// called with each message, in the goroutine that reads, and must be quick. It must not keep m.Data, but
	// may return it in the response. It must be set.
	Answer func(m conn.Message) (answer conn.Message, ok bool)

	// Every is the interval of the heartbeats that the server has promised. A connection is closed, with
	// [ErrLate], if no message, heartbeat or not, has come for twice Every, plus or minus half of Every. Only
	// complete messages count, so Every must allow for the largest one on a slow network. Time in which no
	// goroutine reads does not count. Default: a late server is tolerated. Negative: an error.
	Every time.Duration
}

// Dial dials with the underlying Dialer.
func (d *Dialer) Dial(ctx context.Context) (conn.Conn, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c, err := d.Dialer.Dial(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	return newBeats(c, d), nil
}

// Validate returns an error that names the wrong field, or the result of the underlying Validate.
func (d *Dialer) Validate() error {
	switch {
	case d.Dialer == nil:
		return errors.New("heartbeat: Dialer.Dialer is missing")
	case d.Answer == nil:
		return errors.New("heartbeat: Dialer.Answer is missing")
	case d.Every < 0:
		return fmt.Errorf("heartbeat: Dialer.Every is negative: %v", d.Every)
	}
	if v, ok := d.Dialer.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Host returns the underlying Host, or "" without such a method.
func (d *Dialer) Host() string {
	if h, ok := d.Dialer.(interface{ Host() string }); ok {
		return h.Host()
	}
	return ""
}

// Endpoint returns the underlying Endpoint, or else Host, or "" without either method.
func (d *Dialer) Endpoint() string {
	if e, ok := d.Dialer.(interface{ Endpoint() string }); ok {
		return e.Endpoint()
	}
	return d.Host()
}

// DialTimeout returns the underlying DialTimeout, or 0 without such a method.
func (d *Dialer) DialTimeout(t backoff.Attempt) time.Duration {
	if l, ok := d.Dialer.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	}); ok {
		return l.DialTimeout(t)
	}
	return 0
}
