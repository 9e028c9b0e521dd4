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

// Trace has hooks that observe a [Run] or a [Conn]. Each field may be nil. Hooks decide nothing, and
// no lock is held while one runs. Unless its comment says otherwise, a hook runs in the supervisor's
// goroutine, which waits for it, and hooks run in the order of the events. Many connections may share
// one Trace if its functions may be called at the same time; each event has the name of its connection
// ([RunOptions.Name]). For what a hook may call see Callbacks in the package's documentation.
type Trace struct {
	// GateStart reports that a wait at the gate begins, if there is a gate.
	GateStart func(GateStart)

	// GateDone reports that a wait at the gate has ended.
	GateDone func(GateDone)

	// DialStart reports that a dial begins, which runs in another goroutine.
	DialStart func(DialStart)

	// DialHung reports that the handshake of a dial is not answered in time. The dial goes on, and
	// another one begins beside it.
	DialHung func(DialHung)

	// DialDone reports that a dial has ended, after it has returned.
	DialDone func(DialDone)

	// AddressIgnored reports that a dial went to the usual address, and not to the one that the server
	// had advised (Conn only): see [Advice].URL. It runs in the dial's goroutine, before DialDone.
	AddressIgnored func(AddressIgnored)

	// SessionStart reports that a session begins.
	SessionStart func(s *Session)

	// SessionReady reports that a session is ready. It runs in the goroutine that called
	// [Session.Ready]; for a Conn that is the supervisor's.
	SessionReady func(s *Session)

	// SessionDone reports that a session has ended.
	SessionDone func(SessionDone)

	// RotateStart reports that a session is to be replaced (Conn only): see [Rotation]. It runs in a
	// goroutine of its own. From here to RotateDone there may be two supervisors, so that the hooks
	// of the next session run beside those of the old one.
	RotateStart func(RotateStart)

	// RotateDone reports that there is one session again: the next one, or, if the rotation has
	// failed, the old one or none. It runs in a goroutine of its own, for which a supervisor waits.
	RotateDone func(RotateDone)

	// WaitStart reports that a wait before the next dial begins. While a dial whose handshake is not
	// answered goes on there is no such event.
	WaitStart func(WaitStart)

	// WaitDone reports that a wait is over.
	WaitDone func(WaitDone)

	// ConnDone reports that nothing follows. It is the last event, but for Overdue.
	ConnDone func(ConnDone)

	// ProbeStart reports that a probe begins (Conn only): see [Liveness]. It runs in the goroutine of
	// the liveness timer, as ProbeDone and SlowHandler do.
	ProbeStart func(ProbeStart)

	// ProbeDone reports that a probe has ended (Conn only).
	ProbeDone func(ProbeDone)

	// SlowHandler reports, once for each call, that a callback has taken longer than a third of
	// [Liveness.Limit], or than 5 s for a Run or if Limit is negative. Every function of yours that the
	// supervisor or the connection waits for is timed, and named by SlowHandler.What; those that wait for
	// the network by design (Dial, a Gate's Acquire, OnSession, Layer.Open, Probe) have limits of their own.
	// It runs in the goroutine of a timer.
	SlowHandler func(SlowHandler)

	// Overdue reports a callback that SlowHandler has reported and that still has not returned, each
	// time that its duration has doubled. It also reports a function that should have ended, because
	// its context has, after 5 s, and a full inbox that is not read ("reader"), after [Liveness.Limit] or
	// up to a third of it later; both again each time that the time since then has doubled. It runs in the
	// goroutine of a timer, or in one that waits for the function.
	Overdue func(Overdue)

	parts []*Trace // those that JoinTraces has joined
}

// JoinTraces returns a Trace whose hooks call the hooks of each of traces, in their order: a
// program's own hooks, a log and a metrics layer, for example. A nil Trace has no hooks. The traces
// must not change afterwards.
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

// GateStart is the event of [Trace.GateStart].
type GateStart struct {
	Name string // RunOptions.Name
	Host string // RunOptions.Host, or the host to which the dial goes instead
}

// GateDone is the event of [Trace.GateDone].
type GateDone struct {
	Name string        // RunOptions.Name
	Host string        // as in GateStart
	Took time.Duration // how long the wait was
	Err  error         // nil: a dial follows, or no login is left for it
}

// DialStart is the event of [Trace.DialStart].
type DialStart struct {
	Name  string        // RunOptions.Name
	Try   int           // 1 for the first dial since the last stable session, or since the start
	Limit time.Duration // the dial's context ends after this, unless the dialer calls [backoff.Attempt].Connected
}

// DialHung is the event of [Trace.DialHung].
type DialHung struct {
	Name  string        // RunOptions.Name
	Try   int           // as in DialStart
	Since time.Duration // how long ago the dialer reported that it is connected
}

