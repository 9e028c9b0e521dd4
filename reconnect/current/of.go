package current

import (
	"context"
	"net"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Of holds the current client. The zero value is ready for use, and holds no client. An Of is safe for
// concurrent use, must not be copied after first use, and starts no goroutine.
//
// Wait returns a client from its Set on, until its remove is called, its context is done, Fail is called with
// it, another client is set, or Alive reports false for it.
//
// Clients are compared: if T is an interface, their types must be comparable, as pointers are.
type Of[T comparable] struct {
	// Alive reports whether v is still usable, such as func(c *amqp.Connection) bool { return !c.IsClosed() }.
	// Alive is called by each Wait, in its goroutine, and must be quick. It must not change after the first
	// call of a method. Default: always true.
	Alive func(v T) bool

	changed xsync.Signal // there is another client, or End was called

	mu    sync.Mutex // guards what follows; held neither while a caller waits nor in Alive
	held  *held[T]   // nil: there is none
	last  T          // the client of the last Set, valid if set is true
	set   bool       // Set was called, and End was not called after it
	ended error      // the error of End; nil: End was not called
}

// held is a client that was set.
type held[T comparable] struct {
	client T
	ctx    context.Context
	cancel context.CancelCauseFunc
	again  bool // the Set before had the same client, so that a Fail may be about its session
	handed bool // Wait has returned the client since Set; guarded by Of.mu
}

// Set makes v, which must be ready for use (logged in, and subscribed if that matters), the current client. It
// returns a context that is done when ctx is done, remove is called, or Fail is called with v, with the error
// of Fail as the cause. The caller must call remove when v has ended or is not needed any more; calls after the
// first do nothing. After another Set, remove cancels only its own context.
func (o *Of[T]) Set(ctx context.Context, v T) (of context.Context, remove context.CancelFunc) {
	h := &held[T]{client: v}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	o.replace(h)
	o.changed.Broadcast()
	return h.ctx, func() { o.remove(h, nil) }
}

// replace makes h the present client.
func (o *Of[T]) replace(h *held[T]) {
	o.mu.Lock()
	defer o.mu.Unlock() // even if == panics, because the dynamic type of an interface T is not comparable
	h.again = o.set && o.last == h.client
	o.held, o.last, o.set = h, h.client, true
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

// Wait returns the current client. If there is none, Wait waits for the next until ctx is done or End is
// called, and then returns the cause of ctx or the error of End. If ctx is already done, it returns no client.
// The returned client can end at any time: see [Of.Fail].
func (o *Of[T]) Wait(ctx context.Context) (T, error) {
	h, err := o.wait(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return h.client, nil
}

// WaitSession is like Wait for a client object that is set again in each session. fail is like Fail, but ends
// only the session in which WaitSession has returned v. If err is not nil, fail does nothing.
func (o *Of[T]) WaitSession(ctx context.Context) (v T, fail func(err error), err error) {
	h, err := o.wait(ctx)
	if err != nil {
		return v, func(error) {}, err
	}
	return h.client, func(err error) { o.remove(h, err) }, nil
}

// wait is Wait, and returns the client as it is held.
func (o *Of[T]) wait(ctx context.Context) (*held[T], error) {
	for changed := (<-chan struct{})(nil); ; {
		h, err := o.now()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case h != nil || err != nil:
			return h, err
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

// now returns the present client as it is held, or nil if there is none, or the error of End.
func (o *Of[T]) now() (*held[T], error) {
	o.mu.Lock()
	h, err := o.held, o.ended
	o.mu.Unlock()
	if err != nil || h == nil || h.ctx.Err() != nil || o.Alive != nil && !o.Alive(h.client) {
		return nil, err
	}
	o.mu.Lock()
	h.handed = true
	o.mu.Unlock()
	return h, nil
}

// Fail reports that v is unusable because of err. It cancels the context that Set returned, with the cause err,
// and Wait does not return v any more, even if the library has not noticed yet that the connection is lost. If
// v is not the current client, Fail does nothing.
//
// Fail is safe only if each session has a client object of its own. For an object that is set again, use
// [Of.WaitSession], because Fail cannot tell the sessions apart: if the last two calls of Set had v, Fail does
// nothing until Wait has returned v in the new session; after that, a Fail that is about the old session ends
// the new one.
func (o *Of[T]) Fail(v T, err error) {
	o.mu.Lock()
	h := o.held
	fails := h != nil && h.client == v && (h.handed || !h.again)
	o.mu.Unlock()
	if fails {
		o.remove(h, err)
	}
}

// End reports that there will be no further client because of err, such as the result of reconnect.Run. From
// now on every Wait returns err, or [net.ErrClosed] if err is nil. Later calls of End do nothing.
func (o *Of[T]) End(err error) {
	if err == nil {
		err = net.ErrClosed
	}
	o.mu.Lock()
	if o.ended == nil {
		o.ended = err
		var none T
		o.last, o.set = none, false // so that the client is not kept
	}
	o.mu.Unlock()
	o.changed.Broadcast()
}
