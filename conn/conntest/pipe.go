package conntest

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Direction is one direction of a connection, or both.
type Direction uint8

// The directions of a connection.
const (
	ToServer Direction = 1 << iota // what the dialer writes
	ToClient                       // what the accepting side writes
	Both     = ToServer | ToClient
)

// Pipe is one connection of a [Network]. Its methods never block, and are safe for concurrent use.
type Pipe struct {
	network *Network
	id      uint64
	addr    string

	mu                 sync.Mutex // guards the ends and the streams; never held across a wait
	client, server     endpoint
	toServer, toClient stream
	severed            bool // by a cut or a reset
}

func newPipe(n *Network, id uint64, addr string) *Pipe {
	p := &Pipe{network: n, id: id, addr: addr}
	p.toServer.init(p)
	p.toClient.init(p)
	near, far := address(fmt.Sprintf("client:%d", id)), address(addr)
	p.client = endpoint{pipe: p, in: &p.toClient, out: &p.toServer, local: near, remote: far}
	p.server = endpoint{pipe: p, in: &p.toServer, out: &p.toClient, local: far, remote: near}
	return p
}

// Client returns the dialer's end.
func (p *Pipe) Client() net.Conn { return &p.client }

// Server returns the accepting end.
func (p *Pipe) Server() net.Conn { return &p.server }

// Live reports whether both ends are open and no fault has ended the connection, which may be
// stalled or half-closed.
func (p *Pipe) Live() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.severed && !p.client.closed && !p.server.closed
}

// String returns the addresses of the connection, and which ends are not closed.
func (p *Pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := "closed"
	switch {
	case !p.client.closed && !p.server.closed:
		open = "both ends open"
	case !p.client.closed:
		open = "client end open"
	case !p.server.closed:
		open = "server end open"
	}
	return fmt.Sprintf("%s->%s (%s)", p.client.local, p.addr, open)
}

// Written returns the number of bytes written in direction d, or in both.
func (p *Pipe) Written(d Direction) int64 {
	var sum int64
	p.each(d, func(l *stream) { sum += l.written })
	return sum
}

// Reset ends the connection like an RST on both sides, even through a stall: bytes that have
// arrived can still be read, bytes in flight are lost, and then Read and Write fail with
// [syscall.ECONNRESET].
func (p *Pipe) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = true
	p.toClient.resetNow()
	p.toServer.resetNow()
}

// Cut lets n more bytes pass in direction d and then ends the connection: both sides read [io.EOF]
// after the bytes that arrived, and writes fail with [syscall.EPIPE]. The Write of the last byte
// succeeds. With n = 0 the connection ends immediately; only then may d be Both. A negative n
// disarms an earlier Cut.
func (p *Pipe) Cut(d Direction, n int64) { p.cut(d, n, fin) }

// CutReset is like Cut with an RST instead of a FIN: after the n bytes both sides get
// [syscall.ECONNRESET].
func (p *Pipe) CutReset(d Direction, n int64) { p.cut(d, n, rst) }

func (p *Pipe) cut(d Direction, n int64, with ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 {
		p.sever(with)
		return
	}
	p.streams(d, func(l *stream) { l.cut = cut{max(n, 0), with} })
}

// FIN half-closes direction d, as if its writer had: after all written bytes the reader gets
// [io.EOF], and writes fail with [syscall.EPIPE].
func (p *Pipe) FIN(d Direction) {
	p.each(d, (*stream).halfClose)
}

// Stall freezes a direction, as when the peer is gone without a FIN: nothing arrives, not even the
// end of the connection. Writes succeed until the window is full, and then block.
func (p *Pipe) Stall(d Direction) { p.each(d, func(l *stream) { l.stalled = true }) }

// Thaw ends a Stall and delivers everything that was held back.
func (p *Pipe) Thaw(d Direction) {
	p.each(d, func(l *stream) {
		l.stalled, l.trickle.next = false, time.Time{}
		l.advance()
	})
}

// Latency sets how long bytes written from now on are in flight, by default 0. They do not overtake
// earlier bytes.
func (p *Pipe) Latency(d Direction, latency time.Duration) {
	p.each(d, func(l *stream) { l.latency = latency })
}

// Trickle lets at most n bytes arrive per interval, the first n one interval after they were
// written. With n = 0 the limit is lifted.
func (p *Pipe) Trickle(d Direction, n int, interval time.Duration) {
	p.each(d, func(l *stream) {
		l.trickle = trickle{share: max(n, 0), interval: interval}
		l.advance()
	})
}

// Window sets how many bytes may be written and not yet read; the default is 64 KiB, which a
// negative n restores. With 0 every Write blocks.
func (p *Pipe) Window(d Direction, n int) {
	if n < 0 {
		n = defaultWindow
	}
	p.each(d, func(l *stream) {
		l.window = n
		l.changed.Broadcast()
	})
}

// Inject inserts bytes between two writes in direction d. They ignore the window, but not latency
// and stalls.
func (p *Pipe) Inject(d Direction, data []byte) { p.each(d, func(l *stream) { l.send(data) }) }

// each calls f under the lock for the streams of d.
func (p *Pipe) each(d Direction, f func(l *stream)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams(d, f)
}

func (p *Pipe) streams(d Direction, f func(l *stream)) {
	if d&ToServer != 0 {
		f(&p.toServer)
	}
	if d&ToClient != 0 {
		f(&p.toClient)
	}
}

// sever ends both directions behind what was written. The caller holds mu.
func (p *Pipe) sever(with ending) {
	p.severed = true
	p.toClient.finish(with)
	p.toServer.finish(with)
}

// PipeOf returns the connection under a handler or a request of a [Server], whose context is ctx.
// For any other ctx it returns nil.
func PipeOf(ctx context.Context) *Pipe {
	p, _ := ctx.Value(pipeKey{}).(*Pipe)
	return p
}

type pipeKey struct{}

var (
	errReset      = os.NewSyscallError("read", syscall.ECONNRESET)
	errResetWrite = os.NewSyscallError("write", syscall.ECONNRESET)
	errBroken     = os.NewSyscallError("write", syscall.EPIPE)
)
