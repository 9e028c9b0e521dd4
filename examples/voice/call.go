//go:build !js

package main

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// call is a call, as the service sees it. It outlives the connections over which it goes.
type call struct {
	handle string
	heard  tally // the frames of the caller
	said   tally // those of the service

	mu     sync.Mutex // guards what follows; never held across I/O
	line   *line      // by which the service speaks; nil: the caller is away
	unsent []message  // what waits for a connection
	over   bool       // the caller has hung up
}

// message is one that the service sends.
type message struct {
	kind websocket.MessageType
	data []byte
}

const (
	mostUnsent = 50              // a second; sound that is older is dropped
	writeLimit = 5 * time.Second // on one message
)

// move makes the service speak by l from its next frame on. It returns the connection before.
func (c *call) move(l *line) (before *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.line = c.line, l
	return before
}

// leave notes that l has ended.
func (c *call) leave(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == l {
		c.line = nil
	}
}

// hangUp makes the service say goodbye instead of its next frame.
func (c *call) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// speak sends frames until the caller has hung up and got the goodbye, or ctx ends.
func (c *call) speak(ctx context.Context) {
	goodbye := false
	beat(ctx, func(n uint64) bool {
		if !goodbye {
			goodbye = c.next(n)
		}
		left := c.send(ctx)
		c.said.written()
		return left || !goodbye
	})
}

// next puts frame n among what is to be sent, or the goodbye, which it reports.
func (c *call) next(n uint64) (goodbye bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := message{websocket.MessageText, control{Type: "goodbye"}.encode()}
	if !c.over {
		c.said.frame(n)
		m = message{websocket.MessageBinary, frame(n)}
	}
	if len(c.unsent) == mostUnsent {
		c.unsent = c.unsent[1:]
	}
	c.unsent = append(c.unsent, m)
	return c.over
}

// send sends what it can. It reports whether something is left.
func (c *call) send(ctx context.Context) (left bool) {
	for {
		c.mu.Lock()
		l, unsent := c.line, c.unsent
		c.mu.Unlock()
		if l == nil || len(unsent) == 0 {
			return len(unsent) > 0
		}
		if l.write(ctx, unsent[0]) != nil {
			c.leave(l)
			continue
		}
		c.mu.Lock()
		c.unsent = c.unsent[1:]
		c.mu.Unlock()
	}
}
