//go:build !js

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect"
)

const help = "what you type is sent to everybody; /who lists who is here; /quit or Ctrl-D leaves; an empty line dials at once while the server is away"

// talk does what is typed until there is no more, ctx ends, or the connection does,
// which is an error.
func (c *client) talk(ctx context.Context, stdin io.Reader) error {
	over := make(chan struct{})
	defer close(over)
	typed := make(chan string)
	go read(stdin, typed, over) // waited for by nobody: a read of a terminal cannot be cut, and ends with the process
	for {
		if err := c.journal.room(ctx); err != nil {
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

// obey does what one line asks for, and reports whether to go on.
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
		if err := c.journal.say(text, c.conn.Send); err != nil {
			c.unsaid(text, err)
		}
	}
	return true
}

// sayable returns what is typed as it is said. It may be empty.
func sayable(typed string) (string, error) {
	text := strings.ToValidUTF8(typed, "\uFFFD") // JSON would do so too, and perhaps make it too long
	if len(text) > maxText {
		return "", fmt.Errorf("longer than %d bytes: it begins with %.20q", maxText, text)
	}
	return strings.TrimSpace(text), nil
}

// read sends each line, or as much of it as shows that it is too long, until the
// end of r, or until over is closed.
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

// readLine returns the next line, without what is beyond a limit. The last line
// may come with an error.
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

// list is names, each as often as it is there.
func list(names []string) string {
	times := map[string]int{}
	for _, name := range names {
		times[name]++
	}
	var texts []string
	for _, name := range names {
		switch n := times[name]; {
		case n > 1:
			texts = append(texts, fmt.Sprintf("%s (%d times)", name, n))
		case n == 1:
			texts = append(texts, name)
		}
		delete(times, name)
	}
	return strings.Join(texts, ", ")
}
