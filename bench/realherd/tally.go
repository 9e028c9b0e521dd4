package realherd

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/redial-go/redial/bench/fleet"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// tally counts what happens to the clients, whose trace it is, and what the server
// reports.
type tally struct {
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

func newTally(n int, returned func()) *tally {
	return &tally{
		n: n, returned: returned, connecting: make(chan struct{}, connectAtOnce),
		said: map[int]report{}, absences: make([]absence, n),
		all: make(chan struct{}), dropped: make(chan struct{}), done: make(chan struct{}),
	}
}

// trace returns the hooks of a client.
func (t *tally) trace(i int) *reconnect.Trace {
	return &reconnect.Trace{
		DialStart:    func(reconnect.DialStart) { t.dial() },
		DialDone:     func(d reconnect.DialDone) { t.failed(d.Err) },
		SessionReady: func(s *reconnect.Session) { t.ready(i, s.Number) },
		SessionDone:  func(e reconnect.SessionEnd) { t.lose(i, e.Session) },
	}
}

// arm makes the first loss the origin.
func (t *tally) arm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage, t.settled = armed, true
}

// begin makes now the origin.
func (t *tally) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start(now)
}

// start is begin under the lock.
func (t *tally) start(now time.Time) {
	t.stage, t.origin = counting, now
	close(t.dropped)
}

// listens notes that the server is back for good.
func (t *tally) listens(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back, t.settled = at, true
	t.upShare = t.upUntil(at)
	t.check()
}

// upUntil is the mean share of the time from the origin for which clients were up.
func (t *tally) upUntil(at time.Time) float64 {
	away := time.Duration(0)
	for _, g := range t.absences {
		away += g.away
		if !g.since.IsZero() {
			away += max(0, at.Sub(g.since))
		}
	}
	all := at.Sub(t.origin).Seconds() * float64(t.n)
	return max(0, 1-away.Seconds()/max(all, 1e-9))
}

// end ends the count.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = over
}

// bin returns the one of that time, or nil if nothing is counted.
func (t *tally) bin(at time.Time) *Bin {
	if t.stage != counting || at.Before(t.origin) {
		return nil
	}
	n := int(at.Sub(t.origin) / fleet.Bin)
	for len(t.bins) <= n {
		t.bins = append(t.bins, Bin{Up: t.up, Waiting: t.waiting()})
	}
	return &t.bins[n]
}

func (t *tally) dial() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.bin(time.Now()); b != nil {
		b.Dials++
		t.dials++
	}
}

func (t *tally) failed(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	switch {
	case t.stage != counting:
	case isLocal(err):
		t.local++
	case backoff.Classify(err).Class == backoff.ClassOverload:
		t.timedOut++
	default:
		t.refused++
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

func (t *tally) ready(i int, session uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	b := t.bin(now)
	t.up++
	if session == 1 {
		t.first++
		<-t.connecting
		if t.first == t.n {
			close(t.all)
		}
	} else {
		t.again++
	}
	if b == nil {
		return
	}
	b.Up = t.up
	t.sessions++
	if g := &t.absences[i]; !g.since.IsZero() {
		g.away, g.since = g.away+now.Sub(g.since), time.Time{}
	}
	if t.back.IsZero() {
		t.back = now
	}
	for k, percent := range [...]int{50, 99, 100} {
		if t.reached[k].IsZero() && t.again >= (percent*t.n+99)/100 {
			t.reached[k] = now
		}
	}
	if t.returned != nil {
		t.returned()
	}
	t.check()
}

func (t *tally) lose(i int, session uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.stage == armed {
		t.start(now)
	}
	b := t.bin(now)
	t.up--
	if session == 1 {
		t.lost++
	} else {
		t.again--
	}
	if b == nil {
		return
	}
	b.Up = t.up
	t.absences[i].since = now
	if !t.settled {
		t.reached = [3]time.Time{} // only what is reached after the last loss counts
	}
	t.check()
}

// check closes done, once, if all were lost and are back for good.
func (t *tally) check() {
	if !t.settled || t.lost < t.n || t.again < t.n {
		return
	}
	select {
	case <-t.done:
	default:
		close(t.done)
	}
}

// hear takes a report of a server process that has come back.
func (t *tally) hear(process int, r report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range r.Recent {
		if b := t.bin(time.Unix(0, a.At)); b != nil {
			b.Admitted += a.Admitted
			b.Rejected += a.Rejected
		}
	}
	t.said[process] = r
	if b := t.bin(time.Unix(0, r.At)); b != nil {
		b.Waiting = t.waiting()
	}
}

// gone notes that a server process was killed, and with it those that waited.
func (t *tally) gone(process int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.said[process]; ok {
		r.Waiting = 0
		t.said[process] = r
	}
}

// waiting is how many are in the servers' backlogs.
func (t *tally) waiting() (sum int) {
	for _, r := range t.said {
		sum += r.Waiting
	}
	return sum
}

// admitted is how many connections the servers have taken.
func (t *tally) admitted() (sum int) {
	for _, r := range t.said {
		sum += r.Total.Admitted
	}
	return sum
}

// lastError is why the last dial failed.
func (t *tally) lastError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
