package conntest

import (
	"io"
	"net"
	"os"
	"time"
)

// endpoint is one end of a pipe: the net.Conn. The pipe's lock guards it. No method
// waits with the lock held: writers take turns by a flag, because a second one
// that waited for a mutex would hang a synctest bubble.
type endpoint struct {
	pipe          *Pipe
	in, out       *stream
	local, remote address
	readBy        deadline
	writeBy       deadline
	writing       bool // a Write has its turn
	closed        bool // by its owner
}

var _ net.Conn = (*endpoint)(nil)

// Read returns what has arrived, or waits for it.
func (e *endpoint) Read(b []byte) (int, error) {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	for {
		switch {
		case e.closed:
			return 0, e.wrap("read", net.ErrClosed)
		case e.readBy.past():
			return 0, e.wrap("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case e.in.read < len(e.in.inbox):
			return e.in.take(b), nil
		case e.in.arrived == rst:
			return 0, e.wrap("read", errReset)
		case e.in.arrived != none:
			return 0, io.EOF
		}
		e.in.changed.Wait()
	}
}

// Write returns when all of b fits into the window.
func (e *endpoint) Write(b []byte) (int, error) {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	for e.writing {
		if err := e.writable(); err != nil {
			return 0, e.wrap("write", err)
		}
		e.out.changed.Wait()
	}
	e.writing = true
	defer func() {
		e.writing = false
		e.out.changed.Broadcast()
	}()
	written := 0
	for {
		if err := e.writable(); err != nil {
			return written, e.wrap("write", err)
		}
		n := min(len(b)-written, max(e.out.room(), 0))
		cut := e.out.send(b[written : written+n])
		if written += n; cut || written == len(b) {
			return len(b), nil
		}
		if n == 0 {
			e.out.changed.Wait()
		}
	}
}

// writable returns why a Write cannot go on, as far as this end knows, or nil.
func (e *endpoint) writable() error {
	switch {
	case e.closed:
		return net.ErrClosed
	case e.writeBy.past():
		return os.ErrDeadlineExceeded
	case e.in.arrived == rst:
		return errResetWrite
	case e.in.arrived == fin || e.out.shut:
		return errBroken
	}
	return nil
}

// Close ends this end; what was written still arrives. It never waits.
func (e *endpoint) Close() error { return e.close(e == &e.pipe.client) }

// close is Close. counted is set if the network counts this end as open.
func (e *endpoint) close(counted bool) error {
	p := e.pipe
	p.mu.Lock()
	if e.closed {
		p.mu.Unlock()
		return e.wrap("close", net.ErrClosed)
	}
	e.closed = true
	e.readBy.stop()
	e.writeBy.stop()
	e.out.finish(fin)
	last := p.client.closed && p.server.closed
	if last {
		p.toClient.drop()
		p.toServer.drop()
	}
	p.wakeAll()
	p.mu.Unlock()
	p.network.closed(p, counted, last)
	return nil
}

// CloseWrite ends writing and leaves reading open, as TCP does.
func (e *endpoint) CloseWrite() error {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if e.closed {
		return e.wrap("close", net.ErrClosed)
	}
	e.out.halfClose()
	return nil
}

// ReadsOn says that an endpoint can be read again after a deadline: see [conn.Follower].
func (e *endpoint) ReadsOn() bool { return true }

// HungUp reports whether the end of the stream or a reset has arrived, even behind unread
// data, as [conn.Transport] has it.
func (e *endpoint) HungUp() bool {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return !e.closed && e.in.arrived != none
}

// abandon resets a connection that will never be accepted.
func (e *endpoint) abandon() {
	e.pipe.Reset()
	e.Close()
}

func (e *endpoint) LocalAddr() net.Addr  { return e.local }
func (e *endpoint) RemoteAddr() net.Addr { return e.remote }

// SetDeadline sets both deadlines.
func (e *endpoint) SetDeadline(t time.Time) error {
	return e.setDeadlines(t, &e.readBy, &e.writeBy)
}

// SetReadDeadline ends reads, blocked ones too, at t; zero is never.
func (e *endpoint) SetReadDeadline(t time.Time) error { return e.setDeadlines(t, &e.readBy) }

// SetWriteDeadline ends writes, blocked ones too, at t; zero is never.
func (e *endpoint) SetWriteDeadline(t time.Time) error { return e.setDeadlines(t, &e.writeBy) }

func (e *endpoint) setDeadlines(t time.Time, which ...*deadline) error {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if e.closed {
		return e.wrap("set", net.ErrClosed)
	}
	for _, d := range which {
		d.set(t, e.pipe)
	}
	return nil
}

func (e *endpoint) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: e.local, Addr: e.remote, Err: err}
}

// deadline is one deadline of an end; the pipe's lock guards it.
type deadline struct {
	at    time.Time // zero: never
	timer *time.Timer
}

func (d *deadline) past() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set sets the deadline of an end of p. The caller holds mu.
func (d *deadline) set(t time.Time, p *Pipe) {
	d.stop()
	if d.at = t; t.IsZero() {
		return
	}
	wait := time.Until(t)
	d.at = time.Now().Add(wait) // by the monotonic clock, as the timer
	if wait <= 0 {
		p.wakeAll()
		return
	}
	d.timer = time.AfterFunc(wait, func() { p.each(Both, func(l *stream) { l.changed.Broadcast() }) })
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// wakeAll wakes every reader and writer of p. The caller holds mu.
func (p *Pipe) wakeAll() {
	p.toClient.changed.Broadcast()
	p.toServer.changed.Broadcast()
}
