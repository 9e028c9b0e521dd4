package reconnect

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Trace has hooks that observe a [Run] or a [Conn]. Each may be nil. Unless stated otherwise, hooks run
// in the supervisor's goroutine, in the order of the events; during a [Rotation], hooks of two sessions
// may run concurrently. Connections may share a Trace if its functions are safe for concurrent use. Each
// event has the [RunOptions].Name of its connection. See Callbacks in the package documentation.
type Trace struct {
	// GateStart reports that a wait at the gate begins.
	GateStart func(GateStart)

	GateDone func(GateDone)

	// DialStart reports that a dial begins, in another goroutine.
	DialStart func(DialStart)

	// DialHung reports that the handshake of a dial is not answered in time. Another one begins
	// concurrently.
	DialHung func(DialHung)

	DialDone func(DialDone)

	// AddressIgnored reports that a dial did not go to the advised address (Conn only). It runs in the
	// dial's goroutine, before DialDone.
	AddressIgnored func(AddressIgnored)

	SessionStart func(s *Session)

	// SessionReady runs in the goroutine that called [Session.Ready].
	SessionReady func(s *Session)

	SessionDone func(SessionDone)

	// RotateStart reports that a session is to be replaced (Conn only). It runs in its own goroutine.
	RotateStart func(RotateStart)

	// RotateDone reports the end of a rotation, which leaves one session or none. It runs in its own
	// goroutine.
	RotateDone func(RotateDone)

	// WaitStart reports that a wait before the next dial begins, but not while a dial with a hung
	// handshake continues.
	WaitStart func(WaitStart)

	WaitDone func(WaitDone)

	// ConnDone is the last event, except for Overdue.
	ConnDone func(ConnDone)

	// ProbeStart and ProbeDone run in the goroutine of the liveness timer (Conn only).
	ProbeStart func(ProbeStart)

	ProbeDone func(ProbeDone)

	// SlowHandler reports, once for each call, that a callback has taken longer than a third of
	// [Liveness.Limit], or than 5 s for a Run or if Limit is negative. Dial, a Gate's Acquire,
	// OnSession, Layer.Open, Probe and serve are not timed. It runs in a timer's goroutine.
	SlowHandler func(SlowHandler)

	// Overdue reports a callback that SlowHandler has reported and that has still not returned; a
	// function that has not returned 5 s after its context was done; and a full inbox that is not read
	// ("reader"), after [Liveness.Limit] or up to a third of it later; each again whenever that duration
	// has doubled. It runs in a timer's goroutine, or in one that waits for the function.
	Overdue func(Overdue)

	parts []*Trace // those that JoinTraces has joined
}

// JoinTraces returns a Trace whose hooks call the hooks of each of traces in order. A nil Trace has no
// hooks. The traces must not change afterwards.
func JoinTraces(traces ...*Trace) *Trace {
	return &Trace{
		parts:          slices.Clone(traces),
		GateStart:      joined(traces, func(t *Trace) func(GateStart) { return t.GateStart }),
		GateDone:       joined(traces, func(t *Trace) func(GateDone) { return t.GateDone }),
		DialStart:      joined(traces, func(t *Trace) func(DialStart) { return t.DialStart }),
		DialHung:       joined(traces, func(t *Trace) func(DialHung) { return t.DialHung }),
		DialDone:       joined(traces, func(t *Trace) func(DialDone) { return t.DialDone }),
		AddressIgnored: joined(traces, func(t *Trace) func(AddressIgnored) { return t.AddressIgnored }),
		SessionStart:   joined(traces, func(t *Trace) func(*Session) { return t.SessionStart }),
		SessionReady:   joined(traces, func(t *Trace) func(*Session) { return t.SessionReady }),
		SessionDone:    joined(traces, func(t *Trace) func(SessionDone) { return t.SessionDone }),
		RotateStart:    joined(traces, func(t *Trace) func(RotateStart) { return t.RotateStart }),
		RotateDone:     joined(traces, func(t *Trace) func(RotateDone) { return t.RotateDone }),
		WaitStart:      joined(traces, func(t *Trace) func(WaitStart) { return t.WaitStart }),
		WaitDone:       joined(traces, func(t *Trace) func(WaitDone) { return t.WaitDone }),
		ConnDone:       joined(traces, func(t *Trace) func(ConnDone) { return t.ConnDone }),
		ProbeStart:     joined(traces, func(t *Trace) func(ProbeStart) { return t.ProbeStart }),
		ProbeDone:      joined(traces, func(t *Trace) func(ProbeDone) { return t.ProbeDone }),
		SlowHandler:    joined(traces, func(t *Trace) func(SlowHandler) { return t.SlowHandler }),
		Overdue:        joined(traces, func(t *Trace) func(Overdue) { return t.Overdue }),
	}
}

