package lab

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// counter counts what happens to the clients, whose trace it is, and what the server
// reports.
type counter struct {
	n        int
	returned func() // one is back

	connecting chan struct{} // of capacity connectAtOnce: those that were started and have never been up
	all        chan struct{} // closed when all are up for the first time
	dropped    chan struct{} // closed at the origin
	done       chan struct{} // closed when all were lost and are back

	mu       sync.Mutex // guards what follows
	up       int
	first    int   // that have ever been up
	lost     int   // that have lost their first session
	again    int   // that are up with a later one
	err      error // of the last dial
	stage    stage
	origin   time.Time // of the loss
	back     time.Time // of the server's return; zero: not yet
	reached  [3]time.Time
	dials    int
	refused  int
	timedOut int
	local    int
	sessions int            // since the origin
	settled  bool           // no server will be killed any more
	said     map[int]report // the last of each server process
	absences []absence      // of each client
	upShare  float64        // until the server's return
	bins     []Bin
}

// absence is for how long a client has been away.
type absence struct {
	since time.Time // the loss; zero: it is up
	away  time.Duration
}

type stage uint8

const (
	gathering stage = iota
	armed           // the first loss is the origin
	counting
	over
)

// connectAtOnce is how many clients connect at a time before the loss, so that no
// backlog is full.
const connectAtOnce = 256

func newCounter(n int, returned func()) *counter {
	return &counter{
		n: n, returned: returned, connecting: make(chan struct{}, connectAtOnce),
		said: map[int]report{}, absences: make([]absence, n),
		all: make(chan struct{}), dropped: make(chan struct{}), done: make(chan struct{}),
	}
}

// trace returns the hooks of a client.
func (c *counter) trace(i int) *reconnect.Trace {
	return &reconnect.Trace{
		DialStart:    func(reconnect.DialStart) { c.dial() },
		DialDone:     func(d reconnect.DialDone) { c.failed(d.Err) },
		SessionReady: func(s *reconnect.Session) { c.ready(i, s.Number) },
		SessionDone:  func(e reconnect.SessionDone) { c.lose(i, e.Session) },
	}
}

// arm makes the first loss the origin.
func (c *counter) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage, c.settled = armed, true
}

// begin makes now the origin.
func (c *counter) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(now)
}

// start is begin under the lock.
func (c *counter) start(now time.Time) {
	c.stage, c.origin = counting, now
	close(c.dropped)
}

// listens notes that the server is back for good.
func (c *counter) listens(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back, c.settled = at, true
	c.upShare = c.upUntil(at)
	c.check()
}

// upUntil is the mean share of the time from the origin for which clients were up.
func (c *counter) upUntil(at time.Time) float64 {
	away := time.Duration(0)
	for _, g := range c.absences {
		away += g.away
		if !g.since.IsZero() {
			away += max(0, at.Sub(g.since))
		}
	}
	all := at.Sub(c.origin).Seconds() * float64(c.n)
	return max(0, 1-away.Seconds()/max(all, 1e-9))
}

// end ends the count.
func (c *counter) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = over
}

// bin returns the one of that time, or nil if nothing is counted.
func (c *counter) bin(at time.Time) *Bin {
	if c.stage != counting || at.Before(c.origin) {
		return nil
	}
	n := int(at.Sub(c.origin) / fleet.Bin)
	for len(c.bins) <= n {
		c.bins = append(c.bins, Bin{Up: c.up, Waiting: c.waiting()})
	}
	return &c.bins[n]
}

func (c *counter) dial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.bin(time.Now()); b != nil {
		b.Dials++
		c.dials++
	}
}

func (c *counter) failed(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	switch {
	case c.stage != counting:
	case errors.Is(err, context.Canceled): // another dial was answered first
	case isLocal(err):
		c.local++
	case backoff.Classify(err).Class == backoff.ClassOverload:
		c.timedOut++
	default:
		c.refused++
	}
}

// isLocal reports whether this machine had no socket for a dial.
func isLocal(err error) bool {
	for _, no := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.ENOBUFS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func (c *counter) ready(i int, session uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	b := c.bin(now)
	c.up++
	if session == 1 {
		c.first++
		<-c.connecting
		if c.first == c.n {
			close(c.all)
		}
	} else {
		c.again++
	}
	if b == nil {
		return
	}
	b.Up = c.up
	c.sessions++
	if g := &c.absences[i]; !g.since.IsZero() {
		g.away, g.since = g.away+now.Sub(g.since), time.Time{}
	}
	if c.back.IsZero() {
		c.back = now
	}
	for k, percent := range [...]int{50, 99, 100} {
		if c.reached[k].IsZero() && c.again >= (percent*c.n+99)/100 {
			c.reached[k] = now
		}
	}
	if c.returned != nil {
		c.returned()
	}
	c.check()
}

func (c *counter) lose(i int, session uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.stage == armed {
		c.start(now)
	}
	b := c.bin(now)
	c.up--
	if session == 1 {
		c.lost++
	} else {
		c.again--
	}
	if b == nil {
		return
	}
	b.Up = c.up
	c.absences[i].since = now
	if !c.settled {
		c.reached = [3]time.Time{} // only what is reached after the last loss counts
	}
	c.check()
}

// check closes done, once, if all were lost and are back for good.
func (c *counter) check() {
	if !c.settled || c.lost < c.n || c.again < c.n {
		return
	}
	select {
	case <-c.done:
	default:
		close(c.done)
	}
}

// hear takes a report of a server process that has come back.
func (c *counter) hear(process int, r report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range r.Recent {
		if b := c.bin(time.Unix(0, a.At)); b != nil {
			b.Admitted += a.Admitted
			b.Rejected += a.Rejected
		}
	}
	c.said[process] = r
	if b := c.bin(time.Unix(0, r.At)); b != nil {
		b.Waiting = c.waiting()
	}
}

// gone notes that a server process was killed, and with it those that waited.
func (c *counter) gone(process int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.said[process]; ok {
		r.Waiting = 0
		c.said[process] = r
	}
}

// sum adds up what the servers have said.
func (c *counter) sum(of func(report) int) (sum int) {
	for _, r := range c.said {
		sum += of(r)
	}
	return sum
}

// waiting is how many are in the servers' backlogs.
func (c *counter) waiting() int { return c.sum(func(r report) int { return r.Waiting }) }

// lastError is why the last dial failed.
func (c *counter) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
