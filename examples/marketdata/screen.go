//go:build !js

package main

import (
	"io"
	"os"
	"time"
)

// screen shows lines and, on a terminal, a status line below them. One
// goroutine writes; any may send lines.
type screen struct {
	out      io.Writer
	terminal bool
	lines    chan string // a few may wait for a slow terminal
	stop     chan struct{}
	stopped  chan struct{}
}

func newScreen(out *os.File) *screen {
	return &screen{
		out: out, terminal: isTerminal(out),
		lines: make(chan string, 64), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// start begins to write. The status is asked for four times a second, by one goroutine.
func (s *screen) start(status func() string) {
	go s.run(status) // joined by close
}

// close returns when every line is written, and the status line gone. No line may be
// sent after it.
func (s *screen) close() {
	close(s.stop)
	<-s.stopped
}

const clearLine = "\r\x1b[K" // back to the left, and clear to the end

func (s *screen) run(status func() string) {
	defer close(s.stopped)
	if !s.terminal {
		status = func() string { return "" }
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case line := <-s.lines:
			s.write(line+"\n"+s.waiting(), status())
		case <-tick.C:
			s.write("", status())
		case <-s.stop:
			s.write(s.waiting(), "")
			return
		}
	}
}

// waiting returns the lines that wait to be shown.
func (s *screen) waiting() (lines string) {
	for {
		select {
		case line := <-s.lines:
			lines += line + "\n"
		default:
			return lines
		}
	}
}

// write shows lines above the status line. Who cannot be written to misses it.
func (s *screen) write(lines, status string) {
	if s.terminal {
		lines = clearLine + lines + status
	}
	io.WriteString(s.out, lines)
}

// rate is how fast a count goes up, over the last second.
type rate struct{ samples []sample }

type sample struct {
	count uint64
	at    time.Time
}

// of returns the rate, per second, when the count is so much.
func (r *rate) of(count uint64, now time.Time) float64 {
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= time.Second {
		r.samples = r.samples[1:]
	}
	r.samples = append(r.samples, sample{count, now})
	first := r.samples[0]
	if now == first.at {
		return 0
	}
	return float64(count-first.count) / now.Sub(first.at).Seconds()
}
