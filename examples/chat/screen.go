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

// screen shows lines and, on a terminal, a prompt below them. One goroutine writes;
// any may send events, between start and close. The terminal keeps its line editor:
// lines are put in above the one that is being typed, and the prompt is written over
// in its place, so that what stands behind it stays. Only what is typed over more
// than one row looks torn; what is sent is right.
type screen struct {
	out      io.Writer
	terminal bool
	columns  func() int // of the terminal
	events   chan event // a few may wait for a slow terminal
	stop     chan struct{}
	stopped  chan struct{}
	cause    string // why we are away, as was last told; owned by the goroutine that writes
}

// event is one thing to show.
type event struct {
	text    string
	entered bool   // the user has entered a line, so that the cursor is on a new one
	cause   string // behind the text, unless that was just told; "": none, and forget the last
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

// start begins to write. The prompt is asked for four times a second, by one
// goroutine, and has always the same width.
func (s *screen) start(prompt func() string) {
	go s.run(prompt) // joined by close
}

// close returns when everything is shown, and the prompt gone.
func (s *screen) close() {
	close(s.stop)
	<-s.stopped
}

// line shows text, which must be clean.
func (s *screen) line(text string) { s.send(event{text: text}) }

// note shows a line of the program's own.
func (s *screen) note(format string, args ...any) { s.line("-- " + fmt.Sprintf(format, args...)) }

// away shows that the server is away, and why. On a terminal, where the prompt
// counts down, it shows the same cause only once in a row.
func (s *screen) away(text, cause string) { s.send(event{text: "-- " + text, cause: cause}) }

// entered says that the user has entered a line.
func (s *screen) entered() { s.send(event{entered: true}) }

func (s *screen) send(e event) {
	select {
	case s.events <- e:
	case <-s.stopped: // too late to be seen
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

// finish shows what waits, without a prompt.
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
	told := e.cause != "" && e.cause == s.cause
	if !e.entered {
		s.cause = e.cause
	}
	switch {
	case e.entered && s.terminal:
		io.WriteString(s.out, "\r"+prompt)
		return
	case e.entered, told && s.terminal:
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

// What a terminal obeys (ECMA-48, and the VT100).
const (
	save       = "\x1b7" // where the cursor is
	restore    = "\x1b8"
	makeRoom   = "\x1bD\x1b[A" // a row below this one, by scrolling if need be
	insertRow  = "\x1b[L"      // this one moves down
	down       = "\x1b[B"
	clearToEnd = "\x1b[K"
)

// indent is before the rows after the first.
const indent = "   "

// wrap cuts text into rows of so many columns, between words where there are any.
func wrap(text string, columns int) (rows []string) {
	for {
		end, space, width := len(text), 0, 0
		for i, r := range text {
			if width++; r >= 0x1100 { // perhaps a wide one
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
