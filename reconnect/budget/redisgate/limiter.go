package redisgate

import (
	"container/list"
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// Limiter bounds the dials of all processes that share a Key in a Redis server. It is a
// [budget.SlotLimiter], for GateOptions.Limiter or [budget.Limited]. One for each process is enough.
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
	held    map[*permit]struct{}
	overdue time.Time // no slot of held is overdue before that; zero: none is held
	running bool      // run runs
	closed  bool
	talk    talk
	mode    mode
	share   budget.Window // of the dials that began by the share
	rand    *rand.Rand
	count   Status // its counters only
}

// waiter is a dial that waits.
type waiter struct {
	place   *list.Element
	hold    time.Duration // how long it may hold a slot
	granted chan *permit  // capacity 1, so that hand does not wait
}

// permit lets one dial begin. With Options.Slots it is a slot as well.
type permit struct {
	sent  time.Time // the question; the permit is void Options.Slack later
	end   time.Time // it holds a slot until then, at most
	share bool      // it is not from Redis
}

// New returns a Limiter. It does not ask Redis yet. The client stays the caller's, who may close it
// after Close. The error names the option that is wrong.
func New(client Client, o *Options) (*Limiter, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	if o == nil {
		o = new(Options)
	}
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		o: opts, client: client, id: crand.Text(),
		wake: make(chan struct{}, 1), answers: make(chan answer, 1),
		held: make(map[*permit]struct{}),
		mode: mode{window: opts.window()},
		rand: backoff.Rand(),
	}
	if opts.Rand != nil {
		l.rand = rand.New(opts.Rand)
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
// there are Slots; otherwise it does nothing. A second call of it does nothing.
//
// When ctx ends first, Acquire returns its cause at once. A dial that Redis had let begin by then
// is passed on to the next in line. If none waits, it counts although it is not made. After
// Close the error is net.ErrClosed. An outage of Redis is no error.
func (l *Limiter) Acquire(ctx context.Context) (done func(), err error) {
	return l.acquire(ctx, l.o.Hold)
}

// Wait is Acquire without a done. The slot, if there are Slots, is given back after
// Options.Lease, because nothing tells when the dial has ended.
func (l *Limiter) Wait(ctx context.Context) error {
	_, err := l.acquire(ctx, l.o.Lease)
	return err
}

func (l *Limiter) acquire(ctx context.Context, hold time.Duration) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for front := false; ; front = true {
		w, err := l.join(hold, front)
		if err != nil {
			return nil, err
		}
		select {
		case p := <-w.granted:
			if l.use(p) {
				return sync.OnceFunc(func() { l.release(p) }), nil
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

// join puts a dial in line, at the end or in front.
func (l *Limiter) join(hold time.Duration, front bool) (*waiter, error) {
	w := &waiter{hold: hold, granted: make(chan *permit, 1)}
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
		delete(l.held, p)
		if time.Since(p.sent) > l.o.Slack || !l.hand(p) {
			l.count.Void++
		}
	default:
		l.line.Remove(w.place)
	}
	l.look()
}

// hand gives p to the first in line, and reports whether there was one. The caller holds mu.
func (l *Limiter) hand(p *permit) bool {
	first := l.line.Front()
	if first == nil {
		return false
	}
	w := l.line.Remove(first).(*waiter)
	if l.o.Slots > 0 {
		p.end = time.Now().Add(w.hold)
		l.held[p] = struct{}{}
		if l.overdue.IsZero() || p.end.Before(l.overdue) {
			l.overdue = p.end
		}
	}
	w.granted <- p
	return true
}

// use reports whether the dial of p may begin now. If p has become void, its slot is given back.
func (l *Limiter) use(p *permit) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(p.sent) > l.o.Slack {
		l.count.Void++
		delete(l.held, p)
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

// release gives the slot of p back.
func (l *Limiter) release(p *permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.held[p]; ok {
		delete(l.held, p)
		l.look()
	}
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
	Away    bool  // the last question to Redis was not answered
	Err     error // why; nil unless Away

	Questions uint64 // how often Redis was asked
	Granted   uint64 // dials that Redis let begin
	Shared    uint64 // dials that began by Options.Local
	Void      uint64 // dials that Redis let begin and that were not made: their answer came too late, or nobody waited any more
	Overdue   uint64 // slots that were given back although no done was called in time
}

// Status returns a snapshot.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.count
	s.Waiting, s.Held, s.Away, s.Err = l.line.Len(), len(l.held), l.talk.away, l.talk.err
	return s
}

// Close ends all waits with net.ErrClosed, and returns when no goroutine of the Limiter is left.
// The dials that hold slots are not told. Their slots become free at the end of the lease, so call
// Close when they are done. A second call waits as well. It returns nil.
func (l *Limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop(fmt.Errorf("redisgate: the limiter is closed: %w", net.ErrClosed))
	l.tasks.Wait()
	return nil
}
