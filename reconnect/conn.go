package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Conn is a connection that is kept open: one goroutine, the supervisor, dials, reads, and redials until
// it is closed. Its methods are safe for concurrent use.
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
//   - Validate() error: New returns its error.
//   - Host() string: the default of [RunOptions.Host].
//   - Endpoint() string: the result of [Conn.Endpoint]. It must hold no secret.
//   - DialTimeout(backoff.Attempt) time.Duration: the timeout of one dial. Default, and 0 or less: the
//     sum of the Attempt's limits.
//
// [dialer.WebSocket]: https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
type Dialer interface {
	// Dial returns a new connection, which the Conn closes. It must return when ctx is done; a
	// connection returned later is closed. ctx carries a [backoff.Attempt]. Dial runs in its own
	// goroutine, maybe concurrently with another call: see [RunOptions.OneConnection].
	Dial(ctx context.Context) (conn.Conn, error)
}

// DialFunc is a function that implements [Dialer].
type DialFunc func(ctx context.Context) (conn.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// New starts to keep a connection open, and returns without waiting. The first dial begins immediately;
// [Conn.AwaitReady] waits for the first session. The caller must eventually call Close or Shutdown. d
// must not be nil; o may be nil. The error names the invalid option. Functions in o may be called before
// New returns: one that needs the Conn gets it from a [Layer].Start.
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
	var take func(m Message, but int) bool // or nil if no layer has a Receive
	if slices.ContainsFunc(c.layers, func(l *Layer) bool { return l.Receive != nil }) {
		take = c.layers.take
	}
	c.receiver.start(&c.life, take)
	c.sender.life, c.sender.state = &c.life, &c.state
	for i, l := range c.layers {
		if l.Start == nil {
			continue
		}
		if err := l.Start(c); err != nil {
			err = fmt.Errorf("reconnect: Options.Layers[%d]: %w", i, err)
			c.first.giveUp(c.layers[:i], err) // those that have started
			return nil, err
		}
	}
	go c.first.supervise(&c.life.Context) // Done says when it has ended
	return c, nil
}

// Endpoint returns where the Conn dials: the result of the Dialer's method Endpoint, or else of its
// method Host, or "" if it has neither. Prepare and a server's advice do not change it.
func (c *Conn) Endpoint() string {
	switch d := c.dialer.(type) {
	case interface{ Endpoint() string }:
		return d.Endpoint()
	case interface{ Host() string }:
		return d.Host()
	}
	return ""
}

// Close drops the connection for good and returns nil without waiting. Nothing is read or written from
// then on. Close may be called more than once.
func (c *Conn) Close() error {
	c.life.Closed.Store(true)
	c.life.End()
	c.life.Changed.Broadcast() // for a Read that waits since a Shutdown
	return nil
}

// Done returns a channel that is closed once the Conn has ended and none of its goroutines, timers and
// sockets is left.
func (c *Conn) Done() <-chan struct{} { return c.done.Up() }

// Err returns nil until Done is closed, then [net.ErrClosed], or an [*EndError] if the Conn has ended by
// itself.
func (c *Conn) Err() error {
	if !c.done.IsUp() {
		return nil
	}
	return c.state.newest().Err
}

// Kick cuts the current wait short. Call it when the network is back or a user presses "retry". During a
// dial it begins a concurrent one. If there are two already, or with [RunOptions.OneConnection], it cuts
// the wait after the dial short if the dial fails. During a session it does nothing. It never shortens a
// wait that a server requested, nor the wait at the gate.
func (c *Conn) Kick() {
	c.state.mu.Lock() // because the kicks of an outage are forgotten where the next session begins: see keeper.dialed
	defer c.state.mu.Unlock()
	s := c.state.newest()
	if s.State == StateWaiting || s.State == StateConnecting && !s.AtGate {
		c.kicks.Raise()
	}
}

