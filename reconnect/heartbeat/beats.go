package heartbeat

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
)

// beats is a connection that answers heartbeats. Its fields belong to the goroutine that reads.
type beats struct {
	conn.Conn
	answer func(m conn.Message) (conn.Message, bool)
	watch  watch
	failed error // why an answer could not be written; nil: all were
	end    error // what Read returns from now on; nil: the connection lives

	buffer func(size int) []byte // of the ReadBuffer under way
	room   func(size int) []byte // beats.place
	direct bool                  // buffer was called
	last   int                   // size of the newest message that was no heartbeat
	small  [smallest]byte
}

// smallest is the size up to which a message is read into memory of our own first. Otherwise the reader of an idle
// connection would keep memory for a heartbeat until the next message.
const smallest = 256

// lastWords is how long the reader may go on when an answer could not be written, because the server may
// have said why it ended the connection.
const lastWords = time.Second

// transport is the conn.Transport of a beats.
type transport struct {
	conn.Transport
	beats *beats
}

// newBeats returns a connection that answers the heartbeats of c, and has the optional interfaces of c.
func newBeats(c conn.Conn, d *Dialer) conn.Conn {
	b := &beats{Conn: c, answer: d.Answer}
	b.room = b.place
	b.watch.start(c, d.Every)
	t, isTransport := c.(conn.Transport)
	p, pings := c.(conn.Pinger)
	h, halfCloses := c.(conn.HalfCloser)
	switch {
	case isTransport && pings:
		return &struct {
			*beats
			transport
			conn.Pinger
		}{b, transport{t, b}, p}
	case isTransport && halfCloses:
		return &struct {
			*beats
			transport
			conn.HalfCloser
		}{b, transport{t, b}, h}
	case isTransport:
		return &struct {
			*beats
			transport
		}{b, transport{t, b}}
	case pings:
		return &struct {
			*beats
			conn.Pinger
		}{b, p}
	}
	return b
}

// Unwrap returns the connection below.
func (b *beats) Unwrap() conn.Conn { return b.Conn }

// Read implements [conn.Conn].
func (b *beats) Read(buf []byte) (conn.Message, error) {
	for b.end == nil {
		b.watch.read(true)
		m, err := b.Conn.Read(buf)
		b.watch.read(false)
		if err != nil {
			b.ended(err)
		} else if !b.takes(m) {
			return m, nil
		}
	}
	return conn.Message{}, b.end
}

// ReadBuffer implements [conn.Transport].
func (t transport) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	b := t.beats
	b.watch.read(true)
	defer b.watch.read(false)
	b.buffer = buffer
	for b.end == nil {
		b.direct = false
		m, err := t.Transport.ReadBuffer(b.room)
		if err != nil {
			b.ended(err)
		} else if !b.takes(m) {
			return b.pass(m), nil
		}
	}
	return conn.Message{}, b.end
}

// place returns the memory for a message of that size; 0: the size is not known.
func (b *beats) place(size int) []byte {
	if size <= smallest && (size > 0 || b.last <= smallest) {
		return b.small[:0]
	}
	b.direct = true
	return b.buffer(size)
}

// pass returns m for the reader. If m lies in our memory, pass copies it into the reader's.
func (b *beats) pass(m conn.Message) conn.Message {
	n := len(m.Data)
	b.last = n
	switch {
	case n == 0:
		m.Data = nil
	case !b.direct && &m.Data[0] == &b.small[0]:
		to := b.buffer(n)
		if cap(to) < n {
			to = make([]byte, n)
		}
		m.Data = to[:copy(to[:n], m.Data)]
	}
	return m
}

// takes reports whether m is a heartbeat, which it answers.
func (b *beats) takes(m conn.Message) bool {
	b.watch.heard()
	answer, ok := b.answer(m)
	if !ok || answer.Type == 0 || b.failed != nil {
		return ok
	}
	switch err := b.Conn.Write(answer); {
	case err == nil:
	case errors.Is(err, conn.ErrBadMessage): // the next answer would be as bad
		b.failed = err
		_ = b.Conn.CloseNow()
	default:
		b.failed = err
		b.watch.cutIn(lastWords)
	}
	return true
}

// ended notes that the connection has ended because of err, or because of us.
func (b *beats) ended(err error) {
	b.end = err
	if cause := b.watch.stop(); errors.Is(err, net.ErrClosed) && cause != nil {
		b.end = cause
	} else if errors.Is(err, net.ErrClosed) && b.failed != nil {
		b.end = b.failed
	}
}

// Close implements [conn.Conn].
func (b *beats) Close(ctx context.Context, code int, reason string) error {
	b.watch.stop()
	return b.Conn.Close(ctx, code, reason)
}

// CloseNow implements [conn.Conn]. If the watch closes the connection already, CloseNow returns after that.
func (b *beats) CloseNow() error {
	b.watch.stop()
	defer b.watch.closing.Wait()
	return b.Conn.CloseNow()
}
