package reconnect

import (
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// lifetime is what all parts of one Conn share: the options, whether it is to end, and the
// counts. It is a context that ends when the Conn is to end.
type lifetime struct {
	xsync.Context
	o        settings
	closed   atomic.Bool           // Close was called: nothing more is read
	leaving  atomic.Bool           // Shutdown was called: nothing more is accepted to be sent
	stalls   atomic.Int32          // sessions in a row without data
	patience atomic.Uint32         // with a peer that is silent
	bridging atomic.Bool           // a session was closed so that another can take its place: messages wait, whatever WhenDown says
	failure  atomic.Pointer[error] // a callback has ended a supervisor's goroutine
	hooks    hooks
	counts   counts
}

// lifetimeKey is the key of the lifetime in the context of a callback.
type lifetimeKey struct{}

// Value returns l for its key.
func (l *lifetime) Value(key any) any {
	if key == (lifetimeKey{}) {
		return l
	}
	return nil
}

func (l *lifetime) layers() layers { return l.o.more.Layers }

// fail ends the Conn because of err.
func (l *lifetime) fail(err error) {
	l.failure.CompareAndSwap(nil, &err)
	l.End()
}

// trace returns the hooks as they are now.
func (l *lifetime) trace() *Trace { return l.hooks.Load() }

// waitFor waits for done, and reports that function is overdue if that takes long.
func (l *lifetime) waitFor(done <-chan struct{}, function string) {
	l.hooks.waitFor(done, l.o.Name, func() string { return function })
}

// waitForTimer waits for the callback of a timer that was stopped, as waitFor does: function is
// what may run in it.
func (l *lifetime) waitForTimer(t *xsync.Timer, function string) {
	if t.Calling() {
		l.waitFor(xsync.Go(t.Wait).Done(), function)
	}
	t.Wait()
}

// callback is the name of the user's function that runs in the supervisor's goroutine. For
// OnMessage see link.turn.
type callback struct{ name atomic.Pointer[string] }

// These are the names of such functions. elsewhere means that the supervisor waits for one
// in another goroutine.
var onSeam, keep, elsewhere = "OnSeam", "Keep", ""

func (c *callback) enter(name *string) { c.name.Store(name) }
func (c *callback) leave()             { c.name.Store(nil) }

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

	IdleMessages    uint64 // messages of Idle that were written; Written counts them too
	Rotations       uint64 // sessions that were replaced: see Rotation
	RotationsFailed uint64 // sessions that were to be replaced, and were not, such as because they were lost first

	Queued      uint64 // messages of Write and Send that have no fate yet
	QueuedBytes uint64 // bytes of the data that Send has queued
	Unread      uint64 // messages in the inbox
	UnreadBytes uint64 // bytes of their data

	// QueuedAge is how long ago the oldest message that waits to be written was given to Write
	// or Send. One that is being written does not count.
	QueuedAge time.Duration

	// Silence is how long ago the session that is ready received its last byte. For a
	// connection that is no [conn.Idler] it is its last message. It is 0 without such a
	// session, and for a connection that can neither be asked nor probed.
	Silence time.Duration
}

// Stats returns the counts. Each is exact, but they are not taken at one instant.
func (c *Conn) Stats() Stats {
	n := &c.life.counts
	s := Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: n.sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Load(), ReceivedBytes: n.inBytes.Load(),
		Written: n.out.Load(), WrittenBytes: n.outBytes.Load(), Probes: n.probes.Load(),
		Dropped: n.dropped.Load(), Unknown: n.unknown.Load(),
	}
	s.IdleMessages = n.idle.Load()
	s.Rotations, s.RotationsFailed = uint64(n.rotations.Load()), uint64(n.rotationsFailed.Load())
	s.Queued, s.QueuedBytes, s.QueuedAge = c.sender.outbox().depth()
	s.Unread, s.UnreadBytes = c.receiver.inbox.depth()
	if l := c.state.link.Load(); l != nil && c.State() == StateReady {
		s.Silence = l.liveness.heardAgo()
	}
	return s
}

type counts struct {
	dials, failures, sessions, lost, probes atomic.Uint64
	idle                                    atomic.Uint64
	rotations, rotationsFailed              atomic.Uint32
	in, inBytes                             atomic.Uint64 // written by the goroutine that reads the connection
	out, outBytes                           atomic.Uint64 // written by the goroutine that holds the write slot
	dropped, unknown                        atomic.Uint64
}

func (n *counts) received(m conn.Message) {
	n.in.Add(1)
	n.inBytes.Add(uint64(len(m.Data)))
}

func (n *counts) written(m conn.Message) {
	n.out.Add(1)
	n.outBytes.Add(uint64(len(m.Data)))
}

func (n *counts) settled(f Fate) {
	switch f {
	case FateDropped:
		n.dropped.Add(1)
	case FateUnknown:
		n.unknown.Add(1)
	}
}
