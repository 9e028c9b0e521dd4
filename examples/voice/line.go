//go:build !js

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// line is one connection of a call, at the service.
type line struct {
	ws     *websocket.Conn
	call   *call
	before *line         // the one that it replaces; nil: none
	moved  chan struct{} // closed when the caller speaks by the next one
	once   sync.Once     // closes moved
}

// read hears the caller until the connection ends.
func (l *line) read(ctx context.Context) {
	for {
		kind, data, err := l.ws.Read(ctx)
		if err != nil {
			return
		}
		if l.before != nil { // the caller has come over, and needs the old connection no more
			l.before.end()
			l.before = nil
		}
		switch kind {
		case websocket.MessageBinary:
			n, err := number(data)
			if err != nil {
				return
			}
			l.call.heard.frame(n)
		default:
			if q, err := decode(data); err != nil || q.Type != "hangUp" {
				return
			}
			l.call.hangUp()
		}
	}
}

// end makes the service close the connection, because the call has moved to another.
func (l *line) end() { l.once.Do(func() { close(l.moved) }) }

// watch warns the caller and then closes the connection, unless over is closed before.
func (l *line) watch(over <-chan struct{}, life, warn time.Duration) {
	timer := time.NewTimer(life - warn)
	defer timer.Stop()
	for warned := false; ; warned = true {
		select {
		case <-over:
			return
		case <-l.moved:
			l.ws.Close(websocket.StatusNormalClosure, "the call has moved")
			return
		case <-timer.C:
		}
		if warned {
			l.ws.Close(websocket.StatusGoingAway, "time is up")
			return
		}
		warning := control{Type: "goAway", Handle: l.call.handle, TimeLeft: warn.Milliseconds()}
		if l.write(context.Background(), message{websocket.MessageText, warning.encode()}) != nil {
			return // read notices that the connection has ended
		}
		timer.Reset(warn)
	}
}

func (l *line) write(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return l.ws.Write(ctx, m.kind, m.data)
}

// readControl reads a message, which must be a control.
func readControl(ctx context.Context, ws *websocket.Conn) (control, error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	kind, data, err := ws.Read(ctx)
	if err != nil {
		return control{}, err
	}
	if kind != websocket.MessageText {
		return control{}, fmt.Errorf("want a text message, got %v", kind)
	}
	return decode(data)
}
