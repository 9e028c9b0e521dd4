package rotate_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/reconnect"
)

// numberServer is a real WebSocket server that sends the numbers from 1 on, as time goes by.
// A connection gets a welcome, and then the numbers from then on, each with the name of the
// proxy's process that it came through. A request that is no handshake gets that name.
type numberServer struct {
	second  second
	stagger time.Duration // how much later each further connection gets a number

	mu     sync.Mutex    // guards what follows
	number int           // the last one
	live   []*numberConn // the oldest first
	ended  int           // the last number of the connection that ended last
}

// second is what a numberServer does with a second connection.
type second uint8

const (
	secondGetsAll        second = iota // both get all numbers
	secondShares                       // each number goes to one of them, in turns
	secondReplaces                     // the first is closed a moment after the second is accepted
	secondReplacesBefore               // the first is closed a moment before the second is accepted
	secondIsRefused                    // the second handshake is answered with 409
	secondIsClosed                     // the second is accepted, and closed with 4409 instead of a welcome
	secondIsNoResume                   // a handshake with a token is answered with 409; without one, both get all
)

func (s second) String() string {
	return [...]string{"GetsAll", "Shares", "Replaces", "ReplacesBefore", "IsRefused", "IsClosed", "IsNoResume"}[s]
}

// numberConn is one connection of a numberServer.
type numberConn struct {
	process string
	queue   chan numberFrame
}

// numberFrame is what is sent next: a message, or a close frame if code is not 0.
type numberFrame struct {
	text string
	code websocket.StatusCode
	wait time.Duration // before it is sent
}

// moment is how long a numberServer takes to replace a connection.
const moment = 150 * time.Millisecond

// run serves on l, and sends a number at each interval, until the test ends.
func (s *numberServer) run(t *testing.T, l net.Listener, interval time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: s, BaseContext: func(net.Listener) context.Context { return ctx }}
	var work sync.WaitGroup
	work.Go(func() { server.Serve(l) }) // both are waited for below
	work.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.tick()
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		server.Close()
		cancel() // also of the handlers, which net/http started
		work.Wait()
	})
}

// tick sends the next number.
func (s *numberServer) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	for i, c := range s.live {
		if s.second != secondShares || s.number%len(s.live) == i {
			c.queue <- numberFrame{text: fmt.Sprint(s.number, " ", c.process), wait: time.Duration(i) * s.stagger}
		}
	}
}

func (s *numberServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	process, token := r.Header.Get("X-Process"), r.URL.Query().Has("token")
	if r.Header.Get("Upgrade") == "" {
		io.WriteString(w, process)
		return
	}
	if s.refuses(token) {
		http.Error(w, "another connection is alive", http.StatusConflict)
		return
	}
	if s.second == secondReplacesBefore && s.closeFirst(0) {
		time.Sleep(moment)
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	ctx := c.CloseRead(r.Context())
	n := &numberConn{process: process, queue: make(chan numberFrame, 1<<16)} // so that tick does not wait
	s.join(n, token)
	defer s.leave(n)
	if s.second == secondReplaces {
		time.AfterFunc(moment, func() { s.closeFirst(1) })
	}
	for {
		select {
		case f := <-n.queue:
			time.Sleep(f.wait)
			if f.code != 0 {
				c.Close(f.code, "there is another connection")
				return
			}
			if c.Write(ctx, websocket.MessageText, []byte(f.text)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// refuses reports whether a handshake, with a token or without, is refused.
func (s *numberServer) refuses(token bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) > 0 && (s.second == secondIsRefused || token && s.second == secondIsNoResume)
}

// join sends the welcome. A connection with a token gets the numbers that the one before has
// not got.
func (s *numberServer) join(n *numberConn, token bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second == secondIsClosed && len(s.live) > 0 {
		n.queue <- numberFrame{code: 4409}
		return
	}
	s.live = append(s.live, n)
	if !token {
		n.queue <- numberFrame{text: "welcome"}
		return
	}
	n.queue <- numberFrame{text: "resumed"}
	for i := s.ended + 1; i <= s.number; i++ {
		n.queue <- numberFrame{text: fmt.Sprint(i, " ", n.process)}
	}
}

func (s *numberServer) leave(n *numberConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.live, n); i >= 0 {
		s.live = slices.Delete(s.live, i, i+1)
		s.ended = s.number
	}
}

// closeFirst closes the oldest connection, if there are more than so many others. It sends no
// number there after that.
func (s *numberServer) closeFirst(others int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) <= others {
		return false
	}
	s.live[0].queue <- numberFrame{code: 4001}
	s.live = s.live[1:]
	return true
}

// awaitWelcome is an OnSession that waits for the welcome of a numberServer.
func awaitWelcome(_ context.Context, o *reconnect.Opening) error {
	m, err := o.Read()
	switch {
	case err != nil:
		return err
	case string(m.Data) == "resumed":
		return o.Resumed()
	case string(m.Data) != "welcome":
		return fmt.Errorf("%q instead of a welcome", m.Data)
	}
	return nil
}
