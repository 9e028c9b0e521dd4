package reconnect

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Trace observes a [Run] or a [Conn]. Each field may be nil. Hooks return nothing
// and decide nothing; no lock is held while one runs. Unless its comment says
// otherwise a hook runs in the supervisor's goroutine, which waits for it, and hooks
// run in the order of events. One Trace may serve many connections, if its
// functions are safe for that: every event carries the connection's name
// ([RunOptions.Name]).
type Trace struct {
	// A wait at the gate, if there is one.
	GateStart func(GateStart)
	GateDone  func(GateDone)

	// One try. The dial itself runs in another goroutine, between the two. DialHung
	// says that its handshake was not answered in time, so that another try begins
	// beside it.
	DialStart func(DialStart)
	DialHung  func(DialHung)
	DialDone  func(DialDone)

	// One session. SessionReady runs in the goroutine that called
	// [Session.Ready], which for a Conn is the supervisor's.
	SessionStart func(s *Session)
	SessionReady func(s *Session)
	SessionDone  func(SessionEnd)

	// The wait before the next try, unless a dial that hangs goes on meanwhile.
	WaitStart func(Wait)
	WaitDone  func(WaitDone)

	// The end. It is the last event, but for Overdue.
	End func(End)

	// One probe of a silent peer (Conn only). They run in the goroutine of the
	// liveness timer.
	ProbeStart func(ProbeStart)
	ProbeDone  func(ProbeDone)

	// SlowHandler reports a call of OnMessage that has taken longer than a third of
	// [Liveness.Limit] (Conn only), once per call: meanwhile the peer is not read
	// and its pings are not answered. It runs in the goroutine of the liveness timer.
	SlowHandler func(SlowHandler)

	// Overdue reports a function of the user's that should have ended and has not,
	// or a reader that does not read. It is called after 5 s ("reader": after
	// [Liveness.Limit]), and again each time that the time since then has doubled.
	// It runs in a goroutine that waits for that function.
	Overdue func(Overdue)
}

// noTrace is the Trace of those who have none.
var noTrace = &Trace{}

// call calls a hook, if it is set.
func call[E any](hook func(E), event E) {
	if hook != nil {
		hook(event)
	}
}

// GateStart says that a wait at the gate begins.
type GateStart struct {
	Name string
	Host string
}

// GateDone says how a wait at the gate ended.
type GateDone struct {
	Name string
	Host string
	Took time.Duration
	Err  error // nil: a dial follows
}

// DialStart says that a try begins.
type DialStart struct {
	Name  string
	Try   int           // tries since the last stable session, or the start, before this one
	Limit time.Duration // its context ends after this, unless the dialer reports that it is connected: see [backoff.Try]
}

// DialHung says that a handshake was not answered in time. The dial goes on.
type DialHung struct {
	Name  string
	Try   int
	Since time.Duration // for how long it has not been answered
}

// DialDone says how a try ended.
type DialDone struct {
	Name string
	Try  int
	Took time.Duration
	Err  error // nil: a session follows, unless everything ends
}

// SessionEnd says how a session ended.
type SessionEnd struct {
	Name    string
	Session uint64
	Cause   error
	Uptime  time.Duration // since it was dialed
	Ready   time.Duration // since it was ready; 0: it never was
	Stable  bool          // the next wait is a first one again
}

// Wait says that the supervisor waits before the next try: for Verdict.RetryAfter and
// then for Drawn.
type Wait struct {
	Name    string
	Try     int             // tries since the last stable session, or the start
	Cause   error           // why it has to
	Verdict backoff.Verdict // what was made of that
	Drawn   time.Duration   // the policy's part, and what an earlier answer has asked for beyond that
}

// WaitDone says that a wait is over.
type WaitDone struct {
	Name   string
	Try    int
	Took   time.Duration
	Kicked bool // cut short by Kick
}

// End says that nothing follows.
type End struct {
	Name string
	Err  error // what Run returns, or Conn.Err
}

// ProbeStart says that nothing has been heard of the peer.
type ProbeStart struct {
	Name    string
	Session uint64
	Silence time.Duration // since the last byte
}

// ProbeDone says what a probe brought.
type ProbeDone struct {
	Name    string
	Session uint64
	Took    time.Duration
	Err     error // nil: the ping was answered, or Probe returned nil
}

// SlowHandler says that one call of OnMessage takes long.
type SlowHandler struct {
	Name    string
	Session uint64
	Since   time.Duration // it has run for at least this
}

// Overdue says that something should have happened and has not.
type Overdue struct {
	Name  string
	What  string        // "dial", "serve", "OnSession", "OnMessage", "OnSeam", "Keep", "Probe", "OnReceipt": it should have returned; "reader": nobody reads a full inbox
	Since time.Duration // for so long
}

const overdueAfter = 5 * time.Second

// waitFor waits for done. When that takes long it reports what has not ended yet,
// unless that is empty.
func (t *Trace) waitFor(done <-chan struct{}, name string, what func() string) {
	delay, start := overdueAfter, time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			if w := what(); w != "" {
				call(t.Overdue, Overdue{Name: name, What: w, Since: time.Since(start)})
			}
			timer.Reset(delay)
			delay *= 2
		}
	}
}
