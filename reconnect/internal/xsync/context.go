package xsync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a [context.Context] that its owner ends with End. It does what
// context.WithCancel does, without a parent and in a quarter of the memory.
type Context struct {
	ended atomic.Bool // set once, under mu

	mu    sync.Mutex // guards what follows
	done  chan struct{}
	after *atEnd // what to call at the end, the newest first
}

// atEnd is a function that a Context calls when it ends.
type atEnd struct {
	f    func()
	next *atEnd
}

var _ context.Context = (*Context)(nil)

// End ends c. It may be called more than once.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Swap(true) {
		return
	}
	if c.done != nil {
		close(c.done)
	}
	for a := c.after; a != nil; a = a.next {
		go a.f() // the caller of AfterFunc waits for it
	}
	c.after = nil
}

// Ended reports whether c has ended.
func (c *Context) Ended() bool { return c.ended.Load() }

// Err returns nil before the end and context.Canceled after it.
func (c *Context) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// Done returns a channel that is closed at the end.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.ended.Load() {
			close(c.done)
		}
	}
	return c.done
}

// Deadline reports that c has no deadline.
func (c *Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns nil.
func (c *Context) Value(any) any { return nil }

// AfterFunc calls f in a goroutine of its own when c ends, or at once if c has ended. The
// function stop prevents the call and reports whether it did; if it did not, the caller
// must wait for f. Package context calls this method for contexts derived from c.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		go f() // the caller waits for it
		return func() bool { return false }
	}
	mine := &atEnd{f, c.after}
	c.after = mine
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for a := &c.after; *a != nil; a = &(*a).next {
			if *a == mine {
				*a = mine.next
				return true
			}
		}
		return false
	}
}

// Child returns a context that is canceled when parent ends, for something that is over long before
// parent. It exists because parent keeps the channel of its Done, once there is one. The caller must call
// release, which cancels it. If parent is not a Context, Child returns parent itself.
func Child(parent context.Context) (child context.Context, release func()) {
	p, ok := parent.(*Context)
	if !ok {
		return parent, func() {}
	}
	child, cancel := context.WithCancel(context.Background())
	stop := p.AfterFunc(cancel)
	return child, func() {
		if stop() {
			cancel()
		}
		<-child.Done() // the goroutine of AfterFunc has ended, or is about to
	}
}

// AfterFunc does what [context.AfterFunc] does. If ctx has a method AfterFunc, as Context
// has, it calls that instead, because context.AfterFunc would allocate a context around f.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
