package redisgate

import (
	"cmp"
	"container/list"
	"context"
	crand "crypto/rand"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Limiter bounds the dials of all processes that share a Key in a Redis server. It is a
// [budget.SlotLimiter], for GateOptions.Limiter or [budget.Limited]. One Limiter for each process is enough.
//
// It is safe for concurrent use. While dials wait or hold slots, and while Redis is away, it has one
// goroutine, and one more for each question to Redis, of which there is one at a time. Otherwise it has
// none.
type Limiter struct {
	o       Options
	client  Client
	id      string // of this process, in Redis
	keys    []string
	ctx     context.Context // ends with Close
	stop    context.CancelCauseFunc
	wake    chan struct{}  // capacity 1: run must look again
	answers chan answer    // capacity 1, for the one question
	tasks   sync.WaitGroup // run and the question

	passed func(now time.Time, share bool) // for tests: a permit is used

	mu      sync.Mutex // guards what follows
	line    list.List  // of *waiter, in order
	held    int        // slots
	running bool       // run runs
	closed  bool
	talk    talk
	mode    mode
	share   budget.Window // of the dials that began by the share
	count   Status        // its counters only
}

// waiter is a dial that waits.
type waiter struct {
	place   *list.Element
	granted chan permit // capacity 1, so that hand does not wait
}

// permit lets one dial begin. With Options.Slots it is a slot as well.
type permit struct {
	sent  time.Time // the question; the permit is void Options.Slack later
	share bool      // it is not from Redis
}

// New returns a Limiter. It does not ask Redis yet. The client stays the caller's, who may close it
// after Close. The error names the option that is wrong.
func New(client Client, o *Options) (*Limiter, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	opts, err := cmp.Or(o, new(Options)).withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		o: opts, client: client, id: crand.Text(),
		wake: make(chan struct{}, 1), answers: make(chan answer, 1),
		mode: mode{window: opts.window()},
	}
	if opts.Rate.N > 0 {
		l.share = budget.Window{N: opts.Local.N, Per: opts.window()}
	}
	for _, name := range []string{"state", "queue", "seen", "held", "lease"} {
		l.keys = append(l.keys, "redisgate:{"+opts.Key+"}:"+name)
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l, nil
}

// Acquire waits until a dial may begin, which must follow at once. Done gives the slot back, if
// there are Slots; otherwise it does nothing. Call it once the session is ready or the dial has failed. A
// second call does nothing.
//
// When ctx ends first, Acquire returns the cause of ctx at once. If Redis has let the dial begin by then,
// the permit goes to the next dial in line. If no other dial waits, the permit counts although it is not
// used. After Close the error is net.ErrClosed. An outage of Redis is no error.
func (l *Limiter) Acquire(ctx context.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for front := false; ; front = true {
		w, err := l.join(front)
		if err != nil {
			return nil, err
		}
		select {
		case p := <-w.granted:
			if l.use(p) {
				return sync.OnceFunc(func() { l.release() }), nil
			}
		case <-ctx.Done():
			l.leave(w)
			return nil, context.Cause(ctx)
		case <-l.ctx.Done():
			l.leave(w)
			return nil, context.Cause(l.ctx)
		}
	}
}

// Wait is Acquire without a done. The slot, if there are Slots, is given back at once, because nothing
// tells when the dial has ended.
func (l *Limiter) Wait(ctx context.Context) error {
	done, err := l.Acquire(ctx)
	if err == nil {
		done()
	}
	return err
}

// join puts a dial in line, at the end or in front.
func (l *Limiter) join(front bool) (*waiter, error) {
	w := &waiter{granted: make(chan permit, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, context.Cause(l.ctx)
	}
	if front {
		w.place = l.line.PushFront(w)
	} else {
		w.place = l.line.PushBack(w)
	}
	l.look()
	return w, nil
}

// leave takes w out of the line. A permit that it has got in this moment is passed on.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case p := <-w.granted:
		l.free()
		if time.Since(p.sent) > l.o.Slack || !l.hand(p) {
			l.count.Void++
		}
	default:
		l.line.Remove(w.place)
	}
	l.look()
}

// hand gives p to the first in line, and reports whether there was one. The caller holds mu.
func (l *Limiter) hand(p permit) bool {
	first := l.line.Front()
	if first == nil {
		return false
	}
	w := l.line.Remove(first).(*waiter)
	if l.o.Slots > 0 {
		l.held++
	}
	w.granted <- p
	return true
}

// use reports whether the dial of p may begin now. If p has become void, its slot is given back.
func (l *Limiter) use(p permit) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(p.sent) > l.o.Slack {
		l.count.Void++
		l.free()
		return false
	}
	if p.share {
		l.count.Shared++
	} else {
		l.count.Granted++
	}
	if l.passed != nil {
		l.passed(now, p.share)
	}
	return true
}

// release gives a slot back, if there are Slots.
func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free() {
		l.look()
	}
}

// free counts a slot as free, and reports whether there are Slots. The caller holds mu.
func (l *Limiter) free() bool {
	if l.o.Slots > 0 {
		l.held--
	}
	return l.o.Slots > 0
}

// look makes run look again, and starts it if it has ended. The caller holds mu.
func (l *Limiter) look() {
	switch {
	case l.closed:
	case l.running:
		select {
		case l.wake <- struct{}{}:
		default:
		}
	default:
		l.running = true
		l.tasks.Add(1)
		go l.run() // Close waits for it
	}
}

// Status is a snapshot of a [Limiter].
type Status struct {
	Waiting int   // dials that wait
	Held    int   // slots that this process holds
	Away    bool  // the last question to Redis was not answered, or Redis forgets
	Err     error // why Redis is away; nil unless Away
	Differ  error // the last error of Options.Differ; nil: all processes have the same limits, as far as is known

	// ClosedUntil is when Redis lets a dial begin again, at the earliest, because it has forgotten those of the
	// last window. Zero: it is not closed, or cannot be asked.
	ClosedUntil time.Time

	Questions uint64 // how often Redis was asked
	Granted   uint64 // dials that Redis let begin
	Shared    uint64 // dials that began by Options.Local
	Void      uint64 // dials that Redis let begin and that were not made: the answer came too late, or no dial waited any more
}

// Status returns a snapshot.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.count
	s.Waiting, s.Held, s.Away, s.Err, s.Differ = l.line.Len(), l.held, l.talk.away, l.talk.err, l.talk.differ
	if time.Now().Before(l.mode.opens) {
		s.ClosedUntil = l.mode.opens
	}
	return s
}

// Close ends all waits with net.ErrClosed, and returns nil when no goroutine of the Limiter is left.
// Slots that are still held become free only at the end of the lease, so call Close when all dials are
// done. A second call of Close waits as well.
func (l *Limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop(fmt.Errorf("redisgate: the limiter is closed: %w", net.ErrClosed))
	l.tasks.Wait()
	return nil
}
