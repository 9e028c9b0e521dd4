package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// crowd is the clients of the demonstration, and what they have done since SIGTERM.
type crowd struct {
	clients []*client
	again   atomic.Int64 // messages that were sent again

	mu    sync.Mutex // guards the fields below
	begun time.Time  // zero: not yet
	dials []int      // in each 100 ms
}

// client sends numbered messages, and keeps each until it has come back.
type client struct {
	conn   *reconnect.Conn
	ledger *ledger.Ledger
}

// newCrowd returns n clients that dial by d. The caller must call end.
func newCrowd(d reconnect.Dialer, n int) (*crowd, error) {
	w := &crowd{}
	for range n {
		c, err := w.newClient(d)
		if err != nil {
			w.end()
			return nil, err
		}
		w.clients = append(w.clients, c)
	}
	return w, nil
}

func (w *crowd) newClient(d reconnect.Dialer) (c *client, err error) {
	c = &client{}
	c.ledger, err = ledger.New(&ledger.Options{
		Encode: func(e ledger.Entry) (conn.Message, error) {
			if e.Again {
				w.again.Add(1)
			}
			return conn.TextMessage(strconv.FormatUint(e.Seq, 10)), nil
		},
		Ack: func(m reconnect.Message) (seq uint64, ok bool) { // the server answers with the same message
			seq, err := strconv.ParseUint(string(m.Data), 10, 64)
			return seq, err == nil
		},
	})
	if err != nil {
		return nil, err
	}
	keep := &reconnect.Layer{Start: func(k *reconnect.Conn) error {
		c.conn = k // here, because a message may come before New has returned
		return nil
	}}
	_, err = reconnect.New(d, &reconnect.Options{
		Layers: []*reconnect.Layer{c.ledger.Layer(), keep},
		OnMessage: func(_ context.Context, m reconnect.Message) {
			if by, ok := parseLeave(string(m.Data)); ok {
				c.conn.Rotate(m.Session, reconnect.Advice{By: by}) // another connection first, and then this one ends
			}
		},
		Rotate: reconnect.Rotation{Drain: time.Second},
		Run: reconnect.RunOptions{StartSpread: time.Second, Trace: &reconnect.Trace{
			DialStart: func(reconnect.DialStart) { w.dialed() },
		}},
	})
	return c, err
}

func (w *crowd) dialed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.IsZero() {
		return
	}
	bin := int(time.Since(w.begun) / (100 * time.Millisecond))
	w.dials = append(w.dials, make([]int, max(bin+1-len(w.dials), 0))...)
	w.dials[bin]++
}

// awaitReady waits until all clients are connected.
func (w *crowd) awaitReady(ctx context.Context) error {
	for _, c := range w.clients {
		if err := c.conn.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// outlive terminates a server while the clients send. It returns when the server has ended, all
// clients are connected, and every message has come back.
func (w *crowd) outlive(ctx context.Context, terminate func(), ended <-chan error) error {
	w.mu.Lock()
	w.begun = time.Now()
	w.mu.Unlock()
	terminate()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var over <-chan time.Time // 2 s after the end of the server
	for talking := true; talking; {
		select {
		case <-tick.C:
			for _, c := range w.clients {
				if _, err := c.ledger.Add(nil); err != nil {
					return err
				}
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			over = time.After(2 * time.Second)
		case <-over:
			talking = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not all is back"))
	defer cancel()
	for _, c := range w.clients {
		if err := c.ledger.WaitAll(ctx); err != nil {
			return err
		}
	}
	return w.awaitReady(ctx)
}

// messages returns how many were sent, and how many of them have not come back.
func (w *crowd) messages() (sent, missing int) {
	for _, c := range w.clients {
		s := c.ledger.Stats()
		sent += int(s.Added)
		missing += s.Unacked
	}
	return sent, missing
}

// end ends all clients.
func (w *crowd) end() {
	for _, c := range w.clients {
		c.conn.Close()
	}
	for _, c := range w.clients {
		<-c.conn.Done()
	}
}

// report prints what the clients have done.
func (w *crowd) report(out io.Writer) {
	w.mu.Lock()
	dials := slices.Clone(w.dials)
	w.mu.Unlock()
	chart(out, dials)
	sent, missing := w.messages()
	fmt.Fprintf(out, "messages: %d, of which %d were sent again by the next connection; unacknowledged: %d\n",
		sent, w.again.Load(), missing)
}

func chart(out io.Writer, dials []int) {
	most := max(slices.Max(append(dials, 0)), 1)
	fmt.Fprintf(out, "dials since SIGTERM, a bar for each 100 ms; the highest is %d:\n", most)
	for second := range slices.Chunk(dials, 10) {
		sum, bars := 0, strings.Builder{}
		for _, n := range second {
			sum += n
			bars.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[(8*n+most-1)/most])
		}
		fmt.Fprintf(out, "  |%-10s| %d\n", bars.String(), sum)
	}
}
