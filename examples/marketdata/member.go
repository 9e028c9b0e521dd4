//go:build !js

package main

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/coder/websocket"
)

// member is a client of the venue, on one connection.
type member struct {
	ws         *websocket.Conn
	number     uint64
	frozen     atomic.Bool     // the venue neither answers nor sends
	subscribed map[string]bool // the venue's mu guards it, each send to queue and the close of queue
	queue      chan []byte     // holds 20 s of updates for a client that reads slowly
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
	if !v.knows(r.Header.Get("Authorization")) {
		http.Error(w, "the token is bad or was used", http.StatusUnauthorized)
		return
	}
	m := &member{subscribed: map[string]bool{}, queue: make(chan []byte, 4096)}
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

// knows reports whether a token is good. Each serves once.
func (v *venue) knows(authorization string) bool {
	token, _ := strings.CutPrefix(authorization, "Bearer ")
	nonce, signature, _ := strings.Cut(token, ".")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.used[nonce] || !hmac.Equal([]byte(signature), []byte(sign(secret, nonce))) {
		return false
	}
	v.used[nonce] = true
	return true
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
	var r message
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, symbol := range r.Books {
		if v.books[symbol] == nil {
			m.sendMessage(message{ID: r.ID, Type: "error", Error: fmt.Sprintf("unknown book %q", symbol)})
			return nil
		}
	}
	switch r.Op {
	case "ping":
		m.sendMessage(message{Type: "pong"})
	case "snapshot":
		v.sendBooks(m, r.Books)
	case "subscribe":
		v.sendBooks(m, r.Books) // before the answer, as many venues do
		for _, symbol := range r.Books {
			m.subscribed[symbol] = true
		}
		m.sendMessage(message{ID: r.ID, Type: "done"})
	case "unsubscribe":
		for _, symbol := range r.Books {
			delete(m.subscribed, symbol)
		}
		m.sendMessage(message{ID: r.ID, Type: "done"})
	default:
		m.sendMessage(message{ID: r.ID, Type: "error", Error: fmt.Sprintf("unknown operation %q", r.Op)})
	}
	return nil
}

// sendBooks sends snapshots. The caller holds mu.
func (v *venue) sendBooks(m *member, symbols []string) {
	for _, symbol := range symbols {
		b := v.books[symbol]
		m.sendMessage(message{Type: "snapshot", Book: symbol, Seq: b.seq, Bids: b.bids, Asks: b.asks})
	}
}

func (m *member) sendMessage(v message) {
	v.Conn = m.number
	m.send(v.encode().Data)
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
