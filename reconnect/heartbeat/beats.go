package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// ErrLate is the cause of the end of a session whose server has promised heartbeats but was silent for too
// long: see [Dialer].Every. Its reason is [backoff.ReasonSilent].
var ErrLate error = late{}

type late struct{}

func (late) Error() string          { return "heartbeat: the server is late" }
func (late) Reason() backoff.Reason { return backoff.ReasonSilent }

const (
	smallest  = 256         // up to this size, a message is read into small first
	lastWords = time.Second // for the server's close frame, after a response could not be written
	lateAfter = 4           // looks without a message, each half of Every after the last
)

// beats is a connection that answers heartbeats.
type beats struct {
	conn.Conn
	answer func(m conn.Message) (conn.Message, bool)
	every  time.Duration // or 0 if a server is never late

	// Owned by the reader:
	failed bool                  // a response could not be written
	buffer func(size int) []byte // argument of the ReadBuffer in progress
	room   func(size int) []byte // the method place
	last   int                   // size of the newest message that was no heartbeat
	small  [smallest]byte

	reading atomic.Bool // a Read is in progress
	heard   atomic.Bool // a message has come since the last look

	mu      sync.Mutex     // guards the rest; not held while the connection is closed
	timer   *time.Timer    // calls look or closes the connection, or nil
	silent  int            // looks without a message
	cause   error          // why the timer closes the connection, or nil
	stopped bool           // no more looks, and no other cause
	closing sync.WaitGroup // waits until the timer has closed the connection or was stopped
}

// A type for each set of abilities, because a type assertion finds all methods of a type.
type (
	transport struct {
		*beats
		conn.Transport
	}
	transportPinger struct {
		transport
		conn.Pinger
	}
	transportHalfCloser struct {
		transport
		conn.HalfCloser
	}
	pinger struct {
		*beats
		conn.Pinger
	}
)

// newBeats returns a connection that answers the heartbeats of c, and has the optional interfaces of c.
func newBeats(c conn.Conn, d *Dialer) conn.Conn {
	b := &beats{Conn: c, answer: d.Answer, every: d.Every}
	b.room = b.place
	if b.every > 0 {
		b.mu.Lock() // because look uses timer
		b.timer = time.AfterFunc(b.every/2, b.look)
		b.mu.Unlock()
	}
	t, isTransport := c.(conn.Transport)
	p, pings := c.(conn.Pinger)
	h, halfCloses := c.(conn.HalfCloser)
	switch {
	case isTransport && pings:
		return transportPinger{transport{b, t}, p}
	case isTransport && halfCloses:
		return transportHalfCloser{transport{b, t}, h}
	case isTransport:
		return transport{b, t}
	case pings:
		return pinger{b, p}
	}
	return b
}

// Unwrap returns the underlying connection.
func (b *beats) Unwrap() conn.Conn { return b.Conn }

// Read implements [conn.Conn].
func (b *beats) Read(buf []byte) (conn.Message, error) {
	for {
		b.reading.Store(true)
		m, err := b.Conn.Read(buf)
		if err != nil {
			return conn.Message{}, b.ended(err)
		}
		if !b.takes(m) {
			return m, nil
		}
	}
}

// ReadBuffer implements [conn.Transport].
func (t transport) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	t.buffer = buffer
	for {
		t.reading.Store(true)
		m, err := t.Transport.ReadBuffer(t.room)
		if err != nil {
			return conn.Message{}, t.ended(err)
		}
		if t.takes(m) {
			continue
		}
		t.last = len(m.Data)
		if t.last == 0 {
			m.Data = nil // it may be in small
		} else if &m.Data[0] == &t.small[0] {
			m.Data = append(buffer(t.last)[:0], m.Data...)
		}
		return m, nil
	}
}

// place returns the memory for a message, so that the reader of an idle connection holds none for a heartbeat.
// A size of 0 is unknown.
func (b *beats) place(size int) []byte {
	if size <= smallest && (size > 0 || b.last <= smallest) {
		return b.small[:0]
	}
	return b.buffer(size)
}

// takes reports whether m is a heartbeat, which it answers.
func (b *beats) takes(m conn.Message) bool {
	b.reading.Store(false)
	b.heard.Store(true)
	answer, ok := b.answer(m)
	if !ok || answer.Type == 0 || b.failed {
		return ok
	}
	if err := b.Conn.Write(answer); err != nil {
		b.failed = true
		wait := lastWords
		if errors.Is(err, conn.ErrBadMessage) {
			wait = 0 // the next response would be as bad
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closeAfter(wait, err)
	}
	return true
}

// ended returns what Read returns after err.
func (b *beats) ended(err error) error {
	if cause := b.stop(); cause != nil && errors.Is(err, net.ErrClosed) {
		return cause
	}
	return err
}

// look counts a look at the connection, and begins the next, or closes the connection if the server is late.
func (b *beats) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard.Swap(false) {
		b.silent = 0
	} else if b.reading.Load() {
		b.silent++
	}
	if b.silent >= lateAfter {
		b.closeAfter(0, fmt.Errorf("%w: nothing has come for %v", ErrLate, lateAfter*b.every/2))
	}
	if !b.stopped {
		b.timer.Reset(b.every / 2)
	}
}

// closeAfter closes the connection after d because of cause, unless it is being closed. The caller must hold mu.
func (b *beats) closeAfter(d time.Duration, cause error) {
	if b.stopped {
		return
	}
	b.stopped, b.cause = true, cause
	b.closing.Add(1)
	b.timer = time.AfterFunc(d, func() {
		defer b.closing.Done()
		_ = b.Conn.CloseNow()
	})
}

// stop stops the timer, and returns why it has closed the connection, or would have, or nil.
func (b *beats) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil && b.timer.Stop() && b.cause != nil {
		b.closing.Done()
	}
	return b.cause
}

// Close implements [conn.Conn].
func (b *beats) Close(ctx context.Context, code int, reason string) error {
	b.stop()
	return b.Conn.Close(ctx, code, reason)
}

// CloseNow implements [conn.Conn]. If the timer is closing the connection, CloseNow returns after that.
func (b *beats) CloseNow() error {
	b.stop()
	defer b.closing.Wait()
	return b.Conn.CloseNow()
}
