//go:build !js

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

// reporter shows what happens, as lines for a person or as JSON. Any goroutine may call its
// methods. They wait while standard output or standard error is slow.
type reporter struct {
	json     bool
	escape   bool             // standard output is a terminal
	typed    bool             // standard input is a terminal
	out      *terminal.Screen // standard output: messages, and with json everything
	notes    *terminal.Screen // standard error, with the prompt; out, if both are one file
	together bool             // both are one file
}

// shownBytes is how much of a message is shown on a terminal.
const shownBytes = 4096

func newReporter(json bool, stdin, stdout, stderr *os.File) *reporter {
	r := &reporter{
		json: json, escape: terminal.Is(stdout), typed: terminal.Is(stdin),
		notes: terminal.NewScreen(stderr), together: same(stdout, stderr),
	}
	r.out = r.notes
	if !r.together {
		r.out = terminal.NewPlain(stdout)
	}
	return r
}

// same reports whether two files are one, such as the same terminal.
func same(a, b *os.File) bool {
	one, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(one, other)
}

func (r *reporter) start(prompt func() string) {
	r.notes.Start(func() string {
		if r.typed {
			return prompt() + " > "
		}
		return prompt()
	})
	if !r.together {
		r.out.Start(nil)
	}
}

// close shows what is left.
func (r *reporter) close() {
	if !r.together {
		r.out.Close()
	}
	r.notes.Close()
}

// event shows e with -json, and else note, if there is one.
func (r *reporter) event(e event, note string) {
	switch {
	case r.json:
		r.out.Line(e.json())
	case note != "":
		r.notes.Line("-- " + note)
	}
}

func (r *reporter) message(f form, m reconnect.Message) {
	if r.json {
		e := event{Event: "message", Session: m.Session}
		e.setData(m.Message)
		r.out.Line(e.json())
		return
	}
	if !r.escape {
		r.out.Line(f.line(m.Message))
		return
	}
	size, mark := len(m.Data), "< "
	m.Data = m.Data[:min(size, shownBytes)]
	if m.Type == conn.Binary {
		mark = fmt.Sprintf("< binary, %s: ", terminal.Count(size, "byte"))
	}
	text := mark + terminal.Clean(f.line(m.Message))
	if size > shownBytes {
		text += fmt.Sprintf(" ... (%s in all)", terminal.Count(size, "byte"))
	}
	r.out.Line(text)
}

func (r *reporter) ready(session uint64, subprotocol string, downtime time.Duration) {
	away := seconds(downtime)
	note := fmt.Sprintf("ready: session %d", session)
	if subprotocol != "" {
		note += fmt.Sprintf(", subprotocol %s", terminal.Clean(subprotocol))
	}
	if session > 1 {
		note += fmt.Sprintf(", after %v away", downtime.Round(time.Millisecond))
	}
	r.event(event{Event: "ready", Session: session, Subprotocol: subprotocol, Away: &away}, note)
}

func (r *reporter) seam(s *reconnect.Seam) {
	r.event(event{Event: "seam", Session: s.Session, Cause: s.Cause.Error()},
		fmt.Sprintf("messages may be missing here: session %d has ended", s.Session))
}

func (r *reporter) wait(w reconnect.WaitStart) {
	all := w.Verdict.RetryAfter + w.Drawn
	if r.json {
		wait := seconds(all)
		r.out.Line(event{Event: "wait", Try: w.Try, Wait: &wait, RetryAfter: seconds(w.Verdict.RetryAfter), Cause: w.Cause.Error()}.json())
		return
	}
	text := "away, next try in " + terminal.Seconds(all)
	if w.Verdict.RetryAfter > 0 {
		text += fmt.Sprintf(" (the server asked for %s)", terminal.Seconds(w.Verdict.RetryAfter))
	}
	r.notes.Away(text, terminal.Clean(w.Cause.Error()))
}

func (r *reporter) hung(h reconnect.DialHung) {
	r.event(event{Event: "hung", Try: h.Try, Since: seconds(h.Since)},
		fmt.Sprintf("connected, but not answered for %s: another dial begins beside this one", terminal.Seconds(h.Since)))
}

// unread tells the user that nobody reads standard output. It does not tell standard output.
func (r *reporter) unread() {
	if !r.together {
		r.notes.Note("nobody reads standard output, so the connection is not read either")
	}
}

// kept says that a line waits, if lines come from a terminal.
func (r *reporter) kept(line string) {
	if r.typed && !r.json {
		r.notes.Note("kept until there is a connection: %s", quoted(line))
	}
}

// leaving says how long the end may take.
func (r *reporter) leaving(limit time.Duration, unsent int) {
	if !r.json && limit > 0 {
		r.notes.Note("leaving within %s, %s to send; Ctrl-C ends at once", terminal.Seconds(limit), terminal.Count(unsent, "message"))
	}
}

// fate shows what became of a line. A line that was written is shown only if lines come from a
// terminal.
func (r *reporter) fate(number int, line string, m conn.Message, fate reconnect.Fate, session uint64, why string) {
	if r.json {
		e := event{Event: "fate", Line: number, Fate: fate.String(), Session: session, Cause: why}
		e.setData(m)
		r.out.Line(e.json())
		return
	}
	switch {
	case fate == reconnect.FateDropped:
		r.notes.Note("not sent: %s: %s", terminal.Clean(why), quoted(line))
	case fate == reconnect.FateUnknown:
		r.notes.Note("perhaps sent: %s: %s", terminal.Clean(why), quoted(line))
	case r.typed:
		r.notes.Note("written by session %d: %s", session, quoted(line))
	}
}

func (r *reporter) end(code int, cause error, t *tally) {
	e, note := event{Event: "end", Code: &code, tally: t}, ""
	if cause != nil {
		e.Cause = cause.Error()
	}
	if cause == nil && *t != (tally{}) {
		note = t.String()
	}
	r.event(e, note)
}

// quoted returns the beginning of a line, in quotes.
func quoted(line string) string {
	if len(line) > 60 {
		return fmt.Sprintf("%.50q... (%s)", line, terminal.Count(len(line), "byte"))
	}
	return fmt.Sprintf("%q", line)
}
