package rotate

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// feed sends numbered messages to its members.
type feed struct {
	moves bool // to the newest only

	mu      sync.Mutex // guards what follows; never held across I/O
	sent    uint64
	members []*member // the oldest first
}

// member is a connection. It has said hello.
type member struct {
	ws    *websocket.Conn
	queue chan []byte // two seconds of messages
}

const messageBytes = 128

// hello is the first message of a client, and the answer to it.
var hello = []byte("hello")

// run sends so many messages per second. It makes up for lost time.
func (f *feed) run(rate int) {
	begun := time.Now()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for range tick.C {
		for due := uint64(time.Since(begun).Seconds() * float64(rate)); f.sent < due; {
			f.send()
		}
	}
}

// send sends the next message. Only run calls it.
func (f *feed) send() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	data := make([]byte, messageBytes)
	binary.BigEndian.PutUint64(data, f.sent)
	for _, m := range f.members {
		m.put(data)
	}
}

// put queues data, unless the client reads too slowly.
func (m *member) put(data []byte) {
	select {
	case m.queue <- data:
	default:
	}
}

// meet serves a connection until it ends, or until it is that old.
func (f *feed) meet(ws *websocket.Conn, life time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, _, err := ws.Read(ctx); err != nil {
		return
	}
	m := &member{ws: ws, queue: make(chan []byte, 2048)}
	m.put(hello)
	before := f.join(m)
	written := make(chan struct{})
	go func() { // <-written waits for it
		defer close(written)
		m.write(ctx, life)
	}()
	if f.moves && before != nil {
		before.ws.Close(websocket.StatusNormalClosure, "moved")
	}
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			break
		}
	}
	f.leave(m)
	cancel()
	<-written
}

// write writes the messages of the queue until ctx ends, or the connection is that old.
func (m *member) write(ctx context.Context, life time.Duration) {
	var old <-chan time.Time
	if life > 0 {
		old = time.After(life)
	}
	for {
		select {
		case data := <-m.queue:
			if m.ws.Write(ctx, websocket.MessageBinary, data) != nil {
				return
			}
		case <-old:
			m.ws.Close(websocket.StatusGoingAway, "time is up")
			return
		case <-ctx.Done():
			return
		}
	}
}

// join adds m, and returns the member before. That gets no more messages if the feed moves.
func (f *feed) join(m *member) (before *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.members); n > 0 {
		before = f.members[n-1]
	}
	if f.moves {
		f.members = nil
	}
	f.members = append(f.members, m)
	return before
}

func (f *feed) leave(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range f.members {
		if one == m {
			f.members = append(f.members[:i:i], f.members[i+1:]...)
			return
		}
	}
}
