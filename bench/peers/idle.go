package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// idle opens connections, and measures what they hold when nothing goes on, and then what one
// message to each costs, which also shows that all are alive. They stay open until the child
// is closed. As many are opened and closed before, because the runtime keeps some of what the
// first goroutines of a process have needed: about 450 bytes each.
func (c *role) idle(ctx context.Context, j job) (answer, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	if j.Shared && p.share != nil {
		t.shared = p.share(t)
	}
	woken := newWoken()
	first := make([]client, j.Count)
	err = openAll(ctx, &j, first, t.shared, woken)
	closeAll(first)
	if err != nil {
		return answer{}, err
	}
	clear(first)
	before, stack := heldMemory(j.Settle)
	m, err := newMeter()
	if err != nil {
		return answer{}, err
	}
	from := len(c.held)
	c.held = append(c.held, make([]client, j.Count)...)
	if err := openAll(ctx, &j, c.held[from:], t.shared, woken); err != nil {
		c.held = c.held[:from] // this process is ended
		return answer{}, err
	}
	a, err := m.since(j.Count)
	if err != nil {
		return a, err
	}
	after, stackAfter := heldMemory(j.Settle)
	a.Bytes, a.Stack = after-before, stackAfter-stack
	a.Wake, err = woken.wake(ctx, c.held[from:])
	return a, err
}

// woken counts the messages of all clients.
type woken struct {
	n, want atomic.Int64
	all     event
}

func newWoken() *woken { return &woken{all: newEvent()} }

// take counts a message, of any client.
func (w *woken) take([]byte) {
	if w.n.Add(1) == w.want.Load() {
		w.all.note()
	}
}

// wake has the server send one message to each client, and returns the CPU time until all
// have come.
func (w *woken) wake(ctx context.Context, clients []client) (time.Duration, error) {
	w.want.Store(int64(len(clients)))
	m, err := newMeter()
	if err != nil {
		return 0, err
	}
	if err := clients[0].Send([]byte{askWake}); err != nil {
		return 0, err
	}
	if err := w.all.wait(ctx, fmt.Sprintf("a message to each of %d connections", len(clients))); err != nil {
		return 0, fmt.Errorf("%w, when %d had come", err, w.n.Load())
	}
	a, err := m.since(len(clients))
	return a.CPU, err
}

// openAll opens a client for each place.
func openAll(ctx context.Context, j *job, clients []client, shared any, woken *woken) error {
	take := woken.take // one for all
	return parallel.Do(ctx, len(clients), atOnce, func(i int) error {
		p, t, err := j.peer(j.Peers[0], i)
		if err != nil {
			return err
		}
		t.shared, t.onMessage = shared, take
		clients[i], err = p.open(ctx, t)
		return err
	})
}

// atOnce is how many clients are opened or closed at a time, and how many rounds wait side by side.
const atOnce = 32

// closeAll closes the clients that are open.
func closeAll(clients []client) {
	_ = parallel.Do(context.Background(), len(clients), atOnce, func(i int) error { // no error comes of it
		if clients[i] != nil {
			clients[i].Close()
		}
		return nil
	})
}

// heldMemory returns, after a pause, the bytes that are alive on the heap, with the stacks,
// and the stacks alone.
func heldMemory(settle time.Duration) (all, stack int64) {
	pause(context.Background(), settle)
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), int64(m.StackInuse)
}
