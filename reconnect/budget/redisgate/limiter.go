package redisgate

import (
	"cmp"
	"container/list"
	"context"
	crand "crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Limiter limits the dials of all processes that share a Key in a Redis server. It is a [budget.SlotLimiter],
// for GateOptions.Limiter or [budget.Limited]. One Limiter for each process is enough.
//
// It is safe for concurrent use. While dials wait or hold slots, and while Redis is away, it has one
// goroutine, and another during each request to Redis, of which there is one at a time. Otherwise it has
// none.
type Limiter struct {
	server
	o         Options
	slot      int           // number of slots that a dial takes: 1, or 0 without Options.Slots
	id        string        // of this process, in Redis
	wake      chan struct{} // wakes run; buffered (1)
	exchanges chan exchange // the request in progress, with its response; buffered (1)
	tasks     sync.WaitGroup
	passed    func(now time.Time, share bool) // called when a permit is used, or nil; for tests

	mu      sync.Mutex // guards what follows
	line    list.List  // of chan permit, each buffered (1)
	held    int        // number of slots
	running bool       // run runs
	talk    talk
	share   budget.Window // of the dials that began by the share; its Per is that of the window in Redis
	count   Status        // its counters only
}

// permit lets one dial begin. With Options.Slots it is a slot as well.
type permit struct {
	sent  time.Time // of the request; the permit is void Options.Slack later
	share bool      // it is not from Redis
}

// Options are the options of [New]. All processes of a fleet must use the same Options. Processes with other
// Options must use another Key. At least one of Rate and Slots must be set.
type Options struct {
	// Key names the limit in Redis. All keys begin with "redisgate:{Key}:", so that they are in one slot of a
	// cluster. It must not be empty, contain a brace, or be longer than 200 bytes.
	Key string

	// Rate limits the dials of all processes: at most N begin in any interval of the length Per. Per must be at
	// least 10 ms and at most 30 days, and N at most 2^30. Default: no such limit.
	Rate budget.Window

	// Slots limits the dials of all processes in progress at a time. At most 2^30. Default: no such limit.
	Slots int

	// Local limits this process while Redis is away. If the shares of all processes together are not more than
	// Rate.N, the limit holds then as well.
	Local Share

	// Lease is how long Redis keeps the slots of a silent process, such as a process that was killed. A process
	// that holds slots renews them twice a second. At least 5 s and 4 times Timeout, and at most 30 days.
	// Default: 15 s, or 4 times Timeout if that is longer.
	Lease time.Duration

	// Slack is how old a permit may be when it is used, counted from the request to Redis. An older permit is
	// void. The window in Redis is longer than Rate.Per by Slack, which costs that share of the rate. Slack
	// should be several round-trips to Redis, and must be less than Rate.Per and at most 10 s. Default: a
	// twentieth of Rate.Per, but at least 5 ms and at most 1 s; without a Rate, 1 s.
	Slack time.Duration

	// Timeout limits one request to Redis. It delays the use of the share, and prolongs the pause when Redis is
	// back. At least Slack, and at most 10 s and a quarter of Lease. Default: the longer of 500 ms and Slack.
	Timeout time.Duration

	// Away, if non-nil, is called with the reason when Redis is away, and with nil when it is back, in a
	// goroutine of the Limiter and one call at a time. It must not block: the Limiter waits for it.
	Away func(err error)

	// Differ, if non-nil, is called like Away with an error, which states both limits, when another process has
	// asked with the same Key and another Rate or other Slots, and with nil when no process has done so for a
	// minute. Each process applies its own limit, so that no limit holds for the fleet.
	Differ func(err error)
}

// Share limits one process while Redis is away.
type Share struct {
	// N dials may begin in any interval of the length Rate.Per. At most Rate.N.
	// Default: a tenth of Rate.N, but at least 1.
	N int

	// Slots is how many dials may be in progress, including those that began before. At most Options.Slots.
	// Default: a tenth of Options.Slots, but at least 1.
	Slots int
}

const maxDials = 1 << 30 // maximum of Rate.N and Slots, so that all numbers are exact in the script

// withDefaults returns the options with their defaults, or the error that names the wrong option.
func (o Options) withDefaults() (Options, error) {
	const day = 24 * time.Hour
	if o.Slack == 0 && o.Rate.N > 0 {
		o.Slack = min(max(o.Rate.Per/20, 5*time.Millisecond), time.Second)
	}
	o.Slack = cmp.Or(o.Slack, time.Second)
	o.Timeout = cmp.Or(o.Timeout, max(500*time.Millisecond, o.Slack))
	minLease := max(5*time.Second, 4*o.Timeout) // two lags: the script's alarm is later than any living holder
	o.Lease = cmp.Or(o.Lease, max(15*time.Second, minLease))
	o.Local.N = cmp.Or(o.Local.N, o.Rate.N/10, min(o.Rate.N, 1))
	o.Local.Slots = cmp.Or(o.Local.Slots, o.Slots/10, min(o.Slots, 1))
	switch {
	case o.Rate.N == 0 && o.Rate.Per != 0:
		return o, errors.New("redisgate: Options.Rate.Per without N")
	case o.Rate.N == 0 && o.Slots == 0:
		return o, errors.New("redisgate: neither Options.Rate nor Slots is set")
	case o.Rate.N > 0 && o.Rate.Per != min(max(o.Rate.Per, 10*time.Millisecond), 30*day):
		return o, fmt.Errorf("redisgate: Options.Rate.Per: %v is not between 10ms and 30 days", o.Rate.Per)
	case o.Rate.N > 0 && o.Slack >= o.Rate.Per:
		return o, fmt.Errorf("redisgate: Options.Slack: %v is not less than Rate.Per, %v", o.Slack, o.Rate.Per)
	}
	return o, cmp.Or(
		between("Rate.N", o.Rate.N, 0, maxDials),
		between("Slots", o.Slots, 0, maxDials),
		between("Local.N", o.Local.N, 0, o.Rate.N),
		between("Local.Slots", o.Local.Slots, 0, o.Slots),
		between("Slack", o.Slack, 0, 10*time.Second),
		between("Timeout", o.Timeout, o.Slack, 10*time.Second),
		between("Lease", o.Lease, minLease, 30*day))
}

func between[T int | time.Duration](option string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("redisgate: Options.%s: %v is not between %v and %v", option, value, least, most)
	}
	return nil
}

