//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/subscription"
)

// journal records what happens. It prints a line for each event at once, and a table in the
// end. Any goroutine may call its methods.
type journal struct {
	start   time.Time
	printer *printer
	audit   *audit // nil if there are no books

	mu       sync.Mutex // guards what follows
	sessions []*record  // the latest ones, in order
	earlier  record     // the sum of all sessions before them
	forgot   int        // the number of sessions in earlier
	troubles []trouble
	resyncs  int
	received time.Time // when the last message came
	left     bool      // the client is leaving
}

// trouble is one thing that went wrong.
type trouble struct {
	kind    kind
	session uint64
	err     error
}

type kind int

const (
	dialFailed kind = iota
	neverReady      // a session ended before it was ready
	sessionLost
	outOfSync
)

const (
	sessionsKept = 100
	troublesKept = 1000
)

func newJournal(out io.Writer, a *audit) *journal {
	return &journal{start: time.Now(), printer: newPrinter(out), audit: a}
}

// line prints one line with the time since the start.
func (j *journal) line(what, format string, args ...any) {
	j.printer.lines <- fmt.Sprintf("%7.3fs  %-10s  %s", time.Since(j.start).Seconds(), what, fmt.Sprintf(format, args...))
}

// trace returns the hooks that record the events of a connection.
func (j *journal) trace() *reconnect.Trace {
	return &reconnect.Trace{
		DialStart: func(d reconnect.DialStart) { j.line("connecting", "attempt %d", d.Try) },
		DialDone: func(d reconnect.DialDone) {
			if d.Err != nil {
				j.note(trouble{kind: dialFailed, err: d.Err})
				j.line("failed", "attempt %d: %v", d.Try, d.Err)
			}
		},
		SessionStart: func(s *reconnect.Session) {
			j.begin(s)
			j.line("opening", "session %d", s.Number)
		},
		SessionReady: func(s *reconnect.Session) {
			j.edit(s.Number, func(r *record) { r.up = true })
			j.line("ready", "session %d, after %v of downtime", s.Number, round(s.Downtime))
		},
		SessionDone: j.end,
		WaitStart: func(w reconnect.Wait) {
			wait := round(w.Drawn).String()
			if w.Verdict.RetryAfter > 0 {
				wait = fmt.Sprintf("%v as the server asks, then %s", w.Verdict.RetryAfter, wait)
			}
			j.line("waiting", "%s before attempt %d (%v)", wait, w.Try, w.Verdict.Class)
		},
		ProbeDone: func(p reconnect.ProbeDone) {
			if p.Err != nil {
				j.line("silent", "session %d: a ping was not answered within %v", p.Session, round(p.Took))
			}
		},
		Overdue: func(o reconnect.Overdue) {
			j.line("overdue", "%s: for %v", o.What, round(o.Since))
		},
		End: func(e reconnect.End) {
			if j.isLeaving() {
				e.Err = errors.New("by us")
			}
			j.line("closed", "%v", e.Err)
		},
	}
}

func (j *journal) begin(s *reconnect.Session) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sessions = append(j.sessions, &record{n: s.Number, downtime: s.Downtime})
	if len(j.sessions) > sessionsKept {
		j.earlier.add(j.sessions[0])
		j.forgot++
		j.sessions = j.sessions[1:]
	}
}

func (j *journal) end(e reconnect.SessionEnd) {
	cause := "us"
	if !j.isLeaving() && e.Cause != nil {
		cause = e.Cause.Error()
	}
	how, ready := neverReady, "never ready"
	j.edit(e.Session, func(r *record) {
		r.ready, r.end = e.Ready, cause
		if r.up {
			how, ready = sessionLost, fmt.Sprintf("ready for %v", round(e.Ready))
		}
	})
	j.note(trouble{kind: how, session: e.Session, err: e.Cause})
	j.line("ended", "session %d, %s: %s", e.Session, ready, cause)
}

// message counts a received message.
func (j *journal) message(session uint64) {
	j.edit(session, func(r *record) {
		r.messages++
		j.received = time.Now()
	})
}

// event records an event of a book.
func (j *journal) event(e *event) {
	if e.Session > 0 && e.Err == nil { // no seam
		j.message(e.Session)
	}
	if resync, missed := j.audit.event(e); resync {
		j.edit(e.Session, func(r *record) {
			j.resyncs++
			r.resyncs++
			r.missed += missed
			if missed > 0 {
				r.gaps++
			}
		})
		j.line("in sync", "session %d: %s: snapshot at update %d, %d missed", e.Session, e.Key, e.Last, missed)
	}
	if _, lost := errors.AsType[*reconnect.Seam](e.Err); e.Kind == replay.Stale && !lost {
		j.note(trouble{kind: outOfSync, err: e.Err})
		j.line("out of sync", "%s: %v", e.Key, e.Err)
	}
}

// keys records what has become of subscriptions.
func (j *journal) keys(e subscription.Event[string]) {
	text := fmt.Sprintf("session %d: %s", e.Session, strings.Join(e.Keys, ", "))
	if e.Kind == subscription.Rejected {
		text += fmt.Sprintf(": %v (%v)", e.Err, e.Verdict)
	}
	j.line(e.Kind.String(), "%s", text)
}

// leave closes a connection. It gives the peer 2 s to answer the close frame.
func (j *journal) leave(feed *reconnect.Conn) {
	j.leaving()
	j.line("leaving", "within 2s")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := feed.Shutdown(ctx); err != nil {
		j.line("closed", "without the peer's answer: %v", err)
	}
}

// leaving records that the client itself ends the connection from now on.
func (j *journal) leaving() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = true
}

func (j *journal) isLeaving() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left
}

// close returns when every line has been printed.
func (j *journal) close() { j.printer.close() }

func (j *journal) note(t trouble) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.troubles) < troublesKept {
		j.troubles = append(j.troubles, t)
	}
}

// mark is a position in the journal.
type mark struct{ troubles, resyncs int }

// mark returns the present end of the journal.
func (j *journal) mark() mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	return mark{len(j.troubles), j.resyncs}
}

// find returns how many troubles since m match, and the error of the first of them.
func (j *journal) find(m mark, match func(trouble) bool) (n int, first error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.troubles[m.troubles:] {
		if match(t) {
			n++
			if n == 1 {
				first = t.err
			}
		}
	}
	return n, first
}

func (j *journal) resyncsSince(m mark) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.resyncs - m.resyncs
}

func (j *journal) edit(session uint64, edit func(*record)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.sessions) - 1; i >= 0; i-- {
		if j.sessions[i].n == session {
			edit(j.sessions[i])
			return
		}
	}
	edit(&j.earlier)
}
