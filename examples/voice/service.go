//go:build !js

package main

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// service is a voice service with one call. It ends every connection after some time, with a
// warning. The call outlives the connections over which it goes.
type service struct {
	life, warn time.Duration
	heard      tally           // the frames of the caller
	said       tally           // those of the service
	ctx        context.Context // of the call
	cancel     context.CancelFunc
	work       sync.WaitGroup // the goroutines in serve and in speak

	mu     sync.Mutex // guards what follows; never held across I/O
	handle string     // of the call; "": it has not begun
	line   *line      // by which the service speaks
	over   bool       // the caller has hung up
}

const (
	noSuchCall = 4004            // closes a connection that wants to resume an unknown call
	writeLimit = 5 * time.Second // on one message
)

// newService returns a service. The caller closes it.
func newService(life, warn time.Duration) *service {
	s := &service{life: life, warn: warn}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends the call and waits for all goroutines.
func (s *service) close() {
	s.cancel()
	s.work.Wait()
}

// serve serves one connection until it ends.
func (s *service) serve(ws *websocket.Conn) {
	s.work.Add(1)
	defer s.work.Done()
	_, data, err := ws.Read(s.ctx)
	q, wrong := decode(data)
	if err != nil || wrong != nil || q.Type != "setup" {
		ws.Close(websocket.StatusPolicyViolation, "want a setup first")
		return
	}
	handle, ok := s.resume(q.Handle)
	if !ok {
		ws.Close(noSuchCall, "no such call")
		return
	}
	l := &line{ws: ws, service: s, moved: make(chan struct{})}
	if l.write(s.ctx, websocket.MessageText, control{Type: "ready", Handle: handle}.message().Data) != nil {
		return
	}
	l.before = s.move(l)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() { // <-watched waits for it
		defer close(watched)
		l.watch(over, control{Type: "goAway", Handle: handle, TimeLeft: s.warn.Milliseconds()})
	}()
	l.read(s.ctx)
	close(over)
	ws.CloseNow()
	<-watched
}

// resume returns the handle of the call, which it begins if handle is empty and there is none.
func (s *service) resume(handle string) (call string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handle != s.handle {
		return "", false
	}
	if handle == "" {
		s.handle = rand.Text()
	}
	return s.handle, true
}

// move makes the service speak by l from its next frame on, or begin to speak. It returns the connection
// before.
func (s *service) move(l *line) (before *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.line = s.line, l
	if before == nil {
		s.work.Go(s.speak) // close waits for it
	}
	return before
}

// hangUp makes the service say goodbye instead of its next frame.
func (s *service) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// speak sends frames until the caller has hung up and got the goodbye. A frame that cannot be sent
// is lost, because sound that is late is of no use.
func (s *service) speak() {
	beat(s.ctx, func(n uint64) bool {
		s.mu.Lock()
		l, over := s.line, s.over
		s.mu.Unlock()
		if over {
			return l.write(s.ctx, websocket.MessageText, control{Type: "goodbye"}.message().Data) != nil
		}
		s.said.frame(n)
		_ = l.write(s.ctx, websocket.MessageBinary, frame(n))
		return true
	})
}

// line is one connection of a call, at the service.
type line struct {
	ws      *websocket.Conn
	service *service
	before  *line         // the connection that it replaces; nil: none
	moved   chan struct{} // closed by the next one, when the caller speaks by that
}

// read hears the caller until the connection ends.
func (l *line) read(ctx context.Context) {
	for {
		kind, data, err := l.ws.Read(ctx)
		if err != nil {
			return
		}
		if l.before != nil { // the caller has come over, and needs the old connection no more
			close(l.before.moved)
			l.before = nil
		}
		if kind == websocket.MessageBinary {
			n, err := number(data)
			if err != nil {
				return
			}
			l.service.heard.frame(n)
		} else if q, err := decode(data); err != nil || q.Type != "hangUp" {
			return
		} else {
			l.service.hangUp()
		}
	}
}

// watch warns the caller and then closes the connection, unless over is closed before.
func (l *line) watch(over <-chan struct{}, warning control) {
	timer := time.NewTimer(l.service.life - l.service.warn)
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
		if l.write(context.Background(), websocket.MessageText, warning.message().Data) != nil {
			return // read notices that the connection has ended
		}
		timer.Reset(l.service.warn)
	}
}

func (l *line) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return l.ws.Write(ctx, kind, data)
}
