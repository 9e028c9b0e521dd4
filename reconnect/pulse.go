package reconnect

import (
	"sync"
	"time"
)

// pulse is a timer whose callback arms it anew, at most one of it at a time, and
// that can be stopped for good. The callback must begin with
// defer running.Done().
type pulse struct {
	running sync.WaitGroup // a callback armed or at work

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
}

// arm sets the timer, once the callback before has nothing more to do with it.
func (p *pulse) arm(d time.Duration, tick func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.running.Add(1)
	if p.timer == nil {
		p.timer = time.AfterFunc(d, tick)
	} else {
		p.timer.Reset(d)
	}
}

// halt lets no further callback begin. Whoever calls it waits for running then.
func (p *pulse) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil && p.timer.Stop() {
		p.running.Done()
	}
}

func (p *pulse) halted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}
