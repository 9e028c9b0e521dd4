package conntest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
)

// FakeOptions select the interfaces of [Fake.Conn]. Nil means none.
type FakeOptions struct {
	Pings     bool // its Conn is a conn.Pinger
	Transport bool // its Conn is a conn.Transport
}

// Fake is a [conn.Conn] whose Read returns the messages passed to Deliver, at the same virtual
// instant. It is safe for concurrent use.
type Fake struct {
	options FakeOptions
	peer    *Fake // of Pair, else nil

	mu      sync.Mutex // guards all below; never held across a wait
	changed sync.Cond
	inbox   []conn.Message
	waits   func() // called by Read before it waits; may be nil
	written []conn.Message
	reading bool  // a Read is under way
	held    bool  // writes wait
	failing error // of a Write
	spare   int   // how many messages are written before failing
	batches []int // the sizes of the batches
	hungUp  bool  // the peer has ended the stream
	mute    bool  // neither pings nor Close are answered
	pings   int   // sent
	pong    time.Duration
	heard   time.Time // when the last byte came in

	cause  error            // why it ended: the first cause
	closed bool             // by Close or CloseNow
	bye    *conn.CloseError // the code and the reason of Close
}

var _ conn.Conn = (*Fake)(nil)

// NewFake returns a live connection whose peer is the test.
func NewFake(o *FakeOptions) *Fake {
	f := &Fake{heard: time.Now()}
	if o != nil {
		f.options = *o
	}
	f.changed.L = &f.mu
	return f
}

// Pair returns two connections. Each reads what the other writes, in order and without a limit.
// When one is closed the other ends too: with [io.EOF], or after a Close with a [conn.CloseError].
func Pair(o *FakeOptions) (*Fake, *Fake) {
	a, b := NewFake(o), NewFake(o)
	a.peer, b.peer = b, a
	return a, b
}

// Conn returns f with the interfaces selected by the options.
func (f *Fake) Conn() conn.Conn {
	var t conn.Transport
	var p conn.Pinger
	if f.options.Transport {
		t = fakeTransport{f}
	}
	if f.options.Pings {
		p = fakePinger{f}
	}
	return withAbilities(f, t, p)
}

// Read implements [conn.Conn].
func (f *Fake) Read(buf []byte) (conn.Message, error) {
	return f.read(func(int) []byte { return buf })
}

// read returns the next message in the memory that buffer returns.
func (f *Fake) read(buffer func(size int) []byte) (conn.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = true
	f.changed.Broadcast()
	defer func() { f.reading = false }()
	for len(f.inbox) == 0 || f.closed {
		if f.hungUp {
			f.die(io.EOF)
		}
		if f.cause != nil {
			return conn.Message{}, fmt.Errorf("read: %w", f.cause)
		}
		f.wait()
	}
	m := f.inbox[0]
	f.inbox[0] = conn.Message{}
	f.inbox = f.inbox[1:]
	f.heard = time.Now()
	m.Data = append(buffer(len(m.Data))[:0], m.Data...)
	return m, nil
}

// wait is a reader's wait for a change, which it announces if nothing has come meanwhile. The
// caller holds mu.
func (f *Fake) wait() {
	if waits := f.waits; waits != nil {
		f.mu.Unlock()
		waits()
		f.mu.Lock()
		if len(f.inbox) > 0 || f.hungUp || f.cause != nil {
			return
		}
	}
	f.changed.Wait()
}

// Write implements [conn.Conn] and records the message. After the end of the connection its error
// is also [conn.ErrNotWritten].
func (f *Fake) Write(m conn.Message) error {
	m.Data = bytes.Clone(m.Data)
	if err := f.note(m); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if f.peer != nil {
		f.peer.Deliver(m)
	}
	return nil
}

// note notes a message that is written, or returns why it cannot be.
func (f *Fake) note(m conn.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return fmt.Errorf("%w: %w", conn.ErrNotWritten, f.cause)
	}
	for f.held && f.cause == nil {
		f.changed.Wait()
	}
	if f.failing != nil && f.cause == nil {
		if f.spare == 0 {
			f.die(f.failing)
		}
		f.spare--
	}
	if f.cause == nil {
		f.written = append(f.written, m)
	}
	return f.cause
}

