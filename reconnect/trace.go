package reconnect

import (
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Trace observes a [Run] or a [Conn]. Each field may be nil. Hooks return nothing
// and decide nothing; no lock is held while one runs. Those without a word on it
// run in the supervisor's goroutine, which waits for them, in the order of
// events. One Trace may serve many connections, if its functions are safe for
// that.
type Trace struct {
	// A wait at the gate, if there is one.
	GateStart func(host string)
	GateDone  func(host string, took time.Duration, err error)

	// One try. The dial itself runs in another goroutine, between the two.
	DialStart func(DialStart)
	DialDone  func(DialDone)

	// One session. SessionReady runs in the goroutine that called
	// [Session.Ready], which for a Conn is the supervisor's.
	SessionStart func(s *Session)
	SessionReady func(s *Session)
	SessionDone  func(SessionEnd)

	// The wait before the next try.
	WaitStart func(Wait)
	WaitDone  func(WaitDone)

	// The end: what Run returns. It is the last event.
	End func(err error)

	// One probe of a silent peer (Conn only). They run in the goroutine of the
	// liveness timer.
	ProbeStart func(ProbeStart)
	ProbeDone  func(ProbeDone)

	// Overdue names a function of the user's ("dial", "serve", "OnSession", "Probe",
	// "Done") that
	// was told to end and has not: after 5 s, and again each time the delay has
	// doubled. It runs in a goroutine that waits for that function.
	Overdue func(what string, since time.Duration)
}

// DialStart says that a try begins.
type DialStart struct {
	Try   int           // tries since the last stable session, or the start, before this one
	Limit time.Duration // its context ends after this
}

// DialDone says how a try ended.
type DialDone struct {
	Try  int
	Took time.Duration
	Err  error // nil: a session follows
}

// SessionEnd says how a session ended.
type SessionEnd struct {
	N      uint64
	Cause  error
	Uptime time.Duration // since it was dialled
	Ready  time.Duration // since it was ready; 0: it never was
	Stable bool          // the next wait is a first one again
}

// Wait says that the supervisor waits before the next try. It waits for
// Verdict.RetryAfter and then for Drawn.
type Wait struct {
	Try     int             // tries since the last stable session, or the start
	Cause   error           // why it has to
	Verdict backoff.Verdict // what was made of that
	Drawn   time.Duration   // the policy's part
}

// WaitDone says that a wait is over.
type WaitDone struct {
	Try    int
	Took   time.Duration
	Kicked bool // cut short by Kick
}

// ProbeStart says that nothing has been heard of the peer.
type ProbeStart struct {
	Session uint64
	Silence time.Duration // since the last byte
}

// ProbeDone says what a probe brought.
type ProbeDone struct {
	Session uint64
	Took    time.Duration
	Err     error // nil: the ping was answered, or Probe returned nil
}

// waitForAll is waitFor for goroutines that are counted.
func (t *Trace) waitForAll(running *sync.WaitGroup, what string, owner *Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	t.waitFor(done, what, owner)
}

const overdueAfter = 5 * time.Second

// waitFor waits for done, and names what it waits for when that takes long.
func (t *Trace) waitFor(done <-chan struct{}, what string, owner *Conn) {
	delay, start := overdueAfter, time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			t.overdue(what, time.Since(start), owner)
			timer.Reset(delay)
			delay *= 2
		}
	}
}

// overdue runs in a goroutine in which Close must not wait for the end.
func (t *Trace) overdue(what string, since time.Duration, owner *Conn) {
	if t == nil || t.Overdue == nil {
		return
	}
	if owner != nil {
		owner.callers.enter()
		defer owner.callers.leave()
	}
	t.Overdue(what, since)
}

func (t *Trace) gateStart(host string) {
	if t != nil && t.GateStart != nil {
		t.GateStart(host)
	}
}

func (t *Trace) gateDone(host string, took time.Duration, err error) {
	if t != nil && t.GateDone != nil {
		t.GateDone(host, took, err)
	}
}

func (t *Trace) dialStart(d DialStart) {
	if t != nil && t.DialStart != nil {
		t.DialStart(d)
	}
}

func (t *Trace) dialDone(d DialDone) {
	if t != nil && t.DialDone != nil {
		t.DialDone(d)
	}
}

func (t *Trace) sessionStart(s *Session) {
	if t != nil && t.SessionStart != nil {
		t.SessionStart(s)
	}
}

func (t *Trace) sessionReady(s *Session) {
	if t != nil && t.SessionReady != nil {
		t.SessionReady(s)
	}
}

func (t *Trace) sessionDone(e SessionEnd) {
	if t != nil && t.SessionDone != nil {
		t.SessionDone(e)
	}
}

func (t *Trace) waitStart(w Wait) {
	if t != nil && t.WaitStart != nil {
		t.WaitStart(w)
	}
}

func (t *Trace) waitDone(w WaitDone) {
	if t != nil && t.WaitDone != nil {
		t.WaitDone(w)
	}
}

func (t *Trace) end(err error) {
	if t != nil && t.End != nil {
		t.End(err)
	}
}

func (t *Trace) probeStart(p ProbeStart) {
	if t != nil && t.ProbeStart != nil {
		t.ProbeStart(p)
	}
}

func (t *Trace) probeDone(p ProbeDone) {
	if t != nil && t.ProbeDone != nil {
		t.ProbeDone(p)
	}
}
