package conn

import (
	"net"
	"strconv"
	"sync"
)

// pingList holds the pings of a connection that wait for their answers.
type pingList struct {
	mu     sync.Mutex
	sent   uint64 // how many there were; the number of the last
	newest *waitingPing
	over   bool // the connection has ended
}

type waitingPing struct {
	number uint64        // as its payload says
	older  *waitingPing  // the one before it that still waits, or nil
	over   chan struct{} // closed when the wait has ended
	err    error         // why there is no answer, or nil; to be read after over is closed
}

// send adds a ping to out. It holds the lock meanwhile, so that pings are sent in the order of their numbers.
func (p *pingList) send(out *sender) (*waitingPing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, net.ErrClosed
	}
	p.sent++
	var digits [20]byte // of any uint64
	if err := out.control(opPing, strconv.AppendUint(digits[:0], p.sent, 10)); err != nil {
		return nil, err
	}
	p.newest = &waitingPing{number: p.sent, older: p.newest, over: make(chan struct{})}
	return p.newest, nil
}

// forget removes w, which may have been answered.
func (p *pingList) forget(w *waitingPing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.from(w.number)
	if *at == w {
		*at = w.older
	}
}

// from returns the link to the newest ping whose number is not larger. The lock is held.
func (p *pingList) from(number uint64) **waitingPing {
	at := &p.newest
	for *at != nil && (*at).number > number {
		at = &(*at).older
	}
	return at
}

// answered notes a pong. A peer may leave out the answers to earlier pings (RFC 6455, section
// 5.5.3), and the Ping that it answers may have ended.
func (p *pingList) answered(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil { // a peer may send pongs without a pause
		return
	}
	number, err := strconv.ParseUint(string(payload), 10, 64)
	if err == nil && number <= p.sent {
		p.endFrom(number, nil)
	}
}

// end ends all waits, because the connection has ended.
func (p *pingList) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.endFrom(p.sent, net.ErrClosed)
}

// endFrom ends the waits of the ping with that number and of all before it. The lock is held.
func (p *pingList) endFrom(number uint64, err error) {
	at := p.from(number)
	for w := *at; w != nil; w = w.older {
		w.err = err
		close(w.over)
	}
	*at = nil
}