// Close implements [conn.Conn] and records code and reason. If mute, it waits for ctx or CloseNow
// first.
func (f *Fake) Close(ctx context.Context, code int, reason string) error {
	bye := &conn.CloseError{Code: code, Reason: reason}
	if f.Closed() {
		return fmt.Errorf("close: %w", net.ErrClosed)
	}
	f.set(func() { f.bye = bye })
	if f.peer != nil {
		f.peer.Fail(bye)
	}
	defer f.set(f.shut)
	return f.await(ctx, "close", func() bool { return !f.mute })
}

// await waits until done reports true. Its error says why op has ended before.
func (f *Fake) await(ctx context.Context, op string, done func() bool) error {
	stop := context.AfterFunc(ctx, func() { f.set(func() {}) })
	defer stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.cause != nil:
			return fmt.Errorf("%s: %w", op, f.cause)
		case done():
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		}
		f.changed.Wait()
	}
}

// CloseNow implements [conn.Conn]. The error is always nil.
func (f *Fake) CloseNow() error {
	was := f.Closed()
	f.set(f.shut)
	if f.peer != nil && !was {
		f.peer.Fail(io.EOF)
	}
	return nil
}

// Deliver passes copies of messages to Read, without a limit and without blocking. After the end of
// the connection they are lost.
func (f *Fake) Deliver(messages ...conn.Message) {
	f.set(func() {
		if f.cause != nil {
			return
		}
		for _, m := range messages {
			m.Data = bytes.Clone(m.Data)
			f.inbox = append(f.inbox, m)
		}
	})
}

// Fail kills the connection: Read returns the delivered messages and then err, and other methods
// fail. A blocked Write returns err, and the fate of its message is unknown.
func (f *Fake) Fail(err error) { f.set(func() { f.die(err) }) }

// FailWrite kills the connection with err in the next or a held Write. Its message was not written
// if err is [conn.ErrNotWritten].
func (f *Fake) FailWrite(err error) { f.FailWriteAfter(0, err) }

// FailWriteAfter is FailWrite for the message after the next n, also in a batch.
func (f *Fake) FailWriteAfter(n int, err error) {
	f.set(func() { f.failing, f.spare, f.held = err, n, false })
}

// HangUp ends the peer's stream: Read returns the delivered messages and then [io.EOF], which ends
// the connection. Until then writes succeed, and HungUp reports true.
func (f *Fake) HangUp() { f.set(func() { f.hungUp = true }) }

// Hold makes writes block until Release or the end of the connection.
func (f *Fake) Hold() { f.set(func() { f.held = true }) }

// Release ends Hold.
func (f *Fake) Release() { f.set(func() { f.held = false }) }

// Mute leaves pings and Close unanswered from now on.
func (f *Fake) Mute() { f.set(func() { f.mute = true }) }

// PongAfter sets the delay of pongs. Default: 0.
func (f *Fake) PongAfter(d time.Duration) { f.set(func() { f.pong = d }) }

// Hear records that bytes arrived without a whole message.
func (f *Fake) Hear() { f.set(func() { f.heard = time.Now() }) }

// Written returns a copy of the written messages, in order.
func (f *Fake) Written() []conn.Message {
	return get(f, func() []conn.Message { return slices.Clone(f.written) })
}

// Batches returns the sizes of the written batches, in order.
func (f *Fake) Batches() []int { return get(f, func() []int { return slices.Clone(f.batches) }) }

// Pings returns the number of pings sent.
func (f *Fake) Pings() int { return get(f, func() int { return f.pings }) }

// Closed reports whether Close or CloseNow was called.
func (f *Fake) Closed() bool { return get(f, func() bool { return f.closed }) }

// ClosedWith returns the code and the reason of Close, if it was called.
func (f *Fake) ClosedWith() (code int, reason string, ok bool) {
	bye := get(f, func() *conn.CloseError { return f.bye })
	if bye == nil {
		return 0, "", false
	}
	return bye.Code, bye.Reason, true
}

func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changed.Broadcast()
}

// get returns what of returns under the lock of f.
func get[T any](f *Fake, of func() T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return of()
}

// die ends the connection and keeps the first cause. The caller holds mu.
func (f *Fake) die(cause error) {
	if f.cause == nil {
		f.cause = cause
	}
	f.changed.Broadcast()
}

// shut ends the connection for its owner. The caller holds mu.
func (f *Fake) shut() {
	f.closed = true
	f.die(net.ErrClosed)
}
