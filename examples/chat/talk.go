//go:build !js

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect"
)

const help = "what you type is sent to everybody; /who lists who is here; /quit or Ctrl-D leaves; an empty line dials at once while the server is away"

// talk obeys typed lines until the input or ctx ends. It returns an error if the connection
// is closed first.
func (c *client) talk(ctx context.Context, stdin io.Reader) error {
	over := make(chan struct{})
	defer close(over)
	typed := make(chan string)
	go read(stdin, typed, over) // nothing waits for it, because nothing can end the read of a terminal
	for {
		if err := c.sent.awaitRoom(ctx); err != nil {
			return nil
		}
		select {
		case text, more := <-typed:
			if !more {
				return nil
			}
			c.screen.entered()
			if !c.obey(text) {
				return nil
			}
		case <-ctx.Done():
			return nil
		case <-c.conn.Done():
			return c.conn.Err()
		}
	}
}

// obey carries out one typed line, and reports whether to go on.
func (c *client) obey(text string) bool {
	text, err := sayable(text)
	switch {
	case err != nil:
		c.screen.note("not sent: %v", err)
	case text == "":
		c.conn.Kick()
	case text == "/quit":
		return false
	case text == "/help":
		c.screen.note("%s", help)
	case text == "/who":
		o := reconnect.Out{Message: encode(message{Type: "who"}), Deadline: time.Now().Add(2 * time.Second)}
		if err := c.conn.Send(o); err != nil {
			c.screen.note("/who: %v", err)
		}
	case strings.HasPrefix(text, "/"):
		c.screen.note("no such command: %.20q", text)
	default:
		if err := c.sent.say(text, c.conn.Send); err != nil {
			c.showUnsent(text, err)
		}
	}
	return true
}

// sayable returns a typed line as it is sent. It may be empty.
func sayable(typed string) (string, error) {
	text := strings.ToValidUTF8(typed, "\uFFFD") // as JSON does, but before the length is checked
	if len(text) > maxText {
		return "", fmt.Errorf("longer than %d bytes: it begins with %.20q", maxText, text)
	}
	return strings.TrimSpace(text), nil
}

// read sends each line of r to lines, until r ends or over is closed. It cuts a line that is
// too long, and leaves enough of it to show that.
func read(r io.Reader, lines chan<- string, over <-chan struct{}) {
	defer close(lines)
	in := bufio.NewReader(r)
	for {
		line, err := readLine(in)
		if err != nil && line == "" {
			return
		}
		select {
		case lines <- line:
		case <-over:
			return
		}
	}
}

// readLine returns the next line, cut to maxText+1 bytes. It may return the last line together
// with an error.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := maxText + 1 - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimRight(string(line), "\r\n"), err
		}
	}
}

// list formats names in order, with the number of times that each occurs.
func list(names []string) string {
	times := map[string]int{}
	for _, name := range names {
		times[name]++
	}
	texts := slices.Sorted(maps.Keys(times))
	for i, name := range texts {
		if n := times[name]; n > 1 {
			texts[i] += fmt.Sprintf(" (%d times)", n)
		}
	}
	return strings.Join(texts, ", ")
}
