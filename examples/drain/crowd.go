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
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// crowd is the clients of the demonstration, and what they have done since SIGTERM.
type crowd struct {
	clients []*client

	mu    sync.Mutex // guards what follows, and the fields of the clients but conn
	begun time.Time  // zero: not yet
	dials []int      // in each 100 ms
	again int        // messages that were sent again
}

// client sends numbers, and keeps each until it has come back.
type client struct {
	conn *reconnect.Conn
	sent int
	kept map[string]bool
}

// newCrowd returns n clients that dial by d. The caller must call end.
func newCrowd(d reconnect.Dialer, n int) (*crowd, error) {
	w := &crowd{}
	for range n {
		c := &client{kept: map[string]bool{}}
		_, err := reconnect.New(d, &reconnect.Options{
			Layers: []*reconnect.Layer{{
				Start: func(k *reconnect.Conn) error {
					c.conn = k // here, because a message may come before New has returned
					return nil
				},
				Ready: func(session uint64) { w.resend(c, session) },
			}},
			OnMessage: func(_ context.Context, m reconnect.Message) { w.take(c, m) },
			Rotate:    reconnect.Rotation{Drain: time.Second},
			Run: reconnect.RunOptions{StartSpread: time.Second, Trace: &reconnect.Trace{
				DialStart: func(reconnect.DialStart) { w.dialed() },
			}},
		})
		if err != nil {
			w.end()
			return nil, err
		}
		w.clients = append(w.clients, c)
	}
	return w, nil
}

// resend sends what has not come back by the last connection, when the next one is ready. In
// OnSession it would be too early: what is added after that and before the session is ready would
// wait for another session. A number that comes twice does no harm.
func (w *crowd) resend(c *client, session uint64) {
	w.mu.Lock()
	var kept []string
	for text := range c.kept {
		kept = append(kept, text)
	}
	w.again += len(kept)
	w.mu.Unlock()
	for _, text := range kept {
		// The goroutine of Ready must not wait for another session: WriteTo never does, so that it needs
		// no context that ends. It waits for other writes, which have their own limit.
		if c.conn.WriteTo(context.Background(), session, conn.TextMessage(text)) != nil {
			return // the next session sends it
		}
	}
}

func (w *crowd) take(c *client, m reconnect.Message) {
	if by, ok := parseLeave(string(m.Data)); ok {
		c.conn.Rotate(m.Session, reconnect.Advice{By: by}) // another connection first, and then this one ends
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(c.kept, string(m.Data))
}

// talk lets each client send the next number. What cannot be sent is kept for the next session.
func (w *crowd) talk(ctx context.Context) {
	for _, c := range w.clients {
		w.mu.Lock()
		c.sent++
		text := strconv.Itoa(c.sent)
		c.kept[text] = true
		w.mu.Unlock()
		_ = c.conn.Write(ctx, conn.TextMessage(text))
	}
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

// outlive terminates a server while the clients talk. It returns when the server has ended, and all
// clients are connected and have what was under way.
func (w *crowd) outlive(ctx context.Context, terminate func(), ended <-chan error) error {
	w.mu.Lock()
	w.begun = time.Now()
	w.mu.Unlock()
	terminate()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for gone, more := false, 4; more > 0; { // until 2 s after its end
		select {
		case <-tick.C:
			w.talk(ctx)
			if gone {
				more--
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			gone = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not all is back"))
	defer cancel()
	for w.missing() > 0 || w.awaitReady(ctx) != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// missing returns how many numbers have not come back.
func (w *crowd) missing() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		n += len(c.kept)
	}
	return n
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
	lost := w.missing()
	w.mu.Lock()
	defer w.mu.Unlock()
	most := max(slices.Max(append(w.dials, 0)), 1)
	fmt.Fprintf(out, "dials since SIGTERM, a bar for each 100 ms; the highest is %d:\n", most)
	for second := range slices.Chunk(w.dials, 10) {
		sum, bars := 0, strings.Builder{}
		for _, n := range second {
			sum += n
			bars.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[(8*n+most-1)/most])
		}
		fmt.Fprintf(out, "  |%-10s| %d\n", bars.String(), sum)
	}
	sent := 0
	for _, c := range w.clients {
		sent += c.sent
	}
	fmt.Fprintf(out, "messages: %d, of which %d were sent again by the next connection; lost messages: %d\n", sent, w.again, lost)
}
