//go:build !js

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// screen shows lines and, on a terminal, a prompt below them. One goroutine writes. Any
// goroutine may send events between start and close.
//
// The terminal's own line editor stays in use. The screen inserts lines above the one that
// the user is typing, and overwrites the prompt in place, so that the typed text stays. If
// the typed text is longer than one row, it looks torn, but what is sent is right.
type screen struct {
	out      io.Writer
	terminal bool
	columns  func() int // of the terminal
	events   chan event // buffered, so that a slow terminal does not delay the client
	stop     chan struct{}
	stopped  chan struct{}
	cause    string // the last cause that was shown; only the goroutine that writes uses it
}

// event is one thing to show.
type event struct {
	text    string
	entered bool   // the user has entered a line, so that the cursor is on a new row
	cause   string // shown after the text; empty: none
}

func newScreen(in, out *os.File) *screen {
	return &screen{
		out: out, terminal: isTerminal(in) && isTerminal(out), columns: func() int { return columns(out) },
		events: make(chan event, 64), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
}

// start starts to write. One goroutine calls prompt, four times a second and after each
// event. The prompt must always have the same width.
func (s *screen) start(prompt func() string) {
	go s.run(prompt) // close waits for it
}

// close shows the events that are left, removes the prompt, and returns.
func (s *screen) close() {
	close(s.stop)
	<-s.stopped
}

// line shows text. Text of others must have passed clean or checkName.
func (s *screen) line(text string) { s.send(event{text: text}) }

// note shows a line of the program itself.
func (s *screen) note(format string, args ...any) { s.line("-- " + fmt.Sprintf(format, args...)) }

// away shows that the server is away, and why. On a terminal it shows nothing if the cause is
// the same as the last one, because the prompt counts down there.
func (s *screen) away(text, cause string) { s.send(event{text: "-- " + text, cause: cause}) }

// entered shows the prompt on the new row after the user has entered a line.
func (s *screen) entered() { s.send(event{entered: true}) }

func (s *screen) send(e event) {
	select {
	case s.events <- e:
	case <-s.stopped: // the screen is closed, so the event is dropped
	}
}

func (s *screen) run(prompt func() string) {
	defer close(s.stopped)
	if !s.terminal {
		prompt = func() string { return "" }
	}
	shown := prompt()
	io.WriteString(s.out, shown)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e := <-s.events:
			s.show(e, prompt())
		case <-tick.C:
		case <-s.stop:
			s.finish()
			return
		}
		if now := prompt(); now != shown {
			shown = now
			io.WriteString(s.out, save+"\r"+now+restore)
		}
	}
}

// finish shows the events that are left, without a prompt.
func (s *screen) finish() {
	if s.terminal {
		io.WriteString(s.out, "\r"+clearToEnd)
		s.terminal = false
	}
	for {
		select {
		case e := <-s.events:
			s.show(e, "")
		default:
			return
		}
	}
}

func (s *screen) show(e event, prompt string) {
	repeated := e.cause != "" && e.cause == s.cause
	if !e.entered {
		s.cause = e.cause
	}
	switch {
	case e.entered && s.terminal:
		io.WriteString(s.out, "\r"+prompt)
		return
	case e.entered, repeated && s.terminal:
		return
	case e.cause != "":
		e.text += ": " + e.cause
	}
	if !s.terminal {
		io.WriteString(s.out, e.text+"\n")
		return
	}
	var b strings.Builder
	for _, row := range wrap(e.text, max(s.columns(), 20)-1) {
		b.WriteString(makeRoom + save + "\r" + insertRow + row + restore + down)
	}
	io.WriteString(s.out, b.String())
}

// Control sequences of terminals (ECMA-48 and the VT100).
const (
	save       = "\x1b7" // the position of the cursor
	restore    = "\x1b8"
	makeRoom   = "\x1bD\x1b[A" // makes sure that there is a row below this one, by scrolling if necessary
	insertRow  = "\x1b[L"      // an empty row here; this one moves down
	down       = "\x1b[B"
	clearToEnd = "\x1b[K"
)

// indent begins each row of a line but the first.
const indent = "   "

// wrap cuts text into rows of at most that many columns, between words if possible.
func wrap(text string, columns int) (rows []string) {
	for {
		end, space, width := len(text), 0, 0
		for i, r := range text {
			if width++; r >= 0x1100 { // it may be two columns wide
				width++
			}
			if width > columns {
				end = i
				break
			}
			if r == ' ' && i > len(indent) {
				space = i
			}
		}
		if end == len(text) {
			return append(rows, text)
		}
		if space > 0 {
			end = space
		}
		rows, text = append(rows, text[:end]), indent+strings.TrimLeft(text[end:], " ")
	}
}
