package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// herd is the clients.
type herd struct {
	*setup
	clients []*client

	mu     sync.Mutex // guards what follows, and what a client says that it guards
	begun  time.Time  // the drain; zero: it has not begun
	dials  []time.Duration
	failed map[string]int // of these, those that have failed, by reason
	away   time.Duration  // the longest
	sum    time.Duration  // of all times away
	cut    int            // clients that were away at all
	back   time.Duration  // when the last session began
}

// client is one of them.
type client struct {
	number int
	conn   *reconnect.Conn

	have   atomic.Uint64 // the number of the last message; written in OnMessage
	missed atomic.Uint64 // numbers that were left out
	twice  atomic.Uint64 // messages that had come before

	next    uint64       // the number of the next message; the goroutine of herd.talk has it
	settled atomic.Int64 // receipts
	dropped atomic.Int64 // of these, those of messages that were not written

	up     int       // ready sessions; guarded by herd.mu
	lost   time.Time // when the last of them ended; guarded by herd.mu
	wasCut bool      // it was away; guarded by herd.mu
}

// newHerd returns clients that dial within spread. The caller must call end.
func newHerd(s *setup, address string, policy backoff.Policy, spread time.Duration) (*herd, error) {
	h := &herd{setup: s, failed: map[string]int{}}
	for i := range s.Clients {
		c := &client{number: i, next: 1}
		url := fmt.Sprintf("ws://%s/ws?client=%d", address, i)
		_, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{
			Layers: []*reconnect.Layer{{Start: func(k *reconnect.Conn) error {
				c.conn = k // here, because a message may come before New has returned
				return nil
			}}},
			OnSession: c.open,
			OnMessage: c.take,
			WhenDown:  reconnect.WhenDownKeep,
			Outbox:    reconnect.Outbox{OnReceipt: c.receipt},
			Rotate:    reconnect.Rotation{Drain: time.Second},
			Run:       reconnect.RunOptions{Policy: policy, StartSpread: spread, Trace: h.trace(c)},
		})
		if err != nil {
			h.end()
			return nil, err
		}
		h.clients = append(h.clients, c)
	}
	return h, nil
}

// open asks for the messages after the last one.
func (c *client) open(_ context.Context, o *reconnect.Opening) error {
	return o.Write(conn.TextMessage(strconv.FormatUint(c.have.Load(), 10)))
}

// take reads a number or a notice.
func (c *client) take(_ context.Context, m reconnect.Message) {
	if by, ok := parseLeave(string(m.Data)); ok {
		c.conn.Rotate(m.Session, reconnect.Advice{By: by})
		return
	}
	n, err := strconv.ParseUint(string(m.Data), 10, 64)
	have := c.have.Load()
	switch {
	case err != nil:
		return
	case n <= have:
		c.twice.Add(1)
		return
	case n > have+1:
		c.missed.Add(n - have - 1)
	}
	c.have.Store(n)
}

func (c *client) receipt(_ context.Context, r reconnect.Receipt) {
	if r.Fate != reconnect.FateWritten {
		c.dropped.Add(1)
	}
	c.settled.Add(1)
}

// trace notes the dials of a client, and for how long it has no session.
func (h *herd) trace(c *client) *reconnect.Trace {
	return &reconnect.Trace{
		DialStart: func(reconnect.DialStart) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if !h.begun.IsZero() {
				h.dials = append(h.dials, time.Since(h.begun))
			}
		},
		DialDone: func(d reconnect.DialDone) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if d.Err != nil && !h.begun.IsZero() {
				h.failed[backoff.ReasonOf(d.Err).String()]++
			}
		},
		SessionReady: func(*reconnect.Session) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if c.up++; h.begun.IsZero() {
				return
			}
			h.back = time.Since(h.begun)
			if c.up > 1 {
				return
			}
			away := time.Since(c.lost)
			h.away, h.sum = max(h.away, away), h.sum+away
			if !c.wasCut {
				c.wasCut = true
				h.cut++
			}
		},
		SessionDone: func(e reconnect.SessionDone) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if e.Ready > 0 {
				c.up--
				c.lost = time.Now()
			}
		},
	}
}

// begin begins to count.
func (h *herd) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = time.Now()
}

// awaitReady waits until all are connected, for a minute at most.
func (h *herd) awaitReady(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, c := range h.clients {
		if c.conn.AwaitReady(limit) == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := 0
		for _, c := range h.clients {
			if c.conn.Status().State != reconnect.StateReady {
				left++
			}
		}
		return fmt.Errorf("%d of %d clients are not connected after a minute; one of them: %+v", left, len(h.clients), c.conn.Status())
	}
	return nil
}

// talk sends the messages of all clients as they are due, until ctx ends.
func (h *herd) talk(ctx context.Context) {
	const step = 10 * time.Millisecond
	for sleep(ctx, step) {
		now := time.Now()
		for _, c := range h.clients {
			for c.next <= h.due(c.number, now) {
				text := strconv.FormatUint(c.next, 10)
				if c.conn.Send(reconnect.Outgoing{Message: conn.TextMessage(text), Repeatable: true}) != nil {
					c.dropped.Add(1)
					c.settled.Add(1)
				}
				c.next++
			}
		}
	}
}

// settle waits until each client knows what became of its messages, and has those that were due
// at a time, for half a minute at most.
func (h *herd) settle(ctx context.Context, at time.Time) error {
	for range 3000 {
		left := 0
		for _, c := range h.clients {
			if c.settled.Load() < int64(c.next-1) || c.have.Load() < h.due(c.number, at) {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil // what is missing then is lost
}

// leave ends the clients politely, so that what they have sent arrives.
func (h *herd) leave(ctx context.Context) {
	var group sync.WaitGroup
	for _, c := range h.clients {
		group.Go(func() { _ = c.conn.Shutdown(ctx) }) // cut when ctx ends
	}
	group.Wait()
}

// end ends the clients. It may be called again.
func (h *herd) end() {
	for _, c := range h.clients {
		c.conn.Close()
	}
	for _, c := range h.clients {
		<-c.conn.Done()
	}
}
