//go:build !js

package venue

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/coder/websocket"
)

// member is a client that is logged in, on one connection.
type member struct {
	ws         *websocket.Conn
	number     uint64
	muted      atomic.Bool     // nothing is sent any more
	subscribed map[string]bool // the venue's mu guards it, the sends to queue, and its close
	queue      chan []byte     // bounded: a client that reads too slowly loses updates, and sees a gap
}

// ServeHTTP serves one client until its connection ends.
func (v *Venue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	closed, door := v.closed, v.door
	if !closed { // because Close waits for those that were counted before
		v.work.Add(1)
		defer v.work.Done()
	}
	v.mu.Unlock()
	if closed || door == Busy {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the venue is closed, or busy", http.StatusServiceUnavailable)
		return
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bearer && !v.redeem(token) {
		http.Error(w, badToken, http.StatusUnauthorized)
		return
	}
	m := &member{subscribed: map[string]bool{}, queue: make(chan []byte, queue)}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{ // it refuses pages of other origins
		OnPingReceived: func(context.Context, []byte) bool { return !m.muted.Load() },
	})
	if err != nil {
		return
	}
	defer ws.CloseNow()
	if m.ws = ws; door == Drops || !bearer && !v.login(m) || !v.admit(m) {
		return
	}
	written := make(chan struct{})
	go func() { // <-written waits for it
		defer close(written)
		m.write(v.ctx)
	}()
	for err == nil {
		var request Message
		if request, err = m.read(v.ctx); err == nil {
			v.answer(m, &request)
		}
	}
	v.dismiss(m, websocket.CloseStatus(err))
	ws.CloseNow()
	<-written
}

const badToken = "the token is bad, or was used"

// login reads the first message, which must have a good token.
func (v *Venue) login(m *member) bool {
	ctx, cancel := context.WithTimeout(v.ctx, loginLimit)
	defer cancel()
	first, err := m.read(ctx)
	if err != nil {
		return false
	}
	if first.Op != "login" || !v.redeem(first.Token) {
		m.ws.Close(websocket.StatusPolicyViolation, badToken)
		return false
	}
	return true
}

// admit lists m, and welcomes it. It returns false if the venue has begun to cut connections meanwhile.
func (v *Venue) admit(m *member) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || v.door != Open {
		return false
	}
	v.count++
	m.number = v.count
	v.members[m] = true
	m.sendMessage(Message{Type: "welcome", Conn: m.number})
	return true
}

func (v *Venue) dismiss(m *member, code websocket.StatusCode) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.members, m)
	close(m.queue)
	if v.ends = append(v.ends, End{m.number, code}); len(v.ends) > maxEnds {
		v.ends = v.ends[1:]
	}
}

// read reads the next request. Those that come while m is muted have no effect.
func (m *member) read(ctx context.Context) (Message, error) {
	for {
		_, data, err := m.ws.Read(ctx)
		if err != nil {
			return Message{}, err
		}
		if m.muted.Load() {
			continue
		}
		request, err := Decode(data)
		if err != nil {
			m.ws.Close(websocket.StatusUnsupportedData, "not JSON")
			return Message{}, fmt.Errorf("not JSON: %w", err)
		}
		return request, nil
	}
}

// sendMessage queues a message. The caller holds the venue's mu.
func (m *member) sendMessage(msg Message) { m.send(msg.Encode().Data) }

func (m *member) send(text []byte) {
	select {
	case m.queue <- text:
	default: // the client will see a gap, and ask for a snapshot
	}
}

// write writes the messages of the queue until the queue is closed.
func (m *member) write(ctx context.Context) {
	for text := range m.queue {
		if !m.muted.Load() && m.ws.Write(ctx, websocket.MessageText, text) != nil {
			m.ws.CloseNow()
		}
	}
}
