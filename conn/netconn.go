package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// NetConn returns c as a [net.Conn], for a protocol that needs a byte stream, such as MQTT or SSH
// over a WebSocket:
//
//	c, err := d.Dial(ctx) // d is a *dialer.WebSocket, with Subprotocols: []string{"mqtt"} for MQTT
//	if err != nil {
//		return nil, err
//	}
//	return conn.NetConn(c, conn.Binary), nil
//
// From now on c belongs to the NetConn. A goroutine reads c until Close, at most one message ahead
// of the stream. So pings stay unanswered once a message waits to be read.
//
//   - Read returns the data of the messages, of whatever type, as one stream. It returns [io.EOF]
//     after a close frame with the code 1000 or 1001 or without a code, or, if c is a [HalfCloser],
//     after the end of the peer's direction. After any other end it returns the error of c.
//   - Write sends p as one message of type t, unless p is empty. If a client writes one packet by
//     several calls, other goroutines must not write between them: paho.golang ensures that for TCP
//     only, and needs packets.NewThreadSafeConn around a NetConn.
//   - A deadline ends the call with [os.ErrDeadlineExceeded], not the connection. The next Read
//     returns what has arrived. A Write that waited for another Write returns 0, and one whose
//     message was being written returns len(p): the message is written completely later, or c ends.
//   - Close ends every call with [net.ErrClosed], sends a close frame with the code 1000 after what
//     was written, and waits for the reply, 1 s at most. Later calls of Close return net.ErrClosed.
//   - LocalAddr and RemoteAddr return those of c, or an address with the text "unknown".
func NetConn(c Conn, t Type) net.Conn {
	n := &netConn{
		conn: c, kind: t,
		in: make(chan []byte), spare: make(chan []byte, 1), over: make(chan struct{}),
		reading: make(chan struct{}, 1), writing: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	n.transport, _ = c.(Transport)
	n.buffer = n.takeSpare
	n.readBy.start()
	n.writeBy.start()
	go n.receive() // Close waits for over
	return n
}

// netConn is a NetConn.
type netConn struct {
	conn      Conn
	transport Transport // conn, if it is one; else nil
	kind      Type

	in     chan []byte           // the data of the next message; closed when there is none
	spare  chan []byte           // holds a buffer that is not in use, or is empty
	buffer func(size int) []byte // takeSpare
	end    error                 // why there is no next message; to be read after in is closed
	over   chan struct{}         // closed when receive has returned

	reading chan struct{} // full while a goroutine is in Read, which owns the next two
	whole   []byte        // the message of which rest is the end
	rest    []byte        // what was not returned

	writing chan struct{} // full while a message is being written, and after Close
	out     []byte        // the message that is being written

	readBy, writeBy deadline
	closing         sync.Once
	closed          chan struct{} // closed by Close
}

// mostSpare is the size of the largest buffer that is kept for the next message, in bytes.
const mostSpare = 32 << 10

// receive reads the connection until it ends.
func (n *netConn) receive() {
	defer close(n.over)
	for {
		m, err := n.next()
		if err != nil {
			n.end = n.endOf(err)
			close(n.in)
			return
		}
		if len(m.Data) == 0 {
			continue
		}
		select {
		case n.in <- m.Data:
		case <-n.closed:
			return
		}
	}
}

func (n *netConn) next() (Message, error) {
	if n.transport != nil {
		return n.transport.ReadBuffer(n.buffer)
	}
	return n.conn.Read(n.takeSpare(0))
}

// takeSpare returns the spare buffer if a message of that size may fit, else nil.
func (n *netConn) takeSpare(size int) []byte {
	select {
	case b := <-n.spare:
		if size <= cap(b) {
			return b
		}
	default:
	}
	return nil
}

// endOf returns the error of Read for the error by which the connection has ended.
func (n *netConn) endOf(err error) error {
	if closed, ok := errors.AsType[*CloseError](err); ok {
		switch closed.Code {
		case codeNormal, codeGoingAway, noStatus:
			return io.EOF
		}
	}
	if _, half := n.conn.(HalfCloser); half && errors.Is(err, io.EOF) {
		return io.EOF
	}
	return err
}

// Read implements [net.Conn].
func (n *netConn) Read(p []byte) (int, error) {
	passed := n.readBy.passed()
	if err := n.await(n.reading, passed); err != nil {
		return 0, err
	}
	defer func() { <-n.reading }()
	if len(p) == 0 {
		return 0, nil
	}
	if len(n.rest) == 0 {
		select {
		case data, more := <-n.in:
			if !more {
				return 0, n.end
			}
			n.whole, n.rest = data, data
		case <-passed:
			return 0, os.ErrDeadlineExceeded
		case <-n.closed:
			return 0, net.ErrClosed
		}
	}
	k := copy(p, n.rest)
	if n.rest = n.rest[k:]; len(n.rest) == 0 {
		if cap(n.whole) <= mostSpare {
			select {
			case n.spare <- n.whole[:0]:
			default:
			}
		}
		n.whole, n.rest = nil, nil
	}
	return k, nil
}

// Write implements [net.Conn].
func (n *netConn) Write(p []byte) (int, error) {
	passed := n.writeBy.passed()
	if err := n.await(n.writing, passed); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		<-n.writing
		return 0, nil
	}
	n.out = append(n.out[:0], p...)
	done := make(chan error, 1)
	go n.send(done) // Close waits for its turn
	select {
	case err := <-done:
		if err != nil {
			return 0, n.unlessClosed(err)
		}
		return len(p), nil
	case <-passed:
		return len(p), os.ErrDeadlineExceeded
	}
}

