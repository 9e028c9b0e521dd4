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
	end    error                 // what Read returns from now on, or nil
	buffer func(size int) []byte // argument of the ReadBuffer in progress
	room   func(size int) []byte // the method place
	last   int                   // size of the newest message that was no heartbeat
	small  [smallest]byte

	reading atomic.Bool  // a Read is in progress
	silent  atomic.Int32 // looks without a message, or -1 if one has come since the last look

	mu      sync.Mutex     // guards the rest; not held while the connection is closed
	timer   *time.Timer    // calls look or expire, or nil
	cause   error          // why the timer closes the connection, or nil
	stopped bool           // the timer must not close the connection
	closing sync.WaitGroup // while the timer closes the connection
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
	for b.end == nil {
		b.reading.Store(true)
		if m, err := b.Conn.Read(buf); !b.takes(m, err) {
			return m, nil
		}
	}
	return conn.Message{}, b.end
}

// ReadBuffer implements [conn.Transport].
func (t transport) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	t.buffer = buffer
	for t.end == nil {
		t.reading.Store(true)
		m, err := t.Transport.ReadBuffer(t.room)
		if t.takes(m, err) {
			continue
		}
		n := len(m.Data)
		t.last = n
		if n == 0 {
			m.Data = nil
		} else if &m.Data[0] == &t.small[0] {
			to := buffer(n)
			if cap(to) < n {
				to = make([]byte, n)
			}
			m.Data = to[:copy(to[:n], m.Data)]
		}
		return m, nil
	}
	return conn.Message{}, t.end
}

// place returns the memory for a message, so that the reader of an idle connection holds none for a heartbeat.
// A size of 0 is unknown.
func (b *beats) place(size int) []byte {
	if size <= smallest && (size > 0 || b.last <= smallest) {
		return b.small[:0]
	}
	return b.buffer(size)
}

// takes reports whether the result of a Read is a heartbeat, which it answers, or an error, which it keeps.
func (b *beats) takes(m conn.Message, err error) bool {
	b.reading.Store(false)
	if err != nil {
		b.end = err
		if cause := b.stop(); cause != nil && errors.Is(err, net.ErrClosed) {
			b.end = cause
		}
		return true
	}
	b.silent.Store(-1)
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
		b.closeAfter(wait, err)
	}
	return true
}

// look counts a look at the connection, and begins the next, or closes the connection if the server is late.
func (b *beats) look() {
	if b.silent.Load() < 0 {
		b.silent.Store(0)
	} else if b.reading.Load() && b.silent.Add(1) >= lateAfter {
		b.closeAfter(0, fmt.Errorf("%w: nothing has come for %v", ErrLate, lateAfter*b.every/2))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped && b.cause == nil {
		b.timer.Reset(b.every / 2)
	}
}

// closeAfter closes the connection after d because of cause, unless it is closed before.
func (b *beats) closeAfter(d time.Duration, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.cause != nil {
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	b.cause = cause
	b.timer = time.AfterFunc(d, b.expire)
}

// expire closes the connection, unless it was stopped.
func (b *beats) expire() {
	b.mu.Lock()
	stopped := b.stopped
	if !stopped {
		b.closing.Add(1) // CloseNow waits
	}
	b.mu.Unlock()
	if !stopped {
		defer b.closing.Done()
		_ = b.Conn.CloseNow()
	}
}

// stop stops the timer for good, and returns why it has closed the connection, or nil.
func (b *beats) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
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
