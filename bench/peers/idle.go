package peers

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// idle opens connections, and measures what they hold when nothing goes on. They stay
// open until the child is closed. As many are opened and closed before, because the runtime
// keeps some of what the first goroutines of a process have needed: about 450 bytes each.
func (c *role) idle(ctx context.Context, j job) (answer, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	if j.Shared && p.share != nil {
		t.shared = p.share(t)
	}
	first := make([]client, j.Count)
	err = openAll(ctx, &j, first, t.shared)
	_ = together(len(first), func(i int) error { // no error comes of it
		if first[i] != nil {
			first[i].Close()
		}
		return nil
	})
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
	if err := openAll(ctx, &j, c.held[from:], t.shared); err != nil {
		c.held = c.held[:from] // this process is ended
		return answer{}, err
	}
	a, err := m.since(j.Count)
	after, stackAfter := heldMemory(j.Settle)
	a.Bytes, a.Stack = after-before, stackAfter-stack
	return a, err
}

// openAll opens a client for each place.
func openAll(ctx context.Context, j *job, clients []client, shared any) error {
	return together(len(clients), func(i int) error {
		p, t, err := j.peer(j.Peers[0], i)
		if err != nil {
			return err
		}
		t.shared, t.onMessage = shared, ignore
		clients[i], err = p.open(ctx, t)
		return err
	})
}

func ignore([]byte) {}

// together calls f for 0 to n-1, up to 32 at a time, and returns the first error. After an
// error it begins no other.
func together(n int, f func(i int) error) error {
	var (
		next   atomic.Int64
		failed atomic.Pointer[error]
		all    sync.WaitGroup
	)
	for range min(n, 32) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
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
