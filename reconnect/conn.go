package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Conn is one connection that is kept open: it is dialed, opened, read, watched
// and dialed again by one goroutine, the supervisor, until it is closed. All its
// methods may be called from any goroutine, and from its callbacks; but what waits
// there for something that cannot come while the callback runs ends only with its
// context: see [Options.OnMessage].
//
// It is not a [conn.Conn]: on one of those an error means dead.
type Conn struct {
	dialer   Dialer
	life     lifetime // ends when Close or Shutdown says so
	state    state
	receiver receiver
	sender   sender
	kicks    xsync.Flag
	stalls   int           // sessions in a row without data; the supervisor's
	done     chan struct{} // closed when nothing is left
	err      error         // why it ended; to be read after done
}

// Dialer opens one connection. [dialer.WebSocket] is one.
//
// [dialer.WebSocket]:
// https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
type Dialer interface {
	// Dial returns a new connection. It must obey ctx, which carries a
	// [backoff.Try]; a late connection is closed. A second call may run beside one
	// that takes long: see [RunOptions.OneConnection]. A Dialer may have more methods:
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
	options, err := o.withDefaults(d)
	if err != nil {
		return nil, err
	}
	c := &Conn{dialer: d, done: make(chan struct{})}
	c.life.o = options
	c.state.start()
	c.receiver = newReceiver(&c.life)
	c.sender.life, c.sender.state = &c.life, &c.state
	if options.Outbox.OnReceipt != nil || options.WhenDown != WhenDownFail {
		c.sender.outbox = newOutbox(&c.life, &c.state)
	}
	go c.supervise() // Done says when it has ended
	return c, nil
}

// Close cuts the connection for good and returns at once, from wherever it is
// called: nothing more is read or written from then on. It starts the end; Done
// says when nothing is left, after callbacks that run have returned and dials and
// callbacks that ignore their context, which [Trace.Overdue] reports, too. Close
// returns nil, and may be called more than once.
func (c *Conn) Close() error {
	c.life.closed.Store(true)
	c.life.End()
	return nil
}

// Done returns a channel that is closed when no goroutine, timer or socket of the
// connection is left: after Close, after Shutdown, or when it ended by itself.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil until Done is closed. After Close or Shutdown it is
// [net.ErrClosed]; otherwise it is an *EndError with the reason why redialing
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
// somebody pressed "retry". During a dial it begins another beside it at once, unless
// there are two or [RunOptions.OneConnection] is set: then it cuts the wait after the
// dial, if that fails. It never cuts what a server told us to wait, nor the wait at
// the gate.
func (c *Conn) Kick() {
	s := c.Status()
	if s.State == StateWaiting || s.State == StateConnecting && !s.AtGate {
		c.kicks.Raise()
	}
}

