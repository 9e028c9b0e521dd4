package conntest

import (
	"net"
	"sync"
)

// listener is one open address. Its lock guards the fields below it.
type listener struct {
	network *Network
	addr    address

	mu      sync.Mutex
	changed sync.Cond   // a connection came, or the listener was closed
	backlog []*endpoint // connected, not yet accepted; without a limit
	closed  bool
}

// Accept waits for the next connection. After Close its error is net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.backlog) == 0 && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	c := l.backlog[0]
	l.backlog[0] = nil
	l.backlog = l.backlog[1:]
	return c, nil
}

// Close frees the address and resets the connections that were not accepted.
func (l *listener) Close() error {
	l.network.mu.Lock()
	if l.network.listeners[string(l.addr)] == l {
		delete(l.network.listeners, string(l.addr))
	}
	l.network.mu.Unlock()

	l.mu.Lock()
	closed, orphans := l.closed, l.backlog
	l.closed, l.backlog = true, nil
	l.changed.Broadcast()
	l.mu.Unlock()
	for _, e := range orphans {
		e.abandon()
	}
	if closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	return nil
}

// Addr returns the address that was opened.
func (l *listener) Addr() net.Addr { return l.addr }

// queue gives a connection to Accept, or resets it after Close.
func (l *listener) queue(e *endpoint) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.backlog = append(l.backlog, e)
		l.changed.Signal()
	}
	l.mu.Unlock()
	if closed {
		e.abandon()
	}
}
