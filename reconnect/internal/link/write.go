package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Acquire waits until the caller has the slot: until no other goroutine writes. It returns the
// cause of ctx if ctx ends first, and [net.ErrClosed] if the life does.
func (l *Link) Acquire(ctx context.Context) error { return l.Slot.Acquire(ctx, &l.life.Context) }

// Write writes messages, and returns how many were handed over whole. If that is not all of them, err is
// the error of the next one or of the Transport. The caller holds the slot.
func (l *Link) Write(ms []conn.Message) (n int, err error) {
	if l.Transport != nil && len(ms) > 1 {
		n, err = l.writeBatch(ms)
	} else {
		for n < len(ms) && err == nil {
			if err = l.Conn.Write(ms[n]); err == nil {
				n++
			}
		}
	}
	if l.rest != nil {
		l.Wrote(min(n+1, len(ms))) // the one that failed may have been begun
	}
	return n, err
}

// writeBatch writes messages by the Transport. If the Transport breaks its contract, writeBatch returns an
// error that ends the session, whatever the Transport's own error was. The messages that the Transport
// reports as written still count as written, so that none is written twice.
func (l *Link) writeBatch(ms []conn.Message) (n int, err error) {
	n, err = l.Transport.WriteBatch(ms)
	if n >= 0 && (n < len(ms) && err != nil || n == len(ms) && err == nil) {
		return n, err
	}
	return min(max(n, 0), len(ms)), fmt.Errorf(
		"reconnect: WriteBatch of %T returned n = %d for %d messages and the error %v: "+
			"n must be smaller if and only if there is an error",
		l.Transport, n, len(ms), err)
}

// WriteFirst writes m ahead of all others that wait to write.
func (l *Link) WriteFirst(ctx context.Context, m conn.Message) error {
	if err := l.acquireFirst(ctx); err != nil {
		return err
	}
	defer l.Release()
	err := l.Conn.Write(m)
	l.Wrote(1)
	switch {
	case err == nil:
		l.life.Counts.Wrote(m)
	case !errors.Is(err, conn.ErrBadMessage):
		l.Fail(err)
	}
	return err
}

// acquireFirst gets the slot ahead of all others that wait for it, and waits until a message may
// be written. If ctx ends before because of the window, HeldByWindow reports it.
func (l *Link) acquireFirst(ctx context.Context) error {
	p := l.window()
	var sleeps uint64
	if p != nil {
		sleeps = p.sleeps.Load()
	}
	if err := l.AcquireFirst(ctx, &l.life.Context); err != nil {
		if p != nil && (sleeps%2 == 1 || p.sleeps.Load() != sleeps) { // its holder waited
			p.late.Store(true)
		}
		return err
	}
	err := l.AwaitWrite(ctx)
	if err != nil { // there is a window
		p.late.Store(true)
		l.Release()
	}
	return err
}

// AwaitWrite waits until a message may be written. It ends with ctx, l and life. The caller
// holds the slot.
func (l *Link) AwaitWrite(ctx context.Context) error {
	_, err := l.MayWrite(ctx, 1, nil)
	return err
}

// Wake lets a wait for the window end, because there may be nothing to write any more.
func (l *Link) Wake() {
	if l != nil {
		if p := l.window(); p != nil {
			p.woken.Broadcast()
		}
	}
}

// HeldByWindow reports whether the window has kept an acquireFirst from succeeding since the last
// call.
func (l *Link) HeldByWindow() bool {
	p := l.window()
	return p != nil && p.late.Swap(false)
}

// Paced reports whether the peer limits how many messages are written: see MayWrite.
func (l *Link) Paced() bool { return l.rest != nil && l.rest.window != nil }

// MayWrite waits until a message may be written, and returns how many may, most at most; 0 if
// nothing reports that there is nothing to write. It ends with ctx, l and life. The caller holds
// the slot.
func (l *Link) MayWrite(ctx context.Context, most int, nothing func() bool) (int, error) {
	if l.rest == nil || l.rest.window == nil {
		return most, nil
	}
	return l.rest.window.wait(ctx, l, most, nothing)
}

// AwaitPing waits until a ping may be written, and counts it.
func (l *Link) AwaitPing(ctx context.Context) error {
	p := l.window()
	if p == nil {
		return nil
	}
	if err := l.acquireFirst(ctx); err != nil {
		return err
	}
	defer l.Release()
	p.wrote(1)
	return nil
}

