package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Opening is a new connection, of which [Options.OnSession] and then each [Layer] in turn has sole use.
// One goroutine at a time may use it, until the function that got it returns. After the last has
// returned, Read, Write, Deliver, AwaitReceipts, Resumed and NoLogin return an error. Methods that block
// return when the context of OnSession is done.
type Opening struct {
	Session  uint64
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // as in Session; 0 while the previous session lives
	Planned  bool          // the session replaces a live one
	Advised  bool          // the dialer followed [Advice].URL, and HintFrom returns the hint of that Advice

	Header map[string][]string // of the handshake's response, as an http.Header, or nil

	session  *Session
	life     *lifetime
	replaces successor // to which it delivers, because the session before is still read; empty: none
	layer    int       // the number of the layer that uses it, or noLayer
	receiver *receiver
	sender   *sender
	l        *served
	ctx      context.Context
	extend   func() // begins the OpenTimeout again
	over     atomic.Bool
}

// Progress begins the OpenTimeout again. Call it for what the peer has done, such as one of many responses, and not
// for an attempt. In a Planned session it has no effect.
func (o *Opening) Progress() {
	if !o.over.Load() {
		o.extend()
	}
}

// Read returns the next message in a new slice, which belongs to the caller. An error means that the
// connection is lost; return it from OnSession.
func (o *Opening) Read() (conn.Message, error) {
	if err := o.ended(); err != nil {
		return conn.Message{}, err
	}
	m, err := o.l.Conn.Read(nil)
	if err != nil {
		return m, o.failed(err)
	}
	o.life.counts.in.Received(m)
	return m, nil
}

// Write sends a message, whose data belongs to the caller again when Write returns. After an error the
// connection is lost, unless the error is [conn.ErrBadMessage]. The first Write takes a login from
// [RunOptions.Logins]. If none is left it writes nothing, ends the attempt, and returns a
// [*budget.LoginError].
func (o *Opening) Write(m conn.Message) error {
	if err := o.ended(); err != nil {
		return err
	}
	if err := o.l.AwaitWrite(o.ctx); err != nil {
		return o.failed(err)
	}
	if err := o.session.Login(o.ctx); err != nil {
		o.l.Cut(err)
		return err
	}
	err := o.l.Conn.Write(m)
	if o.l.Wrote(1); err != nil {
		if errors.Is(err, conn.ErrBadMessage) {
			return err
		}
		return o.failed(err)
	}
	o.life.Counts.Wrote(m)
	return nil
}

// ended returns why the Opening cannot be used any more, or nil if it can.
func (o *Opening) ended() error {
	if o.over.Load() {
		return errOver
	}
	return o.l.Cause(nil)
}

// failed notes that the connection has failed, unless the peer has closed it with a code,
// because that is an answer.
func (o *Opening) failed(err error) error {
	var answer interface{ CloseCode() int }
	o.l.broken = !errors.As(err, &answer)
	return o.l.Cause(err)
}

// Deliver passes a message that is part of the stream to the other layers, and to the reader of the Conn
// if no layer takes it. The data belongs to the caller again when Deliver returns. Deliver waits while
// another session is in OnMessage (see [OverlapMix]), and for space in a full inbox with InboxBlock.
// After Close it returns [net.ErrClosed].
func (o *Opening) Deliver(m conn.Message) error {
	switch {
	case o.over.Load():
		return errOver
	case o.life.Closed.Load():
		return net.ErrClosed
	}
	defer o.l.calls.Leave(o.l.calls.Enter(nil)) // for the limits on OnMessage and Layer.Receive
	if o.replaces.replacement != nil {
		m.Data = inbox.Clone(m.Data)
		return o.replaces.put(o.ctx, o.l, m, o.layer)
	}
	return o.receiver.putDelivered(o.ctx, o.l, m, o.layer)
}

// AwaitReceipts waits until Outbox.OnReceipt has returned for every message that has its fate. If the
// context of OnSession is done, the error is its cause.
func (o *Opening) AwaitReceipts() error {
	if o.over.Load() {
		return errOver
	}
	return o.sender.outbox.Load().AwaitReceipts(o.ctx)
}

// Resumed says that the server continues where the last session ended, and nothing is missing. Call it
// before Deliver. It is an error without Options.Resumable.
func (o *Opening) Resumed() error {
	switch {
	case o.over.Load():
		return errOver
	case !o.life.o.Resumable:
		return errNotResumable
	}
	o.l.resumed = true
	return nil
}

var errNotResumable = errors.New("reconnect: Opening.Resumed needs Options.Resumable, because otherwise the reader has got the seam already")

