package watch

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Calls times the calls of the user's functions in one goroutine. A call that takes longer than the limit is reported
// by SlowHandler, once, and then by Overdue each time that its duration has doubled. Once End was called, the call in
// progress should return, and Overdue reports it as [Overdue] says.
//
// The timer is armed by the first call, and disarmed when it finds no call in progress, so that many short calls cost
// one timer for each limit and an idle connection has none.
type Calls struct {
	report Report
	limit  time.Duration
	name   atomic.Pointer[string]    // the function in progress, or nil; Elsewhere and Serve are not timed
	link   atomic.Pointer[link.Link] // whose turn says that OnMessage or Layer.Receive is in progress; may be nil
	call   atomic.Uint32             // number of the call in progress, or of the last

	armed   atomic.Bool
	stopped bool // guarded by mu
	mu      sync.Mutex
	clock   *callClock // nil unless armed; guarded by mu
}

// callClock is what Calls has while it is armed. Its fields are guarded by Calls.mu.
type callClock struct {
	timer    xsync.Timer  // calls tick
	call     uint64       // the call that the last tick has seen
	since    link.Instant // when that tick, or arm, has seen it first
	reported time.Duration
	ended    bool // since is the time of End
}

// The names of functions that are not timed.
var (
	Elsewhere = ""      // a function in another goroutine, which is timed there
	Serve     = "serve" // the session of a Run, which may last; timed only after End
)

var onMessage, layerReceive = "OnMessage", "Layer.Receive"

// SlowAfter is how long a function may take if there is no limit on silence.
const SlowAfter = 5 * time.Second

// OverdueAfter is how long a function may take when it should return, until Overdue reports it.
const OverdueAfter = 5 * time.Second

// Init sets where the events go, and the limit, before any other call.
func (c *Calls) Init(r Report, limit time.Duration) { c.report, c.limit = r, limit }

// Follow lets the turn of l say that OnMessage or Layer.Receive is in progress. After each change of the turn to
// Handling or Receiving the caller calls Arm.
func (c *Calls) Follow(l *link.Link) { c.link.Store(l) }

// Enter notes that the function name begins, or one of the library's own if name is nil. It returns what was
// in progress until now, for Leave.
func (c *Calls) Enter(name *string) (outer *string) {
	outer = c.name.Load()
	c.call.Add(1)
	c.name.Store(name)
	if name != nil && name != &Elsewhere && name != &Serve && !c.armed.Load() {
		c.Arm()
	}
	return outer
}

// Leave notes that the function of the last Enter has returned.
func (c *Calls) Leave(outer *string) { c.name.Store(outer) }

// Name returns the name of the function in progress, or "" if there is none in this goroutine.
func (c *Calls) Name() string {
	if what, _ := c.running(); what != nil {
		return *what
	}
	return ""
}

// running returns the function in progress, or nil, and what tells this call from others.
func (c *Calls) running() (function *string, call uint64) {
	if name := c.name.Load(); name != nil {
		return name, 1<<63 | uint64(c.call.Load())
	}
	if l := c.link.Load(); l != nil {
		turn := l.Turn()
		switch turn.Does() {
		case link.Handling:
			return &onMessage, uint64(turn)
		case link.Receiving:
			return &layerReceive, uint64(turn)
		}
	}
	return nil, 0
}

// timed is running for the functions that are timed, now that the clock is k.
func (c *Calls) timed(k *callClock) (function *string, call uint64) {
	function, call = c.running()
	if function == &Elsewhere || function == &Serve && !(k.ended && k.call == call) {
		return nil, 0
	}
	return function, call
}