// Wrote notes that n messages were written, or begun. The caller holds the slot, or the link is not
// ready.
func (l *Link) Wrote(n int) {
	if l.rest == nil {
		return
	}
	if l.rest.observer != nil {
		l.rest.observer.NoteWrote()
	}
	if l.rest.window != nil {
		l.rest.window.wrote(n)
	}
}

// Goodbye ends the conversation in order: see farewell. The caller holds the slot.
func (l *Link) Goodbye(ctx context.Context) error {
	l.goodbye.CompareAndSwap(0, goodbyeSaid)
	read, err := l.farewell(ctx, 1000, "")
	answered := l.goodbye.Load() == goodbyeAnswered
	switch {
	case err == nil && (!read || answered):
		return nil // whatever else has ended the link meanwhile: Retire, or a ping that has failed
	case !answered && l.Reason(err) == backoff.ReasonRotated:
		return errUnanswered // the cause is that of Retire, whose limit may be over before ctx
	case err != nil:
		return err
	}
	if cause := l.Cause(nil); !errors.Is(cause, net.ErrClosed) && !orderly(cause) {
		return cause
	}
	return nil
}

var errUnanswered = errors.New("the peer has not answered the close frame")

// farewell sends the close frame, or ends our direction, and waits for the answer until ctx ends. The
// supervisor reads on until the answer comes, so that nothing is lost of what the peer has sent before it:
// then read is true. But while the inbox is full, and for patience no message is taken out of it, farewell
// discards what is left. So it does for a Conn that cannot be read after a close frame.
func (l *Link) farewell(ctx context.Context, code int, reason string) (read bool, err error) {
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(cut); l.Cut(context.Cause(ctx)) })
	err = l.startClose(code, reason)
	read = err == nil && l.awaitAnswer()
	if !stop() {
		<-cut
		return false, l.Cause(context.Cause(ctx))
	}
	switch {
	case err == nil && !read, errors.Is(err, errors.ErrUnsupported) && !l.Lost():
		return false, l.Conn.Close(ctx, code, reason)
	case err != nil:
		return false, l.Cause(err)
	}
	return true, nil
}

// startClose sends the close frame, or ends our direction. An error that is errors.ErrUnsupported means that
// nothing has happened.
func (l *Link) startClose(code int, reason string) error {
	switch c := l.Conn.(type) {
	case conn.CloseStarter:
		return c.StartClose(code, reason)
	case conn.HalfCloser:
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// patience is how long a full inbox must stay as it is until farewell assumes that it is not read: twice this
// at most.
const patience = lastWords / 2

// awaitAnswer waits until the supervisor reads no more. It reports false if a full inbox is not read.
func (l *Link) awaitAnswer() bool {
	look := time.NewTicker(patience)
	defer look.Stop()
	for last := Turn(0); ; last = l.Turn() {
		select {
		case <-l.Done():
			return true
		case <-look.C:
			if turn := l.Turn(); turn == last && turn.Does() == Blocked {
				return false
			}
		}
	}
}

// pace is the rolling window of one link, for what we send by it. Its user holds the slot of the link, so that no
// other goroutine writes meanwhile.
type pace struct {
	window budget.Window
	woken  xsync.Signal  // the caller of wait may have nothing to write any more
	sleeps atomic.Uint64 // begins and ends of waits for the window: odd while there is one
	late   atomic.Bool   // a probe was not written in its time, because of the window
}

// wait waits until a message may be written, and returns how many may, most at most. It ends
// with ctx, l and the life of l, with an error, and with 0 if there is nothing to write, which it asks
// before each wait and when it is woken. Without nothing, there always is.
func (p *pace) wait(ctx context.Context, l *Link, most int, nothing func() bool) (int, error) {
	for {
		at := time.Now()
		if n := p.window.Free(at); n > 0 {
			return min(n, most), nil
		}
		woken := p.woken.Wait()
		if nothing != nil && nothing() {
			return 0, nil
		}
		if err := p.sleep(ctx, l, woken, p.window.At(at).Sub(at)); err != nil {
			return 0, err
		}
	}
}

// sleep waits for d, until it is woken, or until ctx, life or l ends, which is an error.
func (p *pace) sleep(ctx context.Context, l *Link, woken <-chan struct{}, d time.Duration) error {
	p.sleeps.Add(1)
	defer p.sleeps.Add(1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.Done():
		return l.Cause(net.ErrClosed)
	case <-l.life.Done():
		return net.ErrClosed
	}
}

// wrote notes that n messages were written, or begun.
func (p *pace) wrote(n int) {
	at := time.Now()
	for range n {
		p.window.Take(at)
	}
}
