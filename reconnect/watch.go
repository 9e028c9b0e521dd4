package reconnect

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watch calls the hooks of t beside those of [RunOptions.Trace], for a page or a metrics layer
// that gets to know a Conn after [New] has made it. It begins with the next event, so that t
// may see an end whose beginning it has not seen. Hooks of t run after those that were there
// before. t must not change meanwhile; a nil t has no hooks. To call stop ends it; a hook that
// runs is not waited for, and one event that has begun may still come. Calls of stop after the
// first do nothing. A Conn that has ended needs no stop.
func (c *Conn) Watch(t *Trace) (stop func()) {
	part := JoinTraces(t) // one of its own, so that stop finds it
	c.life.hooks.change(func(parts []*Trace) []*Trace { return append(parts, part) })
	return sync.OnceFunc(func() {
		c.life.hooks.change(func(parts []*Trace) []*Trace {
			return slices.DeleteFunc(parts, func(p *Trace) bool { return p == part })
		})
	})
}

// hooks is the Trace of a connection, which may change.
type hooks struct{ atomic.Pointer[Trace] }

// change replaces the Trace by one that is joined of what edit makes of its parts. edit may be
// called more than once. It gets a slice of its own.
func (h *hooks) change(edit func([]*Trace) []*Trace) {
	for {
		old := h.Load()
		parts := slices.Clone(old.parts)
		if parts == nil {
			parts = []*Trace{old}
		}
		if h.CompareAndSwap(old, JoinTraces(edit(parts)...)) {
			return
		}
	}
}
