package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// idle opens connections, and measures what they hold when nothing goes on, and then what one
// message to each costs, which also shows that all are alive. They stay open until the child
// is closed. As many are opened and closed before, because the runtime keeps some of what the
// first goroutines of a process have needed: about 450 bytes each.
//
// The resident memory is that of the first connections of the process, because a user sees what the runtime
// keeps as well, and later connections fill the pages that the first ones have left: 1,000 seem to need
// 0.5 to 3 kB less each. A few clients come before them, so that the pages of the code are not counted.
func (c *role) idle(ctx context.Context, j job) (answer, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	if j.Shared && p.share != nil {
		t.shared = p.share(t)
	}
	woken := newWoken()
	few, first := make([]client, min(atOnce, j.Count)), make([]client, j.Count)
	if _, err := resident(ctx, &j, few, t.shared, woken); err != nil {
		return answer{}, err
	}
	free := residentNow(j.Settle)
	full, err := resident(ctx, &j, first, t.shared, woken)
	if err != nil {
		return answer{}, err
	}
	clear(few)
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
	if err == nil && j.Takeover {
		err = woken.echo(ctx, c.held[from:])
	}
	if err != nil {
		return a, err
	}
	after, stackAfter := heldMemory(j.Settle)
	a.Bytes, a.Stack, a.Resident = after-before, stackAfter-stack, full-free
	a.Wake, err = woken.wake(ctx, c.held[from:])
	return a, err
}

// resident opens the clients, has them exchange messages if these are compressed, and closes them. It returns
// the resident memory while they are open.
func resident(ctx context.Context, j *job, clients []client, shared any, woken *woken) (int64, error) {
	defer closeAll(clients)
	err := openAll(ctx, j, clients, shared, woken)
	if err == nil && j.Takeover {
		err = woken.echo(ctx, clients)
	}
	if err != nil {
		return 0, err
	}
	return residentNow(j.Settle), nil
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

// expect begins to count the messages that wait waits for.
func (w *woken) expect(count int) {
	w.n.Store(0)
	w.want.Store(int64(count))
}

func (w *woken) wait(ctx context.Context) error {
	if err := w.all.wait(ctx, fmt.Sprintf("a message to each of %d connections", w.want.Load())); err != nil {
		return fmt.Errorf("%w, when %d had come", err, w.n.Load())
	}
	return nil
}

// wake has the server send one message to each client, and returns the CPU time until all
// have come.
func (w *woken) wake(ctx context.Context, clients []client) (time.Duration, error) {
	w.expect(len(clients))
	m, err := newMeter()
	if err != nil {
		return 0, err
	}
	if err := clients[0].Send([]byte{askWake}); err != nil {
		return 0, err
	}
	if err := w.wait(ctx); err != nil {
		return 0, err
	}
	a, err := m.since(len(clients))
	return a.CPU, err
}

// echo has each client send a message of 1 KiB, which every library compresses, and waits until all are sent back.
func (w *woken) echo(ctx context.Context, clients []client) error {
	w.expect(len(clients))
	p := payload(1 << 10)
	p[0] = askEcho
	for _, c := range clients {
		if err := c.Send(p); err != nil {
			return err
		}
	}
	return w.wait(ctx)
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

// residentNow returns, after a pause, the resident memory of this process, or 0 if it is unknown. Before, it
// returns the free pages of the heap to the system, as the runtime does in time: they hold the garbage of the
// dials, and how many there are depends on when that was collected (up to 3 kB for each of 1,000 connections).
func residentNow(settle time.Duration) int64 {
	pause(context.Background(), settle)
	for range 2 { // a pool is empty after two
		runtime.GC()
	}
	debug.FreeOSMemory()
	n, err := residentMemory()
	if err != nil {
		return 0
	}
	return n
}