// Redial gives a session up, with cause, and dials anew as after any loss: what
// came by it was wrong in a way that only the application can see. The peer is told
// by a close frame, or what its protocol has instead, and is given
// Options.CloseTimeout to answer: with code 1000, or the one that cause has if it
// has a method CloseCode() int, as a [conn.CloseError] does, and a close frame may
// carry that code. Redial returns at once.
// If the session is not the present one any more, nothing happens.
func (c *Conn) Redial(session uint64, cause error) {
	if cause == nil {
		cause = errors.New("redial asked for")
	}
	if l := c.state.link.Load(); l != nil && l.session == session {
		l.part(cause, c.life.o.CloseTimeout)
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

// supervise is the supervisor goroutine. It ends the Conn also if a callback ends
// this goroutine.
func (c *Conn) supervise() {
	xsync.Guard(func() { supervise(&c.life.Context, &c.life.o.Run, owner[*link](c)) }, func() {
		go c.abandon() // closes done
	})
	c.finish()
}

// abandon is the end of a Conn whose supervisor was ended by a callback. It has a
// goroutine of its own, so that a callback that has panicked ends the program.
func (c *Conn) abandon() {
	err := fmt.Errorf("%s: %w", c.serving(), errNotReturned)
	c.life.calling.leave()
	if l := c.state.link.Load(); l != nil {
		l.cut(err)
		c.release(l, err)
	}
	call(c.life.trace().End, End{Name: c.life.o.Name, Err: c.ended(err)})
	c.finish()
}

// finish lets go of what is left, and says so.
func (c *Conn) finish() {
	c.sender.outbox.end()
	close(c.done)
}

func (c *Conn) dial(ctx context.Context) (*link, error) {
	c.life.counts.dials.Add(1)
	opened, err := c.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", c.dialer))
	}
	l := &link{conn: opened}
	l.late, _ = opened.(conn.BufferReader)
	return l, nil
}

// serve is one session: opening, ready, lost.
func (c *Conn) serve(ctx context.Context, l *link, s *Session) error {
	c.life.calling.enter(&elsewhere)
	err := c.open(l, s)
	c.life.calling.leave()
	if err == nil {
		c.ready(l, s)
		err = c.receiver.receive(ctx, l)
	}
	return c.lose(l, s, err)
}

// ready lets others write, and begins to watch.
func (c *Conn) ready(l *link, s *Session) {
	c.receiver.ready(l)
	c.sender.attach(l)
	c.state.enter(StateReady, func(st *Status) { st.Err, st.Verdict = nil, backoff.ClassOK })
	c.kicks.Lower()
	s.Ready()
	l.stall = newStall(&c.life, l, c.stalls)
	l.liveness.start(&c.life, l)
	l.stall.start()
}

// lose cleans up after a session, and puts the loss into the stream.
func (c *Conn) lose(l *link, s *Session, err error) error {
	l.parted()
	l.cut(err)
	c.release(l, err)
	c.kicks.Lower() // meant for an outage that was over
	c.state.enter(StateWaiting, func(st *Status) { st.Err = err })
	c.sender.detach(l, err)
	_, ready := s.readyAt()
	if !ready {
		c.failed()
	}
	if ready || l.delivered {
		c.life.counts.lost.Add(1)
		c.receiver.seam(&Seam{Session: l.session, Cause: err, Lost: 1})
	}
	if c.life.leaving.Load() && !c.sender.outbox.draining() {
		return backoff.Permanent(err)
	}
	return err
}

// release stops the timers of l, which is cut because of err.
func (c *Conn) release(l *link, err error) {
	c.life.calling.enter(&elsewhere)
	l.liveness.stop()
	c.stalls = l.stall.stop(err, c.stalls)
	c.life.calling.leave()
}

// The methods of an owner, besides dial and serve.

func (c *Conn) connecting(atGate bool) {
	if s := c.Status(); s.State != StateConnecting || s.AtGate != atGate {
		c.state.enter(StateConnecting, func(s *Status) { s.AtGate = atGate })
	}
}

func (c *Conn) dialed(l *link, s *Session) {
	l.session = s.Number
	c.receiver.open()
	c.life.counts.sessions.Store(s.Number)
	c.state.link.Store(l)
	c.state.enter(StateOpening, func(st *Status) { st.Session = s.Number })
}

func (c *Conn) troubled(atGate bool, try int, err error, verdict backoff.Class) {
	c.state.edit(func(s *Status) { s.AtGate, s.Try, s.Err, s.Verdict = atGate, try, err, verdict })
}

func (c *Conn) failed() { c.life.counts.failures.Add(1) }

func (c *Conn) lost(l *link, _ error) bool { return l.broken }

func (c *Conn) waiting(w Wait, verdict backoff.Class) {
	c.state.enter(StateWaiting, func(s *Status) {
		s.Try, s.Err, s.Verdict = w.Try, w.Cause, verdict
		s.Next = time.Now().Add(w.Verdict.RetryAfter + w.Drawn)
	})
}

func (c *Conn) ended(err error) error {
	if c.life.Ended() || c.life.leaving.Load() {
		err = net.ErrClosed
	} else {
		err = &EndError{Err: err}
	}
	c.err = err
	c.state.enter(StateClosed, func(s *Status) { s.Err = err })
	return err
}

// serving returns the name of the callback that the supervisor's goroutine is in,
// empty if it waits for another one.
func (c *Conn) serving() string {
	if name := c.life.calling.name.Load(); name != nil {
		return *name
	}
	if l := c.state.link.Load(); l != nil && l.turn.Load()&turnMask == handling {
		return "OnMessage"
	}
	return "a hook"
}

func (c *Conn) limit(t backoff.Try) time.Duration {
	d, ok := c.dialer.(interface {
		Patience(backoff.Try) time.Duration
	})
	if ok {
		return d.Patience(t)
	}
	return dialLimit(t)
}

func (c *Conn) kick() <-chan struct{} { return c.kicks.Up() }

func (c *Conn) took(bool) bool {
	c.kicks.Lower()
	return true
}

func (c *Conn) forgetKicks() { c.kicks.Lower() }
