//go:build !js

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// service is a voice service that ends every connection after some time, with a warning.
type service struct {
	life, warn time.Duration
	ctx        context.Context // of all calls
	cancel     context.CancelFunc
	work       sync.WaitGroup // the goroutines in serve and in call.speak

	mu    sync.Mutex // guards calls
	calls map[string]*call
}

// noSuchCall is the code with which the service closes a connection that wants to resume a call
// that it does not know.
const noSuchCall = 4004

// newService returns a service. The caller closes it.
func newService(life, warn time.Duration) *service {
	s := &service{life: life, warn: warn, calls: map[string]*call{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends all calls and waits for them.
func (s *service) close() {
	s.cancel()
	s.work.Wait()
}

// serve serves one connection until it ends.
func (s *service) serve(ws *websocket.Conn) {
	s.work.Add(1)
	defer s.work.Done()
	q, err := readControl(s.ctx, ws)
	if err != nil || q.Type != "setup" {
		ws.Close(websocket.StatusPolicyViolation, "want a setup first")
		return
	}
	c := s.call(q.Handle)
	if c == nil {
		ws.Close(noSuchCall, "no such call")
		return
	}
	if ws.Write(s.ctx, websocket.MessageText, control{Type: "ready", Handle: c.handle}.encode()) != nil {
		return
	}
	l := &line{ws: ws, call: c, moved: make(chan struct{})}
	l.before = c.move(l)
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() { // <-watched waits for it
		defer close(watched)
		l.watch(over, s.life, s.warn)
	}()
	l.read(s.ctx)
	c.leave(l)
	close(over)
	ws.CloseNow()
	<-watched
}

// call returns the call with that handle, nil if there is none. It begins a call if handle is
// empty.
func (s *service) call(handle string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handle != "" {
		return s.calls[handle]
	}
	c := &call{handle: fmt.Sprintf("call-%d", len(s.calls)+1)}
	s.calls[c.handle] = c
	s.work.Go(func() { c.speak(s.ctx) }) // close waits for it
	return c
}

// first returns the first call, or one without frames if there was none.
func (s *service) first() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls["call-1"]; c != nil {
		return c
	}
	return &call{}
}
