//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect/replay"
)

const help = "what you type is sent to everybody; /who lists who is here; /quit or Ctrl-D leaves; an empty line dials at once while the server is away"

// talk obeys typed lines until the input or ctx ends. It returns an error if the connection
// is closed first. A line that was read by then is obeyed still.
func (c *client) talk(ctx context.Context, stdin io.Reader) error {
	in := terminal.NewInput(stdin, maxText)
	defer in.Close()
	for {
		var err error
		select {
		case text, more := <-in.Lines():
			if !more {
				return nil
			}
			c.screen.Entered()
			if !c.obey(ctx, text) {
				return nil
			}
			continue
		case <-ctx.Done():
		case <-c.conn.Done():
			err = c.conn.Err()
		}
		for _, text := range in.Rest() {
			if !c.obey(ctx, text) {
				break
			}
		}
		return err
	}
}

// obey carries out one typed line, and reports whether to go on. While there is no room for a
// line it waits, until ctx ends.
func (c *client) obey(ctx context.Context, text string) bool {
	text, err := sayable(text)
	switch {
	case err != nil:
		c.screen.Note("not sent: %v", err)
	case text == "":
		c.conn.Kick()
	case text == "/quit":
		return false
	case text == "/help":
		c.screen.Note("%s", help)
	case text == "/who":
		if c.conn.Write(ctx, encode(message{Type: "who"})) != nil && ctx.Err() == nil {
			c.screen.Note("/who: the server is away")
		}
	case strings.HasPrefix(text, "/"):
		c.screen.Note("no such command: %.20q", text)
	default:
		_, err := c.ledger.Add([]byte(text)) // also if ctx has just ended: the line was typed before
		if errors.Is(err, replay.ErrFull) {
			_, err = c.ledger.AddWait(ctx, []byte(text))
		}
		if err != nil {
			c.refused++
			c.showUnsent(text, false, err)
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
