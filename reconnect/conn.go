package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Conn is one connection that is kept open: it is dialled, opened, read, watched
// and dialled again by one goroutine, the supervisor, until it is closed. All its
// methods may be called from any goroutine, and from its callbacks; but Read and
// Await wait there for what cannot come while the callback runs.
//
// It is not a [conn.Conn]: on one of those an error means dead.
type Conn struct {
	dialer Dialer
	o      Options
	life   life          // ends when Close or Shutdown says so
	kick   signal        // cuts the present wait
	kicked atomic.Bool   // a kick came, since the last session was lost
	done   chan struct{} // closed by the supervisor, as its last act
	err    error         // why it ended; to be read after done

	status  atomic.Pointer[Status] // written by the supervisor
	changed signal                 // a new status
	live    atomic.Pointer[link]   // the ready connection, nil while there is none; written by the supervisor
	link    atomic.Pointer[link]   // the present connection, or the last; written by the supervisor
	slot    turnstile              // of the writers: at most one writes
	outbox  *outbox                // nil where nothing is ever queued: no Done, and Down is FailWrites
	closed  atomic.Bool            // Close was called: nothing more is read
	leaving atomic.Bool            // Shutdown was called: nothing more is written
	stalls  int                    // sessions in a row without data; the supervisor's
	inbox   *inbox                 // nil for push, until a handler is slow
	callers callers
	counts  counts
}

// Dialer opens one connection. [dialer.WebSocket] is one.
//
// [dialer.WebSocket]:
// https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
type Dialer interface {
	// Dial returns a new connection. It must obey ctx, which carries a
	// [backoff.Try]; a late connection is closed. A Dialer may have more methods:
	// Validate() error, which New calls; Host() string, the default of
	// [RunOptions.Host]; and Patience(backoff.Try) time.Duration, how long one dial
	// may take if that is not the sum of the Try's limits.
	Dial(ctx context.Context) (conn.Conn, error)
}

// DialFunc is a function that is a [Dialer].
type DialFunc func(ctx context.Context) (conn.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// New starts to keep a connection open and returns at once; the first dial has no
// wait before it. The caller must call Close or Shutdown in the end. The error
// names the option that is wrong.
func New(d Dialer, o *Options) (*Conn, error) {
	if v := reflect.ValueOf(d); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return nil, errors.New("reconnect: New needs a Dialer")
	}
	if v, ok := d.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	c := &Conn{
		dialer: d,
		life:   life{done: make(chan struct{})},
		done:   make(chan struct{}),
	}
	if err := c.o.from(o, d); err != nil {
		return nil, err
	}
	if c.o.OnMessage == nil && c.o.Inbox.Full != Discard {
		c.inbox = newInbox(c.o.Inbox)
	}
	if c.o.Outbox.Done != nil || c.o.Down != FailWrites {
		c.outbox = newOutbox(c)
	}
	c.status.Store(&Status{State: StateConnecting, Since: time.Now()})
	go c.supervise() // joined by Close through done
	return c, nil
}

// Close ends the connection at once and for good, and waits until every
// goroutine, timer and socket of it is gone. Called from a callback it starts the
// end and returns. A callback or a dial that ignores its context is waited for,
// and named by [Trace.Overdue]. It returns nil, and may be called more than once.
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.life.end()
	if !c.callers.inside() {
		<-c.done
	}
	return nil
}

// Done returns a channel that is closed when nothing of the connection is left:
// after Close, after Shutdown, or when it ended by itself.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil until Done is closed. After Close or Shutdown it is
// [net.ErrClosed]; otherwise it is an *EndError with the reason why redialling
// was given up, and that is [net.ErrClosed] as well.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Kick cuts the present wait short, if there is one: the network is back, or
// somebody pressed "retry". It never cuts what a server told us to wait, nor the
// wait at the gate.
func (c *Conn) Kick() {
	if c.State() == StateWaiting {
		c.kicked.Store(true)
		c.kick.broadcast()
	}
}

// Redial gives a session up, with cause, and dials anew as after any loss: what
// came by it was wrong in a way that only the application can see. If it is not
// the present session any more, nothing happens.
func (c *Conn) Redial(session uint64, cause error) {
	if cause == nil {
		cause = errors.New("redial asked for")
	}
	if l := c.link.Load(); l != nil && l.n == session {
		c.sever(l, cause)
	}
}

// EndError says why a Conn ended by itself. It is [net.ErrClosed].
type EndError struct {
	Err error // the last one: judged Stop, or [backoff.ErrGaveUp]
}

func (e *EndError) Error() string { return "closed: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Err }

// Is reports whether target is [net.ErrClosed].
func (e *EndError) Is(target error) bool { return target == net.ErrClosed }

// supervise is the supervisor goroutine.
func (c *Conn) supervise() {
	c.callers.enter()
	supervise(&c.life, c.dial, c.serve, &c.o.Run, c)
	c.outbox.end()
	close(c.done)
}

// ending is told by the supervisor that it ends because of err, and says what
// that means. A nil Conn is that of a bare Run.
func (c *Conn) ending(err error) error {
	if c == nil {
		return err
	}
	if c.life.Err() == nil && !c.leaving.Load() {
		err = &EndError{Err: err}
	} else {
		err = net.ErrClosed
	}
	c.err = err
	c.enter(StateClosed, func(s *Status) { s.Err = err })
	return err
}

// connecting is told by the supervisor.
func (c *Conn) connecting() {
	if c == nil {
		return
	}
	c.kicked.Store(false)
	if c.State() != StateConnecting {
		c.enter(StateConnecting, nil)
	}
}

// waiting is told by the supervisor.
func (c *Conn) waiting(w Wait) {
	if c != nil {
		c.enter(StateWaiting, func(s *Status) {
			s.Try, s.Err, s.Next = w.Try, w.Cause, time.Now().Add(w.Verdict.RetryAfter+w.Drawn)
		})
	}
}

func (c *Conn) dial(ctx context.Context) (*link, error) {
	c.callers.enter()
	defer c.callers.leave()
	c.counts.dials.Add(1)
	opened, err := c.dialer.Dial(ctx)
	if err != nil {
		c.counts.failures.Add(1)
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", c.dialer))
	}
	return newLink(opened), nil
}