// limits returns Rate and Slots as a text, which Redis compares with those of other processes.
func (o *Options) limits() string {
	switch {
	case o.Slots == 0:
		return fmt.Sprintf("%d per %v", o.Rate.N, o.Rate.Per)
	case o.Rate.N == 0:
		return fmt.Sprintf("%d slots", o.Slots)
	}
	return fmt.Sprintf("%d per %v, %d slots", o.Rate.N, o.Rate.Per, o.Slots)
}

//go:embed script.lua
var limitScript string

// New returns a Limiter. It does not ask Redis yet. The client stays the caller's, who may close it after
// Close. The error names the option that is wrong.
func New(client Client, o *Options) (*Limiter, error) {
	opts := *cmp.Or(o, new(Options))
	s, err := newServer(client, "Options", opts.Key, limitScript, "state", "queue", "seen", "held", "lease")
	if err != nil {
		return nil, err
	}
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	s.timeout = opts.Timeout
	l := &Limiter{server: s, o: opts, slot: min(opts.Slots, 1), id: crand.Text()}
	l.wake, l.exchanges = make(chan struct{}, 1), make(chan exchange, 1)
	if opts.Rate.N > 0 {
		l.share = budget.Window{N: opts.Local.N, Per: opts.Rate.Per + opts.Slack}
	}
	return l, nil
}