// Arm sets the timer, unless it is set.
func (c *Calls) Arm() {
	if c.armed.Load() || c.armed.Swap(true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.clock = &callClock{since: link.Now()}
	_, c.clock.call = c.running()
	c.clock.timer.Set(c.limit, c.tick)
}

// End says that the call in progress should return, because the session or the Conn ends.
func (c *Calls) End() {
	if name, _ := c.running(); name == nil || name == &Elsewhere {
		return
	}
	c.Arm()
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.clock; k != nil {
		_, k.call = c.running()
		k.since, k.reported, k.ended = link.Now(), 0, true
		k.timer.Set(OverdueAfter, c.tick)
	}
}

// tick is the timer's callback: it looks which call is in progress, reports one that is slow, and sets the timer again.
func (c *Calls) tick() {
	function, since, overdue := c.look()
	if function == "" {
		return
	}
	name := "Trace.Overdue"
	if !overdue {
		name = "Trace.SlowHandler"
	}
	l := c.link.Load()
	xsync.Guard(func() {
		switch {
		case overdue:
			c.report.Overdue(function, since)
		case l != nil:
			c.report.SlowHandler(l.Session, function, since)
		default:
			c.report.SlowHandler(0, function, since)
		}
	}, func() {
		if l != nil {
			l.Cut(fmt.Errorf("%s: %w", name, xsync.ErrNotReturned))
		}
	})
}

// look returns the function that is to be reported now, or "", and sets the timer for the next look.
func (c *Calls) look() (function string, since time.Duration, overdue bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.clock
	if k == nil || c.stopped {
		return "", 0, false
	}
	what, call := c.timed(k)
	if what == nil {
		c.armed.Store(false)
		what, call = c.timed(k)
		if what == nil || c.armed.Swap(true) { // else a call has begun, and found the timer armed
			c.clock = nil
			return "", 0, false
		}
	}
	if call != k.call {
		k.call, k.since, k.reported, k.ended = call, link.Now(), 0, false
	}
	first := c.limit
	if k.ended {
		first = OverdueAfter
	}
	since = link.Now() - k.since
	if since >= max(first, 2*k.reported) {
		function, overdue = *what, k.ended || k.reported > 0
		k.reported = since
	}
	next := 2*k.reported - since
	if k.reported == 0 {
		next = first - since
	}
	k.timer.Set(min(next, first), c.tick) // first, because another call may begin meanwhile
	return function, since, overdue
}

// Stop stops the timer, and waits for its callback. No call begins afterwards.
func (c *Calls) Stop() {
	c.mu.Lock()
	c.stopped = true
	k := c.clock
	c.mu.Unlock()
	if k != nil {
		StopTimer(c.report, &k.timer, "Trace.Overdue")
	}
}

// Time calls f, which is the user's function name, and times it as Calls does. It is for a goroutine that
// calls the user now and then. A function of a session has its link, others nil.
func Time(r Report, limit time.Duration, name string, l *link.Link, f func()) {
	c := &Calls{report: r, limit: limit}
	c.link.Store(l)
	c.Enter(&name)
	defer c.Stop()
	f()
}

// Time is [Time] for the functions of a Conn. If f ends the goroutine, which would watch the session, Time cuts l,
// unless it is nil.
func (s *Shared) Time(name string, l *link.Link, f func()) {
	xsync.Guard(func() { Time(s.Report, s.SlowAfter(), name, l, f) }, func() {
		if l != nil {
			l.Cut(fmt.Errorf("%s: %w", name, xsync.ErrNotReturned))
		}
	})
}

// SlowAfter returns how long a function of the user's may take until SlowHandler reports it.
func (s *Shared) SlowAfter() time.Duration {
	if s.Liveness.Limit != 0 {
		return s.Liveness.probeAfter()
	}
	return SlowAfter
}

// StopTimer stops a timer, and waits for its callback, in which function may run. The hooks of r do not run in the
// goroutine of the caller, which has more to do even if they end it.
func StopTimer(r Report, t *xsync.Timer, function string) {
	t.Stop()
	if t.Calling() {
		<-xsync.Go(func() { r.Await(xsync.Go(t.Wait).Done, function) }).Done
	}
	t.Wait()
}