// joined returns a hook that calls the hook of each trace, or nil if none has it.
func joined[E any](traces []*Trace, hook func(*Trace) func(E)) func(E) {
	var hooks []func(E)
	for _, t := range traces {
		if t != nil && hook(t) != nil {
			hooks = append(hooks, hook(t))
		}
	}
	switch len(hooks) {
	case 0:
		return nil
	case 1:
		return hooks[0]
	}
	return func(event E) {
		for _, h := range hooks {
			h(event)
		}
	}
}

// noTrace is the Trace of a connection that has none.
var noTrace = &Trace{}

// call calls a hook, if it is set, in the goroutine that c times.
func call[E any](c *watch.Calls, name *string, hook func(E), event E) {
	if hook != nil {
		outer := c.Enter(name)
		hook(event)
		c.Leave(outer) // not if the hook has ended the goroutine: see keeper.abandon
	}
}

// These are the names of hooks and other functions that run in a supervisor's goroutine.
var hookNames = struct {
	GateStart, GateDone                     string
	DialStart, DialHung, DialDone           string
	SessionStart, SessionReady, SessionDone string
	WaitStart, WaitDone                     string
	ConnDone, Overdue                       string
}{
	"Trace.GateStart", "Trace.GateDone", "Trace.DialStart", "Trace.DialHung", "Trace.DialDone", "Trace.SessionStart",
	"Trace.SessionReady", "Trace.SessionDone", "Trace.WaitStart", "Trace.WaitDone", "Trace.ConnDone", "Trace.Overdue",
}

var (
	onMessage, onSeam, keep            = "OnMessage", "OnSeam", "Keep"
	layerReady, layerLost, layerEnd    = "Layer.Ready", "Layer.Lost", "Layer.End"
	policyName, classifyName, gateDone = "Policy", "Classify", "the gate's done"
	closeName                          = "Close"
)

// GateStart is a [Trace.GateStart] event.
type GateStart struct {
	Name string
	Host string // RunOptions.Host, or the host dialed instead
}

// GateDone is a [Trace.GateDone] event.
type GateDone struct {
	Name string
	Host string // as in GateStart
	Took time.Duration
	Err  error // nil if a dial follows, or no login is left for it
}

// DialStart is a [Trace.DialStart] event.
type DialStart struct {
	Name  string
	Try   int           // 1 for the first dial since the last stable session, or since the start
	Limit time.Duration // timeout of the dial's context, unless the dialer calls [backoff.Attempt].Connected
}

// DialHung is a [Trace.DialHung] event.
type DialHung struct {
	Name  string
	Try   int           // as in DialStart
	Since time.Duration // since the dialer reported that it is connected
}

// DialDone is a [Trace.DialDone] event.
type DialDone struct {
	Name string
	Try  int           // as in DialStart
	Took time.Duration // without the gate

	// Err is why the dial failed. If nil, a session follows, unless everything ends. If it is
	// [context.Canceled], the dial was no longer needed, or has to wait at the gate for another host.
	Err error
}

// AddressIgnored is a [Trace.AddressIgnored] event.
type AddressIgnored struct {
	Name string
	Err  error // why the dialer did not follow the address, of which it should name the host at most
}

// SessionDone is a [Trace.SessionDone] event.
type SessionDone struct {
	Name    string
	Session uint64
	Cause   error          // why it ended; never nil
	Reason  backoff.Reason // the kind of Cause, as for a Seam; ReasonShutdown if the Conn or Run ended first
	Uptime  time.Duration  // since the end of its dial
	Ready   time.Duration  // how long it was ready; 0 if it never was
	Stable  bool           // the waits start again from the first
	Planned bool           // the session was replaced
}

// RotateStart is a [Trace.RotateStart] event.
type RotateStart struct {
	Name    string
	Session uint64 // old session
	Cause   error  // Advice.Cause or ErrRotated
}

// RotateDone is a [Trace.RotateDone] event.
type RotateDone struct {
	Name    string
	Session uint64        // old session
	Took    time.Duration // since RotateStart
	Err     error         // why it was not replaced, or nil
}

// WaitStart is a [Trace.WaitStart] event. The wait takes Verdict.RetryAfter, and then Drawn.
type WaitStart struct {
	Name string
	Try  int // number of the dial that follows

	// Cause is why the last dial failed or session ended; a *budget.LoginError for a wait for a login;
	// nil for RunOptions.StartSpread.
	Cause error

	Verdict backoff.Verdict // on Cause, after the rules in the comment of package backoff

	// Drawn is the policy's part, and the rest of a longer wait that an earlier response requested, or
	// that is for a login.
	Drawn time.Duration

	again    bool   // the last session was refused as one before it: see refusal.note
	replaces uint64 // the number of the ready session that the dial is to replace, or 0
}

