//go:build !js

package main

import (
	"fmt"
	"io"
	"log"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// journal prints what happens to sessions, and keeps it. Any goroutine may call its methods.
type journal struct {
	start time.Time
	out   *log.Logger

	mu       sync.Mutex // guards sessions
	sessions []session
}

// session is what became of one.
type session struct {
	number uint64
	opened time.Duration // since the start
	why    string        // why it was opened
	lasted time.Duration // until the caller had heard all of it
	end    string        // how it ended
}

func newJournal(out io.Writer) *journal {
	return &journal{start: time.Now(), out: log.New(out, "", 0)}
}

// line prints a line.
func (j *journal) line(format string, args ...any) {
	j.out.Printf("%8.3fs  %s", time.Since(j.start).Seconds(), fmt.Sprintf(format, args...))
}

// opened notes that a session has begun or resumed the call.
func (j *journal) opened(o *reconnect.Opening) {
	s := session{number: o.Session, opened: time.Since(j.start), end: "us"}
	switch {
	case o.Planned:
		s.why = "rotation"
	case o.Cause != nil:
		s.why = "redial"
	default:
		s.why = "start"
	}
	j.line("session %d is ready (%s)", s.number, s.why)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sessions = append(j.sessions, s)
}

// warned notes a warning of the service.
func (j *journal) warned(session uint64, left time.Duration) {
	j.line("session %d will be ended in %v, the service says", session, left)
}

// ended notes that the caller has heard all of a session.
func (j *journal) ended(s *reconnect.Seam) {
	j.line("%v", s)
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.sessions {
		if one := &j.sessions[i]; one.number == s.Session {
			one.lasted, one.end = time.Since(j.start)-one.opened, s.Cause.Error()
		}
	}
}

// print prints a table of the sessions.
func (j *journal) print(out io.Writer) {
	j.mu.Lock()
	sessions := slices.Clone(j.sessions)
	j.mu.Unlock()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nsession\topened\tby\tlasted\t  ended by")
	for _, s := range sessions {
		lasted := "-"
		if s.lasted > 0 {
			lasted = fmt.Sprintf("%.3fs", s.lasted.Seconds())
		}
		fmt.Fprintf(w, "%d\t%.3fs\t%s\t%s\t  %s\n", s.number, s.opened.Seconds(), s.why, lasted, s.end)
	}
	w.Flush()
}
