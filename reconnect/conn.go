package reconnect

import (
	"cmp"
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Conn is a connection that is kept open: one goroutine, the supervisor, dials and reads it, and dials
// again, until it is closed. Any goroutine may call its methods. For callbacks that wait see
// [Options.OnMessage].
type Conn struct {
	dialer    Dialer
	onSession func(ctx context.Context, o *Opening) error
	layers    layers
	life      lifetime // ends when Close or Shutdown says so
	state     state
	receiver  receiver
	sender    sender
	kicks     xsync.Flag
	done      xsync.Flag // is raised when nothing is left
	first     keeper     // owns the first supervisor
	hint      hints      // for the next dial

	rotations   rotationPace
	replacement atomic.Pointer[replacement] // of the present session, due or under way; nil: none
}

// Dialer opens one connection, such as a [dialer.WebSocket]. It may have more methods:
//
//   - Validate() error: New calls it, and returns its error.
//   - Host() string: the default of [RunOptions.Host].
//   - Endpoint() string: the result of [Conn.Endpoint]. It must hold no secret.
//   - DialTimeout(backoff.Attempt) time.Duration: how long one dial may take. Default, and 0 or less:
//     the sum of the Attempt's limits.
//
// [dialer.WebSocket]: https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
type Dialer interface {
	// Dial returns a new connection, which the Conn closes. It must return when ctx ends; a
	// connection that it returns later is closed. ctx carries a [backoff.Attempt]. Dial runs in a
	// goroutine of its own. A second call may run beside a long one: see [RunOptions.OneConnection].
	Dial(ctx context.Context) (conn.Conn, error)
}

// DialFunc is a function as a [Dialer].
type DialFunc func(ctx context.Context) (conn.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// New starts to keep a connection open, and returns at once. The first dial begins without a wait.
// [Conn.AwaitReady] waits for the first session; until then Write fails, unless [Options].WhenDown lets it wait. The
// caller must call Close or Shutdown in the end. d must not be nil; o may be nil. The error names the option that is
// wrong. Functions in o may be called before New returns: a function that needs the Conn gets it from a [Layer].Start.
func New(d Dialer, o *Options) (*Conn, error) {
	if v := reflect.ValueOf(d); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return nil, errors.New("reconnect: New needs a Dialer")
	}
	if v, ok := d.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	if o == nil {
		o = new(Options)
	}
	settings, err := o.withDefaults(d)
	if err != nil {
		return nil, err
	}
	c := &Conn{dialer: d, onSession: o.OnSession, layers: slices.Clone(o.Layers)}
	c.life.o = settings
	c.life.watch = watch.Shared{
		Liveness: o.Liveness.options(), Stall: o.Stall.options(),
		KeepAlive: (*watch.KeepAliveOptions)(&settings.KeepAlive), Report: &c.life.hooks,
	}
	c.life.hooks.name = o.Run.Name
	c.life.hooks.Store(settings.Run.Trace)
	c.first.c = c
	c.first.calls.Init(&c.life.hooks, c.life.watch.SlowAfter())
	c.state.start(&c.life, &c.first.seat)
	c.receiver.start(&c.life, c.layers.taker())
	c.sender.life, c.sender.state = &c.life, &c.state
	if started, err := c.layers.start(c); err != nil {
		c.first.giveUp(started, err)
		return nil, err
	}
	go c.first.supervise(&c.life.Context) // Done says when it has ended
	return c, nil
}

// Endpoint returns where the Conn dials, for a page or a log: the result of the Dialer's method
// Endpoint, or else of its method Host, or "" if it has neither. For a [dialer.WebSocket] it is the
// scheme, host and path of its URL. Prepare and a server's advice do not change it.
//
// [dialer.WebSocket]: https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
func (c *Conn) Endpoint() string {
	switch d := c.dialer.(type) {
	case interface{ Endpoint() string }:
		return d.Endpoint()
	case interface{ Host() string }:
		return d.Host()
	}
	return ""
}

// Close cuts the connection for good, starts the end and returns at once, from wherever it is called.
// Nothing is read or written from then on. Done is closed when nothing is left: after the callbacks
// and the dials under way have returned. [Trace.Overdue] reports those that ignore the end of their
// context. Close returns nil, and may be called more than once.
func (c *Conn) Close() error {
	c.life.Closed.Store(true)
	c.life.End()
	c.life.Changed.Broadcast() // for a Read that waits since a Shutdown
	return nil
}

// Done returns a channel that is closed when no goroutine, timer or socket of the Conn is
// left: after Close, after Shutdown, or after the Conn has ended by itself.
func (c *Conn) Done() <-chan struct{} { return c.done.Up() }

// Err returns nil until Done is closed, then [net.ErrClosed] after Close or Shutdown. If the Conn has
// ended by itself, Err returns an [*EndError], which says why, and is [net.ErrClosed] as well.
func (c *Conn) Err() error {
	if !c.done.IsUp() {
		return nil
	}
	return c.state.newest().Err
}

// Kick cuts the present wait short, if there is one. Call it when the network is back, or when a
// user presses "retry". During a dial it begins another dial beside it at once. If there are two
// already, or with [RunOptions.OneConnection], it cuts the wait after the dial instead, if the dial
// fails. During a session it does nothing. It never cuts the time that a server told us to wait, nor
// the wait at the gate.
func (c *Conn) Kick() {
	c.state.mu.Lock() // because the kicks of an outage are forgotten where the next session begins: see keeper.dialed
	defer c.state.mu.Unlock()
	s := c.state.newest()
	if s.State == StateWaiting || s.State == StateConnecting && !s.AtGate {
		c.kicks.Raise()
	}
}

// Redial ends a session because of cause, and the supervisor dials again as after any loss. It is for a
// session that only the application knows to be broken, such as a feed with a gap. It returns at once,
// and does nothing if session is not the present one. A nil cause stands for no particular reason.
//
// The peer gets a close frame, or the equivalent in its protocol, and has Options.CloseTimeout to
// answer, but 1 s at most. If the peer is silent (see CloseTimeout) the connection is cut at once. The
// code of the frame is the result of cause's method CloseCode() int, such as that of a
// [conn.CloseError], if a close frame may carry that code, and otherwise 1000.
func (c *Conn) Redial(session uint64, cause error) {
	cause = cmp.Or(cause, errors.New("redial asked for"))
	if l := c.state.link.Load(); l != nil && l.Session == session {
		limit := min(c.life.o.CloseTimeout, farewell)
		if l.liveness.Silent() {
			limit = -1
		}
		l.Part(cause, backoff.ReasonRedial, limit)
	}
}

// InCallback reports whether ctx is, or comes from, the context that c has given to OnSession,
// Layer.Open, OnMessage or OnSeam. While one of these runs c receives nothing else, so that a function
// which would wait for an answer should return an error.
func (c *Conn) InCallback(ctx context.Context) bool {
	life, _ := ctx.Value(lifeKey{}).(*link.Life)
	return life == &c.life.Life
}

// Check asks now whether the ready session is alive. Call it when the network of the machine has
// changed: see package netwatch. If the machine has lost the local address of the connection, the
// connection is cut at once. Otherwise the peer is probed, and the connection is cut, with [ErrSilent],
// if nothing comes within 5 s or a third of Liveness.Limit, whichever is less. There is no verdict
// while the application does not read. Check returns at once, and does nothing while no session is
// ready. While [Trace.SessionReady] runs, Check takes effect when that hook has returned.
func (c *Conn) Check() {
	if l := c.readySession(); l != nil && !c.life.Leaving.Load() {
		l.liveness.Check()
	}
}

// readySession returns the session by which messages are sent, nil if there is none. It waits while
// another session comes to lead: see state.succeed.
func (c *Conn) readySession() *served {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if l := c.state.link.Load(); l != nil && &l.Link == c.sender.ready() {
		return l
	}
	return nil
}

// EndError reports why a Conn ended by itself. It is [net.ErrClosed].
type EndError struct {
	Err error // the last error, whose verdict was ClassStop; or one that is [backoff.ErrGaveUp]
}

func (e *EndError) Error() string { return "ended for good: " + e.Err.Error() }

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Is reports whether target is [net.ErrClosed].
func (e *EndError) Is(target error) bool { return target == net.ErrClosed }

// lifetime is what all parts of one Conn share: the options, whether it is to end, and the
// counts. It is a context that ends when the Conn is to end.
type lifetime struct {
	link.Life
	o       settings
	watch   watch.Shared
	failure atomic.Pointer[error] // a callback has ended a supervisor's goroutine
	hooks   hooks
	counts  counts
}

// lifeKey is the key of the life in the context of a callback.
type lifeKey struct{}

// Value returns the life for its key.
func (l *lifetime) Value(key any) any {
	if key == (lifeKey{}) {
		return &l.Life
	}
	return nil
}

// fail ends the Conn because of err.
func (l *lifetime) fail(err error) {
	l.failure.CompareAndSwap(nil, &err)
	l.End()
}

// Stats are counts since [New], and how much waits now.
type Stats struct {
	Dials         uint64 // dials that have begun
	Failures      uint64 // dials, and sessions, that have ended before a session was ready
	Sessions      uint64 // connections that were dialed
	Lost          uint64 // sessions that have ended after they were ready or had delivered something
	Received      uint64 // messages that were received
	ReceivedBytes uint64 // bytes of their data
	Written       uint64 // messages that were written
	WrittenBytes  uint64 // bytes of their data
	Dropped       uint64 // messages whose fate is FateDropped, those included that Write or Send refused
	Unknown       uint64 // messages whose fate is FateUnknown
	Probes        uint64 // probes of a silent peer

	KeepAliveMessages uint64 // messages of KeepAlive that were written; Written counts them too
	Rotations         uint64 // sessions that were replaced: see Rotation
	RotationsFailed   uint64 // sessions that were to be replaced, and were not, such as because they were lost first

	Queued      uint64 // messages of Write and Send that have no fate yet
	QueuedBytes uint64 // bytes of the data that Send has queued
	Unread      uint64 // messages in the inbox
	UnreadBytes uint64 // bytes of their data

	// QueuedAge is how long ago the oldest message that waits to be written was given to Write or Send.
	// A message that is being written does not count.
	QueuedAge time.Duration

	// Silence is how long ago the ready session received its last byte, or its last message if the
	// connection is no [conn.Transport]. It is 0 without a ready session, and for a connection that can
	// neither be asked nor probed.
	Silence time.Duration
}

// Stats returns the counts. Each is exact, but they are not taken at one instant.
func (c *Conn) Stats() Stats {
	n, shared := &c.life.counts, &c.life.Counts
	s := Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: shared.Sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Messages.Load(), ReceivedBytes: n.in.Bytes.Load(),
		Written: shared.Written.Load(), WrittenBytes: shared.WrittenBytes.Load(), Probes: shared.Probes.Load(),
		Dropped: shared.Dropped.Load(), Unknown: shared.Unknown.Load(),
		KeepAliveMessages: shared.KeepAliveMessages.Load(),
	}
	s.Rotations, s.RotationsFailed = uint64(n.rotations.Load()), uint64(n.rotationsFailed.Load())
	s.Queued, s.QueuedBytes, s.QueuedAge = c.sender.outbox().Depth()
	s.Unread, s.UnreadBytes = c.receiver.inbox.Depth()
	if l := c.state.link.Load(); l != nil && c.State() == StateReady {
		s.Silence = l.liveness.Silence()
	}
	return s
}

// counts are those that no link needs.
type counts struct {
	dials, failures, lost      atomic.Uint64
	rotations, rotationsFailed atomic.Uint32
	in                         inbox.Counts // written by the goroutine that reads the connection
}
