package reconnect

import (
	"context"
	"slices"
	"sync"
	"time"
)

// life is the context of a [Conn]: it ends when the Conn is to end. It does what
// context.WithCancel would at a quarter of the memory, of which a gateway with
// ten thousand idle connections has ten thousand.
type life struct {
	done chan struct{}

	mu    sync.Mutex // guards what follows
	ended bool
	after []*func() // to be called at the end
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	for _, f := range l.after {
		go (*f)() // whoever asked for it waits for it
	}
	l.after = nil
}

// AfterFunc does what [context.AfterFunc] does, which calls it for contexts that
// are derived from this one.
func (l *life) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		go f() // whoever asked for it waits for it
		return func() bool { return false }
	}
	l.after = append(l.after, &f)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.Index(l.after, &f)
		if i >= 0 {
			l.after = slices.Delete(l.after, i, i+1)
		}
		return i >= 0
	}
}

func (l *life) Done() <-chan struct{} { return l.done }

func (l *life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return context.Canceled
	}
	return nil
}

func (l *life) Deadline() (time.Time, bool) { return time.Time{}, false }
func (l *life) Value(any) any               { return nil }

// afterFunc is [context.AfterFunc] without the context around f where ctx can do
// without.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if l, ok := ctx.(*life); ok {
		return l.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
