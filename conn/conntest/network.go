package conntest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Network is an in-memory network. The zero value has no faults and is ready to use. It is safe for
// concurrent use, and belongs to one synctest bubble, or to none. In Conns, Count, Dials and
// ResetAll an empty addr means all addresses.
type Network struct {
	mu        sync.Mutex // guards all below; held for a few lines, never across a wait
	listeners map[string]*listener
	faults    map[string][]Fault
	counts    map[string]*counts
	total     counts
	lastID    uint64 // numbers the connections
}

// Listen opens addr, a "host:port" of any host. If addr is in use, the error is
// [syscall.EADDRINUSE].
func (n *Network) Listen(addr string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: address(addr), Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: address(addr), Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &listener{network: n, addr: address(addr)}
	l.changed.L = &l.mu
	if n.listeners == nil {
		n.listeners = make(map[string]*listener)
	}
	n.listeners[addr] = l
	return l, nil
}

// DialContext connects to the listener on addr, like [net.Dialer.DialContext], without delay unless
// there is a [Fault]. The error is [syscall.ECONNREFUSED] without a listener, or ctx.Err(), in a
// *[net.OpError].
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: net.UnknownNetworkError(network)}
	}
	f := n.beginDial(addr)
	p, err := n.dial(ctx, addr, f)
	n.endDial(addr, p)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: err}
	}
	return &p.client, nil
}

// dial connects, with the fault f.
func (n *Network) dial(ctx context.Context, addr string, f Fault) (*Pipe, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.Hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := n.wait(ctx, addr, f); err != nil {
		return nil, err
	}
	if errno, ok := f.Err.(syscall.Errno); ok {
		return nil, os.NewSyscallError("connect", errno) // as from a socket
	}
	if f.Err != nil {
		return nil, f.Err
	}
	return n.connect(addr, f)
}

// wait returns when the delay of f is over, or when ctx ends.
func (n *Network) wait(ctx context.Context, addr string, f Fault) error {
	if f.Delay <= 0 {
		return nil
	}
	var given <-chan struct{}
	if !f.IgnoresContext {
		given = ctx.Done()
	}
	start := time.Now()
	answer := time.NewTimer(f.Delay)
	defer answer.Stop()
	select {
	case <-answer.C:
		return nil
	case <-given:
	}
	if f.CompletesAnyway && f.Err == nil {
		time.AfterFunc(f.Delay-time.Since(start), func() {
			if p, err := n.connect(addr, f); err == nil {
				p.client.close(false)
			}
		})
	}
	return ctx.Err()
}

// connect makes a connection and hands its far end to the listener.
func (n *Network) connect(addr string, f Fault) (*Pipe, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	if l == nil && !f.Drop {
		n.mu.Unlock()
		return nil, errRefused
	}
	n.lastID++
	p := newPipe(n, n.lastID, addr)
	n.countsOf(addr).pipes[p] = struct{}{}
	n.mu.Unlock()

	if f.OnConn != nil {
		f.OnConn(p)
	}
	switch {
	case f.Drop:
		p.server.Close()
	case f.AcceptDelay > 0:
		time.AfterFunc(f.AcceptDelay, func() { l.queue(&p.server) })
	default:
		l.queue(&p.server)
	}
	return p, nil
}

var errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// address is a net.Addr of a network in memory.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
