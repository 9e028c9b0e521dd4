package conn

import (
	"net"
	"slices"
	"strconv"
	"sync"
)

// pingList holds the pings of a connection that wait for their answers, the oldest first.
type pingList struct {
	mu      sync.Mutex
	sent    uint64 // how many there were; the number of the last
	waiting []*waitingPing
	over    bool // the connection has ended
}

type waitingPing struct {
	number uint64     // as its payload says
	answer chan error // has room for one
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
	w := &waitingPing{number: p.sent, answer: make(chan error, 1)}
	p.waiting = append(p.waiting, w)
	return w, nil
}

// forget ends the wait of w.
func (p *pingList) forget(w *waitingPing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.trim()
}

// answered notes a pong. A peer may leave out the answers to earlier pings (RFC 6455, section
// 5.5.3), and the Ping that it answers may have ended.
func (p *pingList) answered(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 { // a peer may send pongs without a pause
		return
	}
	number, err := strconv.ParseUint(string(payload), 10, 64)
	if err != nil || number > p.sent {
		return
	}
	n := 0
	for n < len(p.waiting) && p.waiting[n].number <= number {
		n++
	}
	p.tell(n, nil)
}

// end ends all waits, because the connection has ended.
func (p *pingList) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.tell(len(p.waiting), net.ErrClosed)
}

func (p *pingList) tell(n int, err error) {
	for _, w := range p.waiting[:n] {
		w.answer <- err
	}
	p.waiting = p.waiting[n:]
	p.trim()
}

// trim releases an empty list, so that an idle connection holds nothing.
func (p *pingList) trim() {
	if len(p.waiting) == 0 {
		p.waiting = nil
	}
}
