//go:build js

// Page is the program in the page of examples/browser. It follows a venue by a connection that
// is kept open, and tells the script of the page the books, the state of the connection, and what
// happens to it. The script draws them.
//
// The parts to copy are client.go, with the login by a first message; lifecycle.go, which tells the
// connection what the browser knows; and package examples/books, which keeps the books right and
// probes by a message, because a page has no ping. export.go is for the script, the console of the
// browser and tests.
package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"syscall/js"
	"time"

	"github.com/redial-go/redial/reconnect"
)

func main() {
	location := js.Global().Get("location")
	query, _ := url.ParseQuery(strings.TrimPrefix(location.Get("search").String(), "?"))
	var o options // those of the address, such as ?silence=3s&wait=1h, for trying things out
	o.silence, _ = time.ParseDuration(query.Get("silence"))
	o.wait, _ = time.ParseDuration(query.Get("wait"))

	c, err := follow("ws"+location.Get("origin").String()[len("http"):], o, trace())
	if err != nil {
		note("bad", "%v", err)
		return
	}
	follows(c)
	j := new(journal)
	export(c, j)
	err = c.Read(context.Background(), j.add)
	note("bad", "it has ended: %v", err)
	select {} // the page still shows why
}

// note adds a line to the list of events, of a kind: "good", "bad", "seam" or "".
func note(kind, format string, args ...any) {
	js.Global().Call("note", kind, fmt.Sprintf(format, args...))
}

// trace notes what happens to a connection.
func trace() *reconnect.Trace {
	return &reconnect.Trace{
		DialStart: func(e reconnect.DialStart) { note("", "dials, try %d", e.Try) },
		DialDone: func(e reconnect.DialDone) {
			if e.Err != nil {
				note("bad", "%v", e.Err)
			}
		},
		SessionReady: func(s *reconnect.Session) { note("good", "session %d is ready", s.Number) },
		SessionDone: func(e reconnect.SessionDone) {
			note("bad", "session %d has ended after %.1f s: %v", e.Session, e.Uptime.Seconds(), e.Cause)
		},
		WaitStart: func(e reconnect.WaitStart) {
			note("", "waits %.1f s before try %d (%v)", (e.Verdict.RetryAfter + e.Drawn).Seconds(), e.Try, e.Verdict.Class)
		},
		ProbeStart: func(e reconnect.ProbeStart) { note("", "probes: nothing has come for %.1f s", e.Silence.Seconds()) },
	}
}