// Acquire waits until a dial may begin, which must follow immediately. Done releases the slot, if there are
// Slots; otherwise it does nothing. Call it once the session is ready or the dial has failed. A second call
// does nothing.
//
// When ctx is done, Acquire returns the cause of ctx immediately. If Redis has let the dial begin by then,
// the permit goes to the next dial in line. If no other dial waits, the permit counts although it is not
// used. After Close the error is net.ErrClosed. An outage of Redis is no error.
func (l *Limiter) Acquire(ctx context.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for push := l.line.PushBack; ; push = l.line.PushFront {
		place, err := l.join(push)
		if err != nil {
			return nil, err
		}
		select {
		case p := <-place.Value.(chan permit):
			if l.use(p) {
				return sync.OnceFunc(l.release), nil
			}
		case <-ctx.Done():
			l.leave(place)
			return nil, context.Cause(ctx)
		case <-l.ctx.Done():
			l.leave(place)
			return nil, context.Cause(l.ctx)
		}
	}
}

// Wait is like Acquire but releases the slot immediately, because it cannot know when the dial ends.
func (l *Limiter) Wait(ctx context.Context) error {
	done, err := l.Acquire(ctx)
	if err == nil {
		done()
	}
	return err
}

// join puts a dial in line.
func (l *Limiter) join(push func(any) *list.Element) (*list.Element, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, context.Cause(l.ctx)
	}
	defer l.look()
	return push(make(chan permit, 1)), nil
}

// leave takes a dial out of the line. A permit that it has received is passed on.
func (l *Limiter) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case p := <-place.Value.(chan permit):
		l.held -= l.slot
		if time.Since(p.sent) > l.o.Slack || !l.hand(p) {
			l.count.Void++
		}
	default:
		l.line.Remove(place)
	}
	l.look()
}

// hand gives p to the first dial in line, and reports whether there was one. The caller must hold mu.
func (l *Limiter) hand(p permit) bool {
	first := l.line.Front()
	if first != nil {
		l.held += l.slot
		l.line.Remove(first).(chan permit) <- p
	}
	return first != nil
}

// use reports whether the dial of p may begin now. If p has become void, its slot is released.
func (l *Limiter) use(p permit) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case now.Sub(p.sent) > l.o.Slack:
		l.count.Void++
		l.held -= l.slot
		return false
	case p.share:
		l.count.Shared++
	default:
		l.count.Granted++
	}
	if l.passed != nil {
		l.passed(now, p.share)
	}
	return true
}

// release releases a slot, if there are Slots.
func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= l.slot
	l.look()
}

// look makes run look again, and starts it if it has ended. The caller must hold mu.
func (l *Limiter) look() {
	if !l.running && l.ctx.Err() == nil {
		l.running = true
		l.tasks.Go(l.run) // Close waits for it
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Status is a snapshot of a [Limiter].
type Status struct {
	Waiting int   // number of dials that wait
	Held    int   // number of slots that this process holds
	Away    bool  // Redis is away
	Err     error // why Redis is away; nil unless Away
	Differ  error // last error of Options.Differ, or nil if no process is known to have other limits

	// ClosedUntil is when Redis lets a dial begin again, at the earliest, because it has forgotten those of the
	// last window. Zero means that it is not closed, or cannot be asked.
	ClosedUntil time.Time

	Questions uint64 // number of requests to Redis
	Granted   uint64 // number of dials that Redis let begin
	Shared    uint64 // number of dials that began by Options.Local
	Void      uint64 // number of permits from Redis that came too late, or when no dial waited any more
}

// Status returns a snapshot.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, t := l.count, &l.talk
	s.Waiting, s.Held, s.Away, s.Err, s.Differ = l.line.Len(), l.held, t.err != nil, t.err, t.differ
	if time.Now().Before(t.opens) {
		s.ClosedUntil = t.opens
	}
	return s
}

// Close ends all waits with net.ErrClosed, and returns nil when no goroutine of the Limiter is left. Call it
// when all dials are done, because slots that are still held are released only at the end of the lease.
func (l *Limiter) Close() error {
	l.mu.Lock() // so that look starts no goroutine later
	l.stop(fmt.Errorf("redisgate: the limiter is closed: %w", net.ErrClosed))
	l.mu.Unlock()
	l.tasks.Wait()
	return nil
}
