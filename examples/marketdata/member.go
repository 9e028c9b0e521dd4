//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"
)

// member is a client of the venue, on one connection.
type member struct {
	ws         *websocket.Conn
	number     uint64
	frozen     atomic.Bool // the venue neither answers nor sends
	subscribed bool        // the venue's mu guards it, each send to queue and the close of queue
	queue      chan []byte // holds 20 s of updates for a client that reads slowly
}

// meet serves one client until its connection ends.
func (v *venue) meet(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	door := v.door
	if door != killed { // because kill waits for those that were counted before
		v.serving.Add(1)
		defer v.serving.Done()
	}
	v.mu.Unlock()
	switch door {
	case killed:
		return
	case busy:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many clients", http.StatusServiceUnavailable)
		v.note(busy)
		return
	}
	m := &member{queue: make(chan []byte, 4096)}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		OnPingReceived: func(context.Context, []byte) bool { return !m.frozen.Load() },
	})
	if err != nil {
		return
	}
	defer ws.CloseNow()
	if door == drops {
		v.note(drops)
		return
	}
	m.ws = ws
	if !v.admit(m) {
		return
	}
	written := make(chan struct{})
	go func() { // <-written waits for it
		defer close(written)
		m.write()
	}()
	for v.serve(m) == nil {
	}
	v.dismiss(m)
	ws.CloseNow()
	<-written
}

// admit lists m. It returns false if the venue has begun to cut connections meanwhile.
func (v *venue) admit(m *member) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.door != none {
		return false
	}
	v.numbered++
	m.number = v.numbered
	v.clients[m] = true
	return true
}

func (v *venue) dismiss(m *member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clients, m)
	close(m.queue)
}

// serve reads one request and answers it.
func (v *venue) serve(m *member) error {
	_, data, err := m.ws.Read(context.Background())
	if err != nil || m.frozen.Load() {
		return err
	}
	var ask struct{ Op, Book, Key string }
	if err := json.Unmarshal(data, &ask); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case ask.Op == "login" && ask.Key == "open sesame":
		m.sendQuote(quote{Type: "welcome"})
	case ask.Op == "subscribe" && ask.Book == "GO-USD":
		// The snapshot comes before the answer. A client that discards what comes
		// before the answer has no book.
		m.sendQuote(quote{Type: "snapshot", Seq: v.seq, Bids: v.bids, Asks: v.asks})
		m.sendQuote(quote{Type: "subscribed"})
		m.subscribed = true
	default:
		m.sendQuote(quote{Type: "error", Text: fmt.Sprintf("unknown operation %q", ask.Op)})
	}
	return nil
}

func (m *member) sendQuote(q quote) {
	q.Conn = m.number
	data, err := json.Marshal(q)
	if err != nil {
		panic(err) // a quote can always be encoded
	}
	m.send(data)
}

func (m *member) send(data []byte) {
	select {
	case m.queue <- data:
	default: // the queue is full, so the client will see a gap and ask for a snapshot
	}
}

// write writes the messages of the queue until the queue is closed.
func (m *member) write() {
	for data := range m.queue {
		if !m.frozen.Load() && m.ws.Write(context.Background(), websocket.MessageText, data) != nil {
			m.ws.CloseNow()
		}
	}
}
