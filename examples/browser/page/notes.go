//go:build js

package main

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// notes returns a Trace that notes what happens to a connection, each with a kind: "good", "bad",
// or "".
func notes(note func(kind, text string)) *reconnect.Trace {
	return &reconnect.Trace{
		DialStart: func(e reconnect.DialStart) { note("", fmt.Sprintf("dials, try %d", e.Try)) },
		DialHung:  func(reconnect.DialHung) { note("bad", "nobody answers the handshake; dials beside it") },
		DialDone: func(e reconnect.DialDone) {
			if e.Err != nil {
				note("bad", e.Err.Error())
			}
		},
		SessionReady: func(s *reconnect.Session) { note("good", fmt.Sprintf("session %d is ready", s.Number)) },
		SessionDone: func(e reconnect.SessionEnd) {
			note("bad", fmt.Sprintf("session %d has ended after %v: %v", e.Session, round(e.Uptime), e.Cause))
		},
		WaitStart: func(e reconnect.Wait) {
			note("", fmt.Sprintf("waits %v before try %d (%v)", round(e.Verdict.RetryAfter+e.Drawn), e.Try, e.Verdict.Class))
		},
		ProbeStart: func(e reconnect.ProbeStart) {
			note("", fmt.Sprintf("probes: nothing has come for %v", round(e.Silence)))
		},
	}
}

// round returns d as a person wants to read it.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}