// WaitDone is a [Trace.WaitDone] event.
type WaitDone struct {
	Name   string
	Try    int // as in WaitStart
	Took   time.Duration
	Kicked bool // a kick cut the wait short
}

// ConnDone is a [Trace.ConnDone] event.
type ConnDone struct {
	Name string
	Err  error // result of Run or Conn.Err

	asked bool // the context that Run was given has ended, and Err is its cause
}

// ProbeStart is a [Trace.ProbeStart] event.
type ProbeStart struct {
	Name    string
	Session uint64
	Silence time.Duration // since the last byte
}

// ProbeDone is a [Trace.ProbeDone] event.
type ProbeDone struct {
	Name    string
	Session uint64
	Took    time.Duration

	// Err is nil if the ping was answered or Liveness.Probe returned nil, and Canceled if the session
	// ended or Check began another probe.
	Err error
}

// SlowHandler is a [Trace.SlowHandler] event.
type SlowHandler struct {
	Name    string
	Session uint64        // current or last session; 0 if unknown
	What    string        // see Overdue.What
	Since   time.Duration // minimum duration of the call so far
}

// Overdue is a [Trace.Overdue] event.
type Overdue struct {
	Name string

	// What is the function: "dial", "serve", "OnSession", "OnMessage", "OnSeam", "Keep", "OnReceipt",
	// "Layer.Receive", "Layer.Ready", "Layer.Lost", "Layer.End", "Policy", "Classify", "the gate's
	// done", "Close" (of a connection given to Run), "Probe", "KeepAlive.Message", "Rotate.Allowed",
	// "Stall.Expected", or a hook, such as "Trace.SessionDone"; or "reader".
	What string

	// Since is how long the function has run, how long ago it should have returned, or the minimum time
	// that the inbox was full and not read.
	Since time.Duration
}

// Await waits for done. While that takes long it reports that function is overdue.
func (h *hooks) Await(done <-chan struct{}, function string) {
	delay, start := watch.OverdueAfter, time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			h.Overdue(function, time.Since(start))
			timer.Reset(delay)
			delay *= 2
		}
	}
}

// awaitNamed is Await in the goroutine of a supervisor. If Overdue ends that goroutine, awaitNamed waits all the
// same, and leaves the name of the hook in calls: see keeper.abandon.
func (h *hooks) awaitNamed(calls *watch.Calls, done <-chan struct{}, function string) {
	xsync.Guard(func() { h.Await(done, function) }, func() {
		<-done
		calls.Enter(&hookNames.Overdue)
	})
}

// Watch calls the hooks of t after those that the Conn already has, from the next event on. t must not
// change meanwhile; it may be nil. Calling stop, which is not needed once the Conn has ended, stops this
// without waiting for a running hook; one event may still come.
func (c *Conn) Watch(t *Trace) (stop func()) {
	part := JoinTraces(t) // one of its own, so that stop finds it
	c.life.hooks.change(func(parts []*Trace) []*Trace { return append(parts, part) })
	return sync.OnceFunc(func() {
		c.life.hooks.change(func(parts []*Trace) []*Trace {
			return slices.DeleteFunc(parts, func(p *Trace) bool { return p == part })
		})
	})
}

// hooks is the Trace of a connection, which may change.
type hooks struct {
	atomic.Pointer[Trace]
	name string // of the connection, in the events
}

// SlowHandler calls the hook.
func (h *hooks) SlowHandler(session uint64, function string, since time.Duration) {
	if hook := h.Load().SlowHandler; hook != nil {
		hook(SlowHandler{Name: h.name, Session: session, What: function, Since: since})
	}
}

// Overdue calls the hook.
func (h *hooks) Overdue(function string, since time.Duration) {
	if hook := h.Load().Overdue; hook != nil {
		hook(Overdue{Name: h.name, What: function, Since: since})
	}
}

// ProbeStart calls the hook.
func (h *hooks) ProbeStart(session uint64, silence time.Duration) {
	if hook := h.Load().ProbeStart; hook != nil {
		hook(ProbeStart{Name: h.name, Session: session, Silence: silence})
	}
}

// ProbeDone calls the hook.
func (h *hooks) ProbeDone(session uint64, took time.Duration, err error) {
	if hook := h.Load().ProbeDone; hook != nil {
		hook(ProbeDone{Name: h.name, Session: session, Took: took, Err: err})
	}
}

// change replaces the Trace by a join of what edit makes of its parts. edit gets a slice of its own,
// and may be called more than once.
func (h *hooks) change(edit func([]*Trace) []*Trace) {
	for {
		old := h.Load()
		parts := slices.Clone(old.parts)
		if parts == nil {
			parts = []*Trace{old}
		}
		if h.CompareAndSwap(old, JoinTraces(edit(parts)...)) {
			return
		}
	}
}