// NoLogin says that what follows is no login, such as a resumption, so that Write takes none from
// [RunOptions.Logins]. It is an error after the first Write. If the server then wants a login after all,
// call Take of the Logins first, or return an error.
func (o *Opening) NoLogin() error {
	switch {
	case o.over.Load():
		return errOver
	case !o.session.login.CompareAndSwap(loginDue, loginSpared) && o.session.login.Load() == loginTaken:
		return errLoggedIn
	}
	o.session.freeLogin()
	return nil
}

var errLoggedIn = errors.New("reconnect: Opening.NoLogin after a Write, which has taken a login")

// Conn returns the connection itself, such as for the subprotocol of a [conn.WebSocket]. Use the methods
// of the Opening to read and write.
func (o *Opening) Conn() conn.Conn { return o.l.Conn }

var errOver = errors.New("reconnect: Opening used after OnSession returned")

// open calls OnSession in a goroutine of its own, because the stack that it needs should not
// be the one that waits for messages afterwards.
func (k *keeper) open(l *served, s *Session, side side) error {
	header := s.header
	s.header = nil // the session may last for months
	if k.c.onSession == nil && !slices.ContainsFunc(k.c.layers, func(l *Layer) bool { return l.Open != nil }) {
		return nil
	}
	o := &Opening{
		Session: s.Number, Cause: s.Cause, Downtime: s.Downtime, Advised: l.extra.advised, Header: header,
		session: s, life: &k.c.life, receiver: &k.c.receiver, sender: &k.c.sender, l: l, layer: noLayer,
	}
	side.opening(o)
	ctx, cancel, extend := l.openContext(k.c.life.o.OpenTimeout, o.Planned)
	defer cancel()
	o.ctx, o.extend = ctx, extend
	join := l.cutWith(ctx)
	var err error
	call := xsync.Go(func() { err = k.openLayers(l.extra.hint.in(ctx), o) })
	select {
	case <-call.Done:
	case <-ctx.Done():
		k.c.life.hooks.awaitNamed(&k.calls, call.Done, "OnSession")
	}
	o.over.Store(true)
	if join() {
		err = l.Cause(context.Canceled)
	}
	switch {
	case !call.Returned:
		err = xsync.ErrNotReturned
	case err == nil && l.Lost():
		err = l.Cause(nil)
	case err == nil:
		return nil
	}
	return fmt.Errorf("OnSession: %w", err)
}

// openContext returns the context of OnSession, which ends with l, and after limit if that is positive. extend begins
// the limit again, except in a planned session, whose layers plan with the deadline of the context.
func (l *served) openContext(limit time.Duration, planned bool) (ctx context.Context, cancel, extend func()) {
	switch {
	case limit <= 0:
		return l, func() {}, func() {}
	case planned:
		ctx, cancel := context.WithTimeoutCause(l, limit, openTimeout(limit))
		return ctx, cancel, func() {}
	}
	ctx, end := context.WithCancelCause(l)
	timer := time.AfterFunc(limit, func() { end(openTimeout(limit)) })
	cancel = func() {
		end(nil)
		timer.Stop()
	}
	extend = func() {
		timer.Reset(limit)
		if ctx.Err() != nil { // else a timer would outlive the opening
			timer.Stop()
		}
	}
	return ctx, cancel, extend
}

// cutWith cuts l when ctx ends. The caller calls join in the end, which reports whether ctx has ended; then l is cut.
func (l *served) cutWith(ctx context.Context) (join func() (ended bool)) {
	cut := func() {
		if !l.Ended() {
			l.Cut(context.Cause(ctx))
		}
	}
	done := make(chan struct{})
	stop := xsync.AfterFunc(ctx, func() { // joined by join
		defer close(done)
		cut()
	})
	return func() bool {
		if !stop() {
			<-done
		}
		if ctx.Err() == nil {
			return false
		}
		cut() // stop may prevent the call for a short time after the end of ctx
		return true
	}
}

// openLayers calls OnSession, and then the layers.
func (k *keeper) openLayers(ctx context.Context, o *Opening) error {
	if k.c.onSession != nil {
		if err := k.c.onSession(ctx, o); err != nil {
			return err
		}
	}
	return k.c.layers.open(ctx, o)
}

// openTimeout is the cause of the end of a session whose OnSession took longer than this. It is a
// timeout, so that its default verdict is ClassOverload.
type openTimeout time.Duration

func (limit openTimeout) Error() string {
	return fmt.Sprintf("not ready within %v", time.Duration(limit))
}
func (limit openTimeout) Timeout() bool          { return true }
func (limit openTimeout) Reason() backoff.Reason { return backoff.ReasonOpen }
func (limit openTimeout) Is(target error) bool   { return target == context.DeadlineExceeded }