// DialDone is the event of [Trace.DialDone].
type DialDone struct {
	Name string        // RunOptions.Name
	Try  int           // as in DialStart
	Took time.Duration // how long the dial was, without the gate

	// Err is why the dial has failed. If it is nil a session follows, unless everything ends. If it
	// is a [context.Canceled] the dial was not needed any more, or has to wait at the gate for
	// another host.
	Err error
}

// AddressIgnored is the event of [Trace.AddressIgnored].
type AddressIgnored struct {
	Name string // RunOptions.Name
	Err  error  // why the dialer has not followed the address, of which it should name the host at most
}

// SessionDone is the event of [Trace.SessionDone].
type SessionDone struct {
	Name    string         // RunOptions.Name
	Session uint64         // the number of the session
	Cause   error          // why it has ended; never nil
	Reason  backoff.Reason // the kind of Cause, as for a Seam; ReasonShutdown if the Conn or Run ended first
	Uptime  time.Duration  // how long the session was, from the end of its dial on
	Ready   time.Duration  // for how long it was ready; 0: it never was
	Stable  bool           // whether the next wait is a first one again
	Planned bool           // the session was replaced, and did not die: see Rotation
}

// RotateStart is the event of [Trace.RotateStart].
type RotateStart struct {
	Name    string // RunOptions.Name
	Session uint64 // the number of the session that is to be replaced
	Cause   error  // why: Advice.Cause or ErrRotated
}

// RotateDone is the event of [Trace.RotateDone].
type RotateDone struct {
	Name    string        // RunOptions.Name
	Session uint64        // the number of the session that was to be replaced
	Took    time.Duration // since RotateStart
	Err     error         // nil: it was replaced; else why not, such as that it was lost first
}

// WaitStart is the event of [Trace.WaitStart]. The wait takes Verdict.RetryAfter, and then Drawn.
type WaitStart struct {
	Name    string          // RunOptions.Name
	Try     int             // the number of the dial that follows
	Cause   error           // why the last dial failed or the last session ended; a *budget.LoginError: the wait is for a login; nil: the wait is RunOptions.StartSpread
	Verdict backoff.Verdict // the verdict on Cause, after the rules in the comment of package backoff
	Drawn   time.Duration   // the policy's part, and the rest of a longer wait that an earlier answer asked for, or that is for a login

	again    bool   // the last session was refused as one before it: see refusal
	replaces uint64 // the number of the ready session that the dial is to replace, or 0
}

// WaitDone is the event of [Trace.WaitDone].
type WaitDone struct {
	Name   string        // RunOptions.Name
	Try    int           // as in WaitStart
	Took   time.Duration // how long the wait was
	Kicked bool          // whether a kick cut it short
}

// ConnDone is the event of [Trace.ConnDone].
type ConnDone struct {
	Name string // RunOptions.Name
	Err  error  // what Run or Conn.Err returns

	asked bool // the context that Run was given has ended, and Err is its cause
}

// ProbeStart is the event of [Trace.ProbeStart].
type ProbeStart struct {
	Name    string        // RunOptions.Name
	Session uint64        // the number of the session
	Silence time.Duration // how long ago the last byte came
}

// ProbeDone is the event of [Trace.ProbeDone].
type ProbeDone struct {
	Name    string        // RunOptions.Name
	Session uint64        // the number of the session
	Took    time.Duration // how long the probe was
	Err     error         // nil: the ping was answered, or Liveness.Probe returned nil. Canceled: the session has ended, or Check has begun another probe
}

// SlowHandler is the event of [Trace.SlowHandler].
type SlowHandler struct {
	Name    string        // RunOptions.Name
	Session uint64        // the number of the session, or of the last one; 0 if it is not known
	What    string        // the function: see Overdue.What
	Since   time.Duration // for how long the call has run, at least
}

// Overdue is the event of [Trace.Overdue].
type Overdue struct {
	Name string // RunOptions.Name

	// What is the function: "dial", "serve", "OnSession", "OnMessage", "OnSeam", "Keep", "OnReceipt",
	// "Layer.Receive", "Layer.Ready", "Layer.Lost", "Layer.End", "Policy", "Classify", "the gate's done",
	// "Close" (of a connection given to Run), "Probe", "KeepAlive.Message", "Rotate.Allowed",
	// "Stall.Expected", or a hook, such as "Trace.SessionDone"; or "reader".
	What string

	// Since is for how long the function has run; for how long it should have returned, if it should; for how
	// long, at least, the inbox was full and not read ("reader").
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

// Watch calls the hooks of t after those that the Conn has already, for a page or a metrics layer that
// gets to know a Conn after [New] has made it. It begins with the next event, so that t may see an
// end whose beginning it has not seen. t must not change meanwhile; a nil t has no hooks. The
// function stop ends it, without waiting for a hook that runs; one event that has begun may still
// come. A Conn that has ended needs no stop.
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
