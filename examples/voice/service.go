package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// service is a voice service with one call. It ends every connection after its life, with a
// warning when a fifth of the life is left. The call outlives the connections over which it goes.
type service struct {
	life   time.Duration
	frames frames
	ctx    context.Context // of the call
	cancel context.CancelFunc
	work   sync.WaitGroup // all goroutines
	handle string         // of the call

	line atomic.Pointer[line] // by which the service speaks; nil before the call
	over atomic.Bool          // the caller has hung up
}

const (
	noSuchCall = 4004            // closes a connection that wants to resume an unknown call
	writeLimit = 5 * time.Second // on one message
)

// newService returns a service. The caller closes it.
func newService(life time.Duration) *service {
	s := &service{life: life, handle: rand.Text()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends the call and waits for all goroutines.
func (s *service) close() {
	s.cancel()
	s.work.Wait()
}

// ServeHTTP serves one connection until it ends.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ws, err := websocket.Accept(w, r, nil); err == nil {
		defer ws.CloseNow()
		s.serve(ws)
	}
}

func (s *service) serve(ws *websocket.Conn) {
	s.work.Add(1)
	defer s.work.Done()
	_, data, err := ws.Read(s.ctx)
	q, wrong := decode(data)
	if err != nil || wrong != nil || q.Type != "setup" {
		ws.Close(websocket.StatusPolicyViolation, "want a setup first")
		return
	}
	if q.Handle != "" && q.Handle != s.handle {
		ws.Close(noSuchCall, "no such call")
		return
	}
	l := &line{ws: ws, service: s}
	if l.tell(control{Type: "ready", Handle: s.handle}) != nil {
		return
	}
	before := s.line.Swap(l) // the next frame goes by l
	if before == nil {
		s.work.Go(s.speak)
	}
	ctx, ended := context.WithCancel(s.ctx)
	s.work.Go(func() { l.expire(ctx) })
	l.read(ctx, before)
	ended()
}

// speak sends frames until the caller has hung up and got the goodbye. A frame that cannot be sent
// is lost, because sound that is late is of no use.
func (s *service) speak() {
	beat(s.ctx, func(n uint64) bool {
		l := s.line.Load()
		if s.over.Load() {
			return l.tell(control{Type: "goodbye"}) != nil
		}
		s.frames.toCaller.send()
		_ = l.write(websocket.MessageBinary, frame(n))
		return true
	})
}

// line is one connection of a call, at the service.
type line struct {
	ws      *websocket.Conn
	service *service
}

// read hears the caller until the connection ends. With the first message the caller has come over
// from the line before. Read closes that when all frames have come up to the newest, because Close drops what
// nobody has read. If a frame is lost for good, the caller closes the line before.
func (l *line) read(ctx context.Context, before *line) {
	s := l.service
	for {
		kind, data, err := l.ws.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			n, err := number(data)
			if err != nil {
				return
			}
			s.frames.toService.receive(n)
		} else if q, err := decode(data); err != nil || q.Type != "hangUp" {
			return
		} else {
			s.over.Store(true)
		}
		if old := before; old != nil && s.frames.toService.complete() {
			before = nil
			s.work.Go(func() { old.ws.Close(websocket.StatusNormalClosure, "the call has moved") })
		}
	}
}

// expire warns the caller and then closes the connection, unless ctx ends before.
func (l *line) expire(ctx context.Context) {
	s := l.service
	warn := s.life / 5
	if !sleep(ctx, s.life-warn) || l.tell(control{Type: "goAway", Handle: s.handle, TimeLeft: warn.Milliseconds()}) != nil {
		return
	}
	if sleep(ctx, warn) {
		l.ws.Close(websocket.StatusGoingAway, "time is up")
	}
}

// sleep reports whether d has passed before ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *line) tell(c control) error {
	return l.write(websocket.MessageText, c.message().Data)
}

func (l *line) write(kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(l.service.ctx, writeLimit)
	defer cancel()
	return l.ws.Write(ctx, kind, data)
}