// send writes the message, reports the error, and ends the turn.
func (n *netConn) send(done chan<- error) {
	done <- n.conn.Write(Message{Type: n.kind, Data: n.out})
	if cap(n.out) > mostSpare {
		n.out = nil
	}
	<-n.writing
}

// unlessClosed returns err, or net.ErrClosed after Close.
func (n *netConn) unlessClosed(err error) error {
	select {
	case <-n.closed:
		return net.ErrClosed
	default:
		return err
	}
}

// await waits for a turn. If the deadline has passed, or Close was called, await returns an error even if the turn is free.
func (n *netConn) await(turn chan struct{}, passed <-chan struct{}) error {
	select {
	case <-n.closed:
		return net.ErrClosed
	case <-passed:
		return os.ErrDeadlineExceeded
	default:
	}
	select {
	case turn <- struct{}{}:
	case <-n.closed:
		return net.ErrClosed
	case <-passed:
		return os.ErrDeadlineExceeded
	}
	if err := n.unlessClosed(nil); err != nil {
		<-turn
		return err
	}
	return nil
}

// netClose is how long Close of a NetConn waits for the peer.
const netClose = time.Second

// Close implements [net.Conn].
func (n *netConn) Close() error {
	err := net.ErrClosed
	n.closing.Do(func() {
		close(n.closed)
		ctx, cancel := context.WithTimeout(context.Background(), netClose)
		defer cancel()
		_ = n.conn.Close(ctx, codeNormal, "") // whatever the peer does, c is closed then
		<-n.over
		n.writing <- struct{}{} // no message is under way any more, and none begins
		n.readBy.stop()
		n.writeBy.stop()
		err = nil
	})
	return err
}

// LocalAddr implements [net.Conn].
func (n *netConn) LocalAddr() net.Addr {
	if n.transport != nil {
		if a := n.transport.LocalAddr(); a != nil {
			return a
		}
	}
	return unknownAddr{}
}

// RemoteAddr implements [net.Conn].
func (n *netConn) RemoteAddr() net.Addr {
	if r, ok := n.conn.(interface{ RemoteAddr() net.Addr }); ok {
		if a := r.RemoteAddr(); a != nil {
			return a
		}
	}
	return unknownAddr{}
}

// unknownAddr is an address that is not known.
type unknownAddr struct{}

func (unknownAddr) Network() string { return "conn" }
func (unknownAddr) String() string  { return "unknown" }

// SetDeadline implements [net.Conn].
func (n *netConn) SetDeadline(t time.Time) error {
	return errors.Join(n.SetReadDeadline(t), n.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (n *netConn) SetReadDeadline(t time.Time) error { return n.readBy.set(t) }

// SetWriteDeadline implements [net.Conn].
func (n *netConn) SetWriteDeadline(t time.Time) error { return n.writeBy.set(t) }

// deadline is a time at which calls end. A call that waits already ends at a deadline that is set later.
type deadline struct {
	mu      sync.Mutex    // guards what follows
	ch      chan struct{} // closed when the deadline has passed
	timer   *time.Timer   // closes ch; nil: there is no deadline, or it has passed
	stopped bool          // there are no deadlines any more
}

func (d *deadline) start() { d.ch = make(chan struct{}) }

// passed returns a channel that is closed when the deadline passes.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ch
}

// set sets the deadline; the zero time is none.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return net.ErrClosed
	}
	if d.timer != nil && !d.timer.Stop() {
		<-d.ch // the timer closes it now
	}
	d.timer = nil
	left := time.Until(t)
	over := !t.IsZero() && left <= 0
	select {
	case <-d.ch:
		if !over {
			d.start()
		}
	default:
		if over {
			close(d.ch)
		}
	}
	if !t.IsZero() && !over {
		ch := d.ch
		d.timer = time.AfterFunc(left, func() { close(ch) })
	}
	return nil
}

// stop stops the timer for good.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil && !d.timer.Stop() {
		<-d.ch
	}
}
