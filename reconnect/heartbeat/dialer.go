package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dialer is a dialer whose connections answer the heartbeats of the server. Its fields must not change
// after the first call of a method. It is a reconnect.Dialer. Its methods Validate, Host, Endpoint and
// DialTimeout call the same methods of the field Dialer, if that has them.
type Dialer struct {
	// Dialer dials the connections, such as a *dialer.WebSocket. It must be set.
	Dialer interface {
		Dial(ctx context.Context) (conn.Conn, error)
	}

	// Answer reports whether m is a heartbeat, and returns the answer to it; the zero Message means: no
	// answer. Answer is called with each message, in the goroutine that reads, and must be quick. It must
	// not keep m.Data, but may return it in the answer. It must be set.
	Answer func(m conn.Message) (answer conn.Message, ok bool)

	// Every is the interval of the heartbeats that the server has promised. A connection is cut, with
	// [ErrLate], if neither a heartbeat nor another message has come for twice Every. The time is measured
	// in steps of half of Every, so it can be half of Every shorter or longer. A message comes when all of
	// it is there, so Every must allow for the largest one on a slow network. Time in which nobody reads
	// does not count. Default: a late server is not cut. Negative: an error.
	Every time.Duration
}

// Dial dials by the Dialer below.
func (d *Dialer) Dial(ctx context.Context) (conn.Conn, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	c, err := d.Dialer.Dial(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	return newBeats(c, d), nil
}

// Validate returns an error that names the wrong field, or the result of Validate of the Dialer below.
func (d *Dialer) Validate() error {
	if err := d.validate(); err != nil {
		return err
	}
	if v, ok := d.Dialer.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

func (d *Dialer) validate() error {
	switch {
	case d.Dialer == nil:
		return errors.New("heartbeat: Dialer.Dialer is missing")
	case d.Answer == nil:
		return errors.New("heartbeat: Dialer.Answer is missing")
	case d.Every < 0:
		return fmt.Errorf("heartbeat: Dialer.Every is negative: %v", d.Every)
	}
	return nil
}

// Host returns the Host of the Dialer below, or "" if that has no such method.
func (d *Dialer) Host() string {
	if h, ok := d.Dialer.(interface{ Host() string }); ok {
		return h.Host()
	}
	return ""
}

// Endpoint returns the Endpoint of the Dialer below, or its Host, or "" if that has neither method.
func (d *Dialer) Endpoint() string {
	if e, ok := d.Dialer.(interface{ Endpoint() string }); ok {
		return e.Endpoint()
	}
	return d.Host()
}

// DialTimeout returns the DialTimeout of the Dialer below, or 0 if that has no such method.
func (d *Dialer) DialTimeout(t backoff.Attempt) time.Duration {
	if l, ok := d.Dialer.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	}); ok {
		return l.DialTimeout(t)
	}
	return 0
}
