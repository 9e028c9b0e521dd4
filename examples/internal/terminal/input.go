package terminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// Input hands over the lines of a reader, without their ends. It cuts a line that is longer
// than its limit to one byte more than that, so that the receiver sees that it was too long.
type Input struct {
	r     io.Reader
	lines chan string

	mu      sync.Mutex // guards what follows
	waiting bool       // a call of r.Read is under way, so that no line is there
	over    bool       // r is not read again, and what a call under way reads is dropped
}

// NewInput starts to read lines of at most limit bytes. The caller calls Close. Nothing can end
// the read of a terminal, so the goroutine that reads may stay until the program ends.
func NewInput(r io.Reader, limit int) *Input {
	i := &Input{r: r, lines: make(chan string)}
	go i.read(limit) // nothing waits for it
	return i
}

// Lines returns the channel on which the lines come. It is closed when the reader has ended.
func (i *Input) Lines() <-chan string { return i.lines }

// Each calls f with each line, until the input or ctx ends or done is closed. Then it ends the reading,
// and calls f with the lines that were read by then.
func (i *Input) Each(ctx context.Context, done <-chan struct{}, f func(line string)) {
	for {
		select {
		case line, more := <-i.lines:
			if !more {
				return
			}
			f(line)
			continue
		case <-ctx.Done():
		case <-done:
		}
		for _, line := range i.Rest() {
			f(line)
		}
		return
	}
}

// Rest ends the reading. It returns the whole lines that were read by then, but not received,
// without waiting for more input. After that no line comes.
func (i *Input) Rest() (lines []string) {
	i.mu.Lock()
	i.over = true
	waiting := i.waiting
	i.mu.Unlock()
	if waiting {
		return nil
	}
	for line := range i.lines { // until read has to read more
		lines = append(lines, line)
	}
	return lines
}

// Close ends the reading, and drops what was read, but not received.
func (i *Input) Close() { i.Rest() }

func (i *Input) read(limit int) {
	defer close(i.lines)
	in := bufio.NewReader(source{i})
	for {
		line, err := readLine(in, limit)
		if err != nil && (line == "" || errors.Is(err, errOver)) {
			return
		}
		i.lines <- line // Rest receives it if nobody else does
	}
}

// source reads from an Input's reader, until the Input is over.
type source struct{ *Input }

var errOver = errors.New("the input is over")

func (s source) Read(b []byte) (int, error) {
	if s.set(true) {
		return 0, errOver
	}
	n, err := s.r.Read(b)
	if s.set(false) {
		return 0, errOver
	}
	return n, err
}

// set sets waiting, and reports whether the Input is over.
func (s source) set(waiting bool) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = waiting
	return s.over
}

// readLine returns the next line, cut to limit+1 bytes. It may return the last line together
// with an error.
func readLine(in *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		room := limit + len("x\r\n") - len(line) // so that an end is whole if the line is not too long
		line = append(line, part[:min(room, len(part))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			return string(line[:min(len(line), limit+1)]), err
		}
	}
}
