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

// FakeOptions are what a [Fake] can do beyond [conn.Conn]. Nil and the zero value mean nothing.
type FakeOptions struct {
	Pings     bool // its Conn is a conn.Pinger
	Transport bool // its Conn is a conn.Transport
}

// Fake is a [conn.Conn] without a protocol: Read returns the messages that Deliver got, at
// the same virtual instant. Any goroutine may call its methods. Fake itself has no other
// ability; [Fake.Conn] has those that its options name.
type Fake struct {
	options FakeOptions

	mu      sync.Mutex // guards all below; never held across a wait
	changed sync.Cond
	peer    *Fake // of Pair, else nil
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
	end     fakeEnd
}

// fakeEnd is how a Fake ended. The zero value means that it has not.
type fakeEnd struct {
	cause  error // the first
	closed bool  // by Close or CloseNow
	polite bool  // by Close, with the code and the reason
	code   int
	reason string
}

var _ conn.Conn = (*Fake)(nil)

// NewFake returns a live connection without a peer. The test plays the peer.
func NewFake(o *FakeOptions) *Fake {
	f := &Fake{heard: time.Now()}
	if o != nil {
		f.options = *o
	}
	f.changed.L = &f.mu
	return f
}

// Pair returns two connections. Each reads what the other writes, in order and without a
// limit. When one is closed the other ends too: with [io.EOF], or
// after a Close with an error that has the method CloseCode.
func Pair(o *FakeOptions) (*Fake, *Fake) {
	a, b := NewFake(o), NewFake(o)
	a.peer, b.peer = b, a
	return a, b
}

// Conn returns the connection with the abilities that its options name.
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

// Read returns the next message that was delivered. See [conn.Conn].
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
	for len(f.inbox) == 0 || f.end.closed {
		if f.hungUp {
			f.die(io.EOF)
		}
		if f.end.cause != nil {
			return conn.Message{}, fmt.Errorf("read: %w", f.end.cause)
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
		if len(f.inbox) > 0 || f.hungUp || f.end.cause != nil {
			return
		}
	}
	f.changed.Wait()
}

// Write notes the message, at once or after [Fake.Hold] ends. See [conn.Conn]. After the end
// of the connection its error is also [conn.ErrNotWritten].
func (f *Fake) Write(m conn.Message) error {
	f.mu.Lock()
	if f.end.cause != nil {
		defer f.mu.Unlock()
		return fmt.Errorf("write: %w: %w", conn.ErrNotWritten, f.end.cause)
	}
	for f.held && f.end.cause == nil {
		f.changed.Wait()
	}
	if f.failing != nil && f.end.cause == nil {
		if f.spare == 0 {
			f.die(f.failing)
		}
		f.spare--
	}
	if f.end.cause != nil {
		defer f.mu.Unlock()
		return fmt.Errorf("write: %w", f.end.cause)
	}
	m.Data = bytes.Clone(m.Data)
	f.written = append(f.written, m)
	peer := f.peer
	f.mu.Unlock()
	if peer != nil {
		peer.Deliver(m)
	}
	return nil
}

// Close notes code and reason and closes; a mute connection waits for ctx
// first, or for CloseNow. See [conn.Conn].
func (f *Fake) Close(ctx context.Context, code int, reason string) error {
	f.mu.Lock()
	if f.end.closed {
		defer f.mu.Unlock()
		return fmt.Errorf("close: %w", net.ErrClosed)
	}
	f.end.code, f.end.reason, f.end.polite = code, reason, true
	peer := f.peer
	f.mu.Unlock()
	if peer != nil {
		peer.Fail(&closeError{code, reason})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.answered(ctx)
	f.shut()
	return err
}

// answered waits for the answer to a close frame. The caller holds mu.
func (f *Fake) answered(ctx context.Context) error {
	stop := context.AfterFunc(ctx, f.wake)
	defer stop()
	for f.mute && f.end.cause == nil {
		if ctx.Err() != nil {
			return fmt.Errorf("close: %w", context.Cause(ctx))
		}
		f.changed.Wait()
	}
	if f.end.cause != nil {
		return fmt.Errorf("close: %w", f.end.cause)
	}
	return nil
}

// CloseNow cuts the connection and returns nil.
func (f *Fake) CloseNow() error {
	f.mu.Lock()
	was := f.end.closed
	f.shut()
	peer := f.peer
	f.mu.Unlock()
	if peer != nil && !was {
		peer.Fail(io.EOF)
	}
	return nil
}

// Deliver gives copies of messages to Read, without a limit. It never blocks. After the
// end of the connection the messages are lost.
func (f *Fake) Deliver(messages ...conn.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end.cause != nil {
		return
	}
	for _, m := range messages {
		m.Data = bytes.Clone(m.Data)
		f.inbox = append(f.inbox, m)
	}
	f.changed.Broadcast()
}

// Fail kills the connection: Read returns what was delivered and then err, and every other
// method fails. A blocked Write returns err, and the fate of its message is unknown.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.die(err)
}

// FailWrite kills the connection with err in the next Write, also in one that
// is held back. Its message was not written if err is [conn.ErrNotWritten].
func (f *Fake) FailWrite(err error) { f.FailWriteAfter(0, err) }

// FailWriteAfter is FailWrite for the message after the next n, of a Write or of
// a batch.
func (f *Fake) FailWriteAfter(n int, err error) {
	f.set(func() { f.failing, f.spare, f.held = err, n, false })
}

// HangUp ends the stream of the peer: Read returns what was delivered and then [io.EOF],
// which ends the connection. Until then writes succeed. A [conn.Transport] sees it at
// once.
func (f *Fake) HangUp() { f.set(func() { f.hungUp = true }) }

// Hold makes writes block, as on a full window, until Release or the end.
func (f *Fake) Hold() { f.set(func() { f.held = true }) }

// Release ends Hold.
func (f *Fake) Release() { f.set(func() { f.held = false }) }

// Mute leaves pings and Close unanswered from now on.
func (f *Fake) Mute() { f.set(func() { f.mute = true }) }

// PongAfter sets how long a ping takes to be answered. Default: 0.
func (f *Fake) PongAfter(d time.Duration) { f.set(func() { f.pong = d }) }

// Hear notes that bytes came in without a whole message.
func (f *Fake) Hear() { f.set(func() { f.heard = time.Now() }) }

// Written returns a copy of what was written so far, in order.
func (f *Fake) Written() []conn.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.written)
}

// Batches returns how many messages each WriteBatch has written so far, in order.
func (f *Fake) Batches() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches)
}

// Pings returns how many pings were sent.
func (f *Fake) Pings() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pings
}

// Closed reports whether the owner closed the connection, by Close or CloseNow.
func (f *Fake) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end.closed
}

// ClosedWith returns the code and the reason of Close; ok is false if Close was never called.
func (f *Fake) ClosedWith() (code int, reason string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end.code, f.end.reason, f.end.polite
}

func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changed.Broadcast()
}

// die ends the connection and keeps the first cause. The caller holds mu.
func (f *Fake) die(cause error) {
	if f.end.cause == nil {
		f.end.cause = cause
	}
	f.changed.Broadcast()
}

// shut ends the connection for its owner. The caller holds mu.
func (f *Fake) shut() {
	f.end.closed = true
	f.die(net.ErrClosed)
}

func (f *Fake) wake() { f.set(func() {}) }

// closeError is the error of the other connection of a Pair after a Close.
type closeError struct {
	code   int
	reason string
}

func (e *closeError) Error() string  { return fmt.Sprintf("closed with %d %q", e.code, e.reason) }
func (e *closeError) CloseCode() int { return e.code }
