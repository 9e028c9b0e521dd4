package current

import (
	"context"
	"net"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Of holds the present client. The zero value is ready for use, and holds no client. Any goroutine may call the methods.
// An Of must not be copied after first use. It starts no goroutine.
//
// Wait returns a client from its Set on, until the first of these: its remove is called, its context ends,
// Fail is called with it, another client is set, or Alive reports false for it.
type Of[T comparable] struct {
	// Alive reports whether v can still be used, such as func(c *amqp.Connection) bool { return !c.IsClosed() }:
	// a library often knows that its client has ended before serve has returned. Alive is called by each Wait, in its
	// goroutine, and must be quick. It must not change after the first call of a method. Default: a
	// client can be used until something else ends it.
	Alive func(v T) bool

	changed xsync.Signal // there is another client, or End was called

	mu    sync.Mutex // guards what follows; held neither while a caller waits nor in Alive
	held  *held[T]   // nil: there is none
	ended error      // the error of End; nil: End was not called
}

// held is a client that was set.
type held[T comparable] struct {
	client T
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Set makes v the present client, and returns a context that ends with ctx, when remove is called, or when
// Fail is called with v: then the error of Fail is the cause. Call Set when v is ready for use: logged in, and
// subscribed if that matters. The caller must call remove when v has ended or is not needed any more; calls
// after the first do nothing. After another Set, remove ends only its own context.
func (o *Of[T]) Set(ctx context.Context, v T) (of context.Context, remove context.CancelFunc) {
	h := &held[T]{client: v}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	o.mu.Lock()
	o.held = h
	o.mu.Unlock()
	o.changed.Broadcast()
	return h.ctx, func() { o.remove(h, nil) }
}

// remove ends the context of h. After that Wait does not return h any more.
func (o *Of[T]) remove(h *held[T], cause error) {
	o.mu.Lock()
	if o.held == h {
		o.held = nil
	}
	o.mu.Unlock()
	h.cancel(cause)
}

// Wait returns the present client. If there is none, Wait waits for the next client until ctx ends or End is
// called, and then returns the cause of ctx or the error of End. If ctx has ended already, Wait returns no
// client. The client that Wait has returned can end at any time: see Fail.
func (o *Of[T]) Wait(ctx context.Context) (T, error) {
	for changed := (<-chan struct{})(nil); ; {
		v, ok, err := o.now()
		switch {
		case ctx.Err() != nil:
			var none T
			return none, context.Cause(ctx)
		case ok || err != nil:
			return v, err
		case changed == nil: // look once more, now that no change can be missed
			changed = o.changed.Wait()
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		changed = nil
	}
}

// now returns the present client, if there is one, or the error of End.
func (o *Of[T]) now() (v T, ok bool, err error) {
	o.mu.Lock()
	h, err := o.held, o.ended
	o.mu.Unlock()
	if err != nil || h == nil || h.ctx.Err() != nil || o.Alive != nil && !o.Alive(h.client) {
		return v, false, err
	}
	return h.client, true, nil
}

// Fail says that v cannot be used any more because of err. It ends the context that Set returned, with the
// cause err, and Wait does not return v any more. If v is not the present client, Fail does nothing. So after
// Fail the next Wait returns another client, even if the library has not noticed yet that the connection is
// lost.
func (o *Of[T]) Fail(v T, err error) {
	o.mu.Lock()
	h := o.held
	o.mu.Unlock()
	if h != nil && h.client == v {
		o.remove(h, err)
	}
}

// End says that there will be no client any more, because of err, such as the result of reconnect.Run. From
// now on every Wait returns err, or [net.ErrClosed] if err is nil. Calls of End after the first do nothing.
func (o *Of[T]) End(err error) {
	if err == nil {
		err = net.ErrClosed
	}
	o.mu.Lock()
	if o.ended == nil {
		o.ended = err
	}
	o.mu.Unlock()
	o.changed.Broadcast()
}