// Redial ends a session because of cause, which may be nil, and returns immediately. The supervisor
// dials again as after any loss. Use it when only the application can tell that the session is broken.
// It does nothing if session is not the current one.
//
// The peer gets a close frame, or the equivalent in its protocol, and has time to respond as
// Options.CloseTimeout says. The code of the frame is the result of cause's method CloseCode() int, if a
// close frame may carry that code, and otherwise 1000.
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

// InCallback reports whether ctx is, or derives from, the context that c has passed to OnSession,
// Layer.Open, OnMessage or OnSeam. While one of these runs c receives nothing else, so the caller must
// not wait for a response.
func (c *Conn) InCallback(ctx context.Context) bool {
	life, _ := ctx.Value(lifeKey{}).(*link.Life)
	return life == &c.life.Life
}

// Check begins to test whether the ready session is alive. Call it when the network of the machine has
// changed: see package netwatch. A connection whose local address the machine has lost is dropped
// immediately. Otherwise the peer is probed, and the connection is dropped, with [ErrSilent], if nothing
// arrives within 5 s or a third of Liveness.Limit, whichever is less, unless the application does not
// read. Check does nothing while no session is ready. While [Trace.SessionReady] runs, Check takes
// effect when that hook has returned.
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
	if l := c.state.link.Load(); l != nil && &l.Link == c.sender.readyLink() {
		return l
	}
	return nil
}

// EndError reports why a Conn ended by itself. It is [net.ErrClosed].
type EndError struct {
	Err error // the last error, whose verdict was ClassStop; or one that is [backoff.ErrGaveUp]
}

func (e *EndError) Error() string { return "ended for good: " + e.Err.Error() }

func (e *EndError) Unwrap() error { return e.Err }

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

// Stats are counts since [New], and current amounts.
type Stats struct {
	Dials         uint64
	Failures      uint64 // dials and sessions that ended before a session was ready
	Sessions      uint64
	Lost          uint64 // sessions that ended after they were ready or had delivered something
	Received      uint64
	ReceivedBytes uint64 // message data
	Written       uint64
	WrittenBytes  uint64 // message data
	Dropped       uint64 // messages with FateDropped, including those that Write or Send rejected
	Unknown       uint64 // messages with FateUnknown
	Probes        uint64 // probes of a silent peer

	KeepAliveMessages uint64 // also counted in Written
	Rotations         uint64 // replaced sessions
	RotationsFailed   uint64 // rotations that failed, such as because the session was lost first

	Queued      uint64 // messages of Write and Send without a fate yet
	QueuedBytes uint64 // message data queued by Send
	Unread      uint64 // messages in the inbox
	UnreadBytes uint64 // message data

	// QueuedAge is the age of the oldest message of Write or Send that waits to be written.
	QueuedAge time.Duration

	// Silence is the time since the ready session received its last byte, or its last message if the
	// connection is no [conn.Transport]. It is 0 without a ready session, and for a connection that can
	// be neither queried nor probed.
	Silence time.Duration

	// RoundTrip is how long the peer took to answer the last ping of [Options].Liveness, or 0. Only a silent
	// peer is pinged, so the ping may be old.
	RoundTrip time.Duration
}

// Stats returns the counts. Each is exact, but they are not a consistent snapshot.
func (c *Conn) Stats() Stats {
	n, shared := &c.life.counts, &c.life.Counts
	s := Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: shared.Sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Messages.Load(), ReceivedBytes: n.in.Bytes.Load(),
		Written: shared.Written.Load(), WrittenBytes: shared.WrittenBytes.Load(), Probes: shared.Probes.Load(),
		Dropped: shared.Dropped.Load(), Unknown: shared.Unknown.Load(),
		KeepAliveMessages: shared.KeepAliveMessages.Load(), RoundTrip: time.Duration(shared.RoundTrip.Load()),
	}
	s.Rotations, s.RotationsFailed = uint64(n.rotations.Load()), uint64(n.rotationsFailed.Load())
	s.Queued, s.QueuedBytes, s.QueuedAge = c.sender.outbox.Load().Depth()
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
