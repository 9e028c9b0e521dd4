package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// Screen shows lines and, on a terminal, a prompt below them. One goroutine writes. Any
// goroutine may call the methods that show something, between Start and Close. They wait
// while 64 lines wait to be written.
//
// The terminal's own line editor stays in use. The Screen inserts lines above the one that
// the user is typing, and overwrites the prompt in place, so that the typed text stays. If
// the typed text is longer than one row, it looks torn, but what is sent is right.
//
// Text of others must have passed [Clean] before it is shown on a terminal.
type Screen struct {
	out      *bufio.Writer // only the goroutine that writes uses it
	terminal bool          // whether there is a prompt
	over     bool          // the prompt is removed; only the goroutine that writes uses it
	columns  func() int    // of the terminal
	events   chan event    // buffered, so that a slow terminal does not delay the program
	stop     chan struct{}
	stopped  chan struct{}
	failed   chan struct{}
	err      error  // set before failed is closed
	cause    string // the last cause that was shown; only the goroutine that writes uses it
}

// event is one thing to show.
type event struct {
	text    string
	entered bool   // the user has entered a line, so that the cursor is on a new row
	cause   string // shown after the text; empty: none
}

// NewScreen returns a Screen that shows a prompt if out is a terminal.
func NewScreen(out io.Writer) *Screen {
	s := NewPlain(out)
	if Is(out) && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows" {
		s.terminal = true
		s.columns = func() int { return columns(out.(*os.File)) }
	}
	return s
}

// NewPlain returns a Screen that writes lines only, without a prompt.
func NewPlain(out io.Writer) *Screen {
	return &Screen{
		out: bufio.NewWriterSize(out, 32<<10), columns: func() int { return 80 },
		events: make(chan event, 64), stop: make(chan struct{}), stopped: make(chan struct{}), failed: make(chan struct{}),
	}
}

// Terminal reports whether s shows a prompt.
func (s *Screen) Terminal() bool { return s.terminal }

// Start starts to write. One goroutine calls prompt, four times a second and after each
// event. The prompt must always have the same width.
func (s *Screen) Start(prompt func() string) {
	go s.run(prompt) // Close waits for it
}

// Close shows the lines that are left, removes the prompt, and returns. Later lines
// are dropped.
func (s *Screen) Close() {
	close(s.stop)
	<-s.stopped
}

// Failed returns a channel that is closed when a write has failed. After that nothing more is
// written.
func (s *Screen) Failed() <-chan struct{} { return s.failed }

// Err returns the error of the write that has failed. Call it when Failed is closed.
func (s *Screen) Err() error { return s.err }

// Line shows text.
func (s *Screen) Line(text string) { s.send(event{text: text}) }

// Note shows a line of the program itself.
func (s *Screen) Note(format string, args ...any) { s.Line("-- " + fmt.Sprintf(format, args...)) }

// Away shows that the server is away, and why. On a terminal it shows nothing if the cause is
// the same as the last one, because the prompt counts down there.
func (s *Screen) Away(text, cause string) { s.send(event{text: "-- " + text, cause: cause}) }

// Entered shows the prompt on the new row after the user has entered a line.
func (s *Screen) Entered() { s.send(event{entered: true}) }

func (s *Screen) send(e event) {
	select {
	case s.events <- e:
	case <-s.stopped: // the screen is closed, so the event is dropped
	}
}

func (s *Screen) run(prompt func() string) {
	defer close(s.stopped)
	var ticks <-chan time.Time
	if s.terminal {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		ticks = tick.C
	} else {
		prompt = func() string { return "" }
	}
	shown := prompt()
	s.out.WriteString(shown)
	for {
		if len(s.events) == 0 {
			s.flush()
		}
		select {
		case e := <-s.events:
			s.show(e, prompt())
		case <-ticks:
		case <-s.stop:
			s.finish()
			return
		}
		if now := prompt(); now != shown {
			shown = now
			s.out.WriteString(save + "\r" + now + restore)
		}
	}
}

// flush hands what was written to the kernel.
func (s *Screen) flush() {
	if err := s.out.Flush(); err != nil && s.err == nil {
		s.err = err // the bufio.Writer drops what is written from now on
		close(s.failed)
	}
}

// finish shows the events that are left, without a prompt.
func (s *Screen) finish() {
	if s.terminal {
		s.out.WriteString("\r" + clearToEnd)
		s.over = true
	}
	for {
		select {
		case e := <-s.events:
			s.show(e, "")
		default:
			s.flush()
			return
		}
	}
}

func (s *Screen) show(e event, prompt string) {
	terminal := s.terminal && !s.over
	repeated := e.cause != "" && e.cause == s.cause
	if !e.entered {
		s.cause = e.cause
	}
	switch {
	case e.entered && terminal:
		s.out.WriteString("\r" + prompt)
		return
	case e.entered, repeated && terminal:
		return
	case e.cause != "":
		e.text += ": " + e.cause
	}
	if !terminal {
		s.out.WriteString(e.text)
		s.out.WriteByte('\n')
		return
	}
	for _, row := range wrap(e.text, max(s.columns(), 20)-1) {
		s.out.WriteString(makeRoom + save + "\r" + insertRow + row + restore + down)
	}
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
	for lead := ""; ; lead = indent {
		end, space, width := len(text), 0, len(lead)
		for i, r := range text {
			if width++; r >= 0x1100 { // it may be two columns wide
				width++
			}
			if width > columns {
				end = i
				break
			}
			if r == ' ' && len(lead)+i > len(indent) {
				space = i
			}
		}
		if end == len(text) {
			return append(rows, lead+text)
		}
		if space > 0 {
			end = space
		}
		rows, text = append(rows, lead+text[:end]), strings.TrimLeft(text[end:], " ")
	}
}
