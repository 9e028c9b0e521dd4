package rotate

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/redial-go/redial/bench/internal/child"
	"github.com/stretchr/testify/require"
)

// feed is a server that sends numbered messages to its members.
type feed struct {
	moves bool          // only the newest gets messages, and the one before is closed; else all get everything
	rate  int           // messages per second; 0: none
	life  time.Duration // each connection is ended after that; 0: none is

	mu      sync.Mutex // guards what follows; never held across I/O
	members []*member  // the oldest first
}

// member is a connection. It has said hello.
type member struct {
	ws    *websocket.Conn
	queue chan []byte // two seconds of messages
}

const messageBytes = 128

// hello is the first message of a client, and the answer to it.
var hello = []byte("hello")

// setup is what a server process gets on its command line.
type setup struct {
	Moves bool
	Rate  int
	Life  time.Duration
}

const serverArgument = "rotate-server"

// serve writes its address to out, and serves until in ends, and with it the process.
func (s setup) serve(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &feed{moves: s.Moves, rate: s.Rate, life: s.Life}
	if s.Rate > 0 {
		go f.run() // until the process ends
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // likewise
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			defer ws.CloseNow()
			f.meet(ws)
		}
	}))
	if err := json.NewEncoder(out).Encode(l.Addr().String()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// start starts a server in a process of its own, and ends it with the test.
func (s setup) start(t testing.TB) (url string) {
	address := make(chan string, 1)
	p, err := child.Start(func(a string) { address <- a }, serverArgument, s)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	select {
	case a := <-address:
		return "ws://" + a
	case <-p.Gone():
		require.FailNow(t, "the server has ended", p.LastWords())
		return ""
	}
}

// run sends the messages. It makes up for lost time.
func (f *feed) run() {
	begun, sent := time.Now(), uint64(0)
	for range time.Tick(time.Second / time.Duration(f.rate)) {
		for due := uint64(time.Since(begun).Seconds() * float64(f.rate)); sent < due; {
			sent++
			data := make([]byte, messageBytes)
			binary.BigEndian.PutUint64(data, sent)
			f.mu.Lock()
			for _, m := range f.members {
				m.put(data)
			}
			f.mu.Unlock()
		}
	}
}

// put queues data, unless the client reads too slowly.
func (m *member) put(data []byte) {
	select {
	case m.queue <- data:
	default:
	}
}

// meet serves a connection until it ends.
func (f *feed) meet(ws *websocket.Conn) {
	ctx := context.Background()
	if _, _, err := ws.Read(ctx); err != nil {
		return
	}
	m := &member{ws: ws, queue: make(chan []byte, 2048)}
	m.put(hello)
	if before := f.join(m); f.moves && before != nil {
		before.put(nil)
	}
	over := ws.CloseRead(ctx)
	var old <-chan time.Time
	if f.life > 0 {
		old = time.After(f.life)
	}
	for over.Err() == nil {
		select {
		case data := <-m.queue:
			if data == nil {
				ws.Close(websocket.StatusNormalClosure, "moved") // when the client has answered
				return
			}
			_ = ws.Write(over, websocket.MessageBinary, data) // an error ends over
		case <-old:
			ws.Close(websocket.StatusGoingAway, "time is up")
		case <-over.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = slices.DeleteFunc(f.members, func(one *member) bool { return one == m })
}

// join adds m, and returns the member before, which gets no more messages if the feed moves.
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
