package main

import (
	"context"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// watcher is a client that notes what happens to it.
type watcher struct {
	peer   string
	client client

	mu    sync.Mutex // guards what follows
	ups   []int64    // Unix nanoseconds
	downs []int64
	told  int          // how often the reader learned of a gap
	came  map[int]bool // which numbers of the feed
	twice int          // numbers that had come before
}

// seen is what a watcher has noted. Times are in Unix nanoseconds.
type seen struct {
	Peer              string
	Ups, Downs        []int64
	Told, Came, Twice int
}

// watch opens Count clients of each peer of the job, side by side.
func (c *role) watch(ctx context.Context, j job) error {
	from := len(c.watchers)
	for _, name := range j.Peers {
		for range j.Count {
			c.watchers = append(c.watchers, &watcher{peer: name, came: map[int]bool{}})
		}
	}
	added := c.watchers[from:]
	err := parallel.Do(ctx, len(added), atOnce, func(i int) error { return added[i].open(ctx, &j, from+i) })
	if err == nil {
		return nil
	}
	for _, w := range added {
		if w.client != nil {
			w.client.Close()
		}
	}
	c.watchers = c.watchers[:from]
	return err
}

func (w *watcher) open(ctx context.Context, j *job, i int) error {
	p, t, err := j.peer(w.peer, i)
	if err != nil {
		return err
	}
	t.onMessage = w.take
	t.onUp = func() { w.note(&w.ups) }
	t.onDown = func(error) { w.note(&w.downs) }
	t.onGap = func(error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told++
	}
	w.client, err = p.open(ctx, t)
	return err
}

func (w *watcher) note(times *[]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*times = append(*times, time.Now().UnixNano())
}

func (w *watcher) take(p []byte) {
	n := number(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n < 0:
	case w.came[n]:
		w.twice++
	default:
		w.came[n] = true
	}
}

// seen returns what all watchers have noted so far.
func (c *role) seen() []seen {
	var all []seen
	for _, w := range c.watchers {
		w.mu.Lock()
		all = append(all, seen{
			Peer: w.peer, Ups: append([]int64(nil), w.ups...), Downs: append([]int64(nil), w.downs...),
			Told: w.told, Came: len(w.came), Twice: w.twice,
		})
		w.mu.Unlock()
	}
	return all
}
