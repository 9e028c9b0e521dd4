//go:build !js

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

// printer prints lines and, on a terminal, a status line below them. One goroutine writes.
// Any goroutine may send lines.
type printer struct {
	out      io.Writer
	terminal bool
	lines    chan string // buffered, so that a slow terminal does not delay the client
	stop     chan struct{}
	stopped  chan struct{}
}

func newPrinter(out io.Writer) *printer {
	return &printer{
		out: out, terminal: terminal.Is(out) && os.Getenv("TERM") != "dumb",
		lines: make(chan string, 64), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// start starts to write. One goroutine calls status, four times a second and for each line.
func (p *printer) start(status func() string) {
	go p.run(status) // close waits for it
}

// close writes the lines that are left, removes the status line, and returns. No line may
// be sent after it.
func (p *printer) close() {
	close(p.stop)
	<-p.stopped
}

const clearLine = "\r\x1b[K" // back to the left, and clear to the end

func (p *printer) run(status func() string) {
	defer close(p.stopped)
	if !p.terminal {
		status = func() string { return "" }
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case line := <-p.lines:
			p.write(line+"\n"+p.waiting(), status())
		case <-tick.C:
			p.write("", status())
		case <-p.stop:
			p.write(p.waiting(), "")
			return
		}
	}
}

// waiting returns the lines that are queued.
func (p *printer) waiting() (lines string) {
	for {
		select {
		case line := <-p.lines:
			lines += line + "\n"
		default:
			return lines
		}
	}
}

// write prints lines above the status line. It ignores a write error, because there is
// nowhere else to report it.
func (p *printer) write(lines, status string) {
	if p.terminal {
		lines = clearLine + lines + status
	}
	io.WriteString(p.out, lines)
}

// status returns what makes the line at the bottom of a terminal. One goroutine may call it.
func (j *journal) status(feed *reconnect.Conn, more func() string) func() string {
	var received rate
	return func() string {
		s := feed.Status()
		line := fmt.Sprintf("%7.3fs  %-10v  session %d, %.0f msg/s", time.Since(j.start).Seconds(), s.State, s.Session,
			received.of(feed.Stats().Received, time.Now()))
		if s.State == reconnect.StateWaiting {
			line += fmt.Sprintf(", next try in %.1fs", max(time.Until(s.Next), 0).Seconds())
		}
		return short(line+more(), 79)
	}
}

// rate computes how fast a count grows, over the last second.
type rate struct{ samples []sample }

type sample struct {
	count uint64
	at    time.Time
}

// of adds a sample and returns the rate per second.
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
