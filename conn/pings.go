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
	sent    uint64 // how many there were
	waiting []*waitingPing
	over    bool // the connection has ended
}

type waitingPing struct {
	payload string
	answer  chan error // has room for one
}

func (p *pingList) begin() *waitingPing {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	w := &waitingPing{payload: strconv.FormatUint(p.sent, 10), answer: make(chan error, 1)}
	if p.over {
		w.answer <- net.ErrClosed
	} else {
		p.waiting = append(p.waiting, w)
	}
	return w
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
// 5.5.3).
func (p *pingList) answered(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w.payload == string(payload) {
			p.tell(i+1, nil)
			return
		}
	}
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
