package redisgate

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Logins counts the logins of all processes that share a Key in a Redis server. It is a
// [budget.SharedLogins], for LoginsOptions.Shared. One Logins for each account and process is enough.
//
// A login whose time is in the future, because a clock was wrong, counts as made now. If it is
// further ahead than the longest window, and is so for as long as that window, it is removed from
// Redis.
//
// It is safe for concurrent use. From NewLogins to Close it has one goroutine, which asks Redis once a second.
type Logins struct {
	o      LoginsOptions
	client Client
	keys   []string
	ctx    context.Context // ends with Close
	stop   context.CancelCauseFunc
	turn   chan struct{} // held by the goroutine that asks Redis
	tasks  sync.WaitGroup
	closed sync.Once

	record record // belongs to the goroutine that holds turn

	mu    sync.Mutex  // guards what follows
	times []time.Time // of the record, on the clock of this process; replaced as a whole, never changed
	opens time.Time   // nobody may log in before this time
	err   error       // why Redis is away; nil: it is not
}

// LoginsOptions are the options of [NewLogins].
type LoginsOptions struct {
	// Key names the account in Redis. All keys begin with "redisgate:{Key}:", so that they are in one
	// slot of a cluster. It must not be empty, contain a brace, or be longer than 200 bytes. A [Limiter] may have
	// the same Key.
	Key string

	// Timeout is the limit on one question to Redis. After that Redis counts as away. It must be the same in all
	// processes, because it says how long a process may need to give back what Redis has forgotten. At least 1 ms,
	// and at most 10 s. Default: 500 ms.
	Timeout time.Duration

	// Away is called with the reason when Redis cannot be asked any more, and with nil when Redis can
	// be asked again. It is called in the goroutine of the Logins, one call at a time, and must not block.
	// Default: nothing is called.
	Away func(err error)
}

// NewLogins returns a Logins. It asks Redis once, for at most Timeout; it is no error if Redis is away. The client
// stays the caller's, who may close it after Close. The error names the option that is wrong.
func NewLogins(client Client, o *LoginsOptions) (*Logins, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	l := &Logins{o: *cmp.Or(o, new(LoginsOptions)), client: client, turn: make(chan struct{}, 1)}
	if err := checkKey("LoginsOptions", l.o.Key); err != nil {
		return nil, err
	}
	l.o.Timeout = cmp.Or(l.o.Timeout, 500*time.Millisecond)
	if l.o.Timeout < time.Millisecond || l.o.Timeout > 10*time.Second {
		return nil, fmt.Errorf("redisgate: LoginsOptions.Timeout: %v is not between 1ms and 10s", l.o.Timeout)
	}
	for _, name := range []string{"logins", "loginstate"} {
		l.keys = append(l.keys, "redisgate:{"+l.o.Key+"}:"+name)
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	_, _ = l.ask(l.ctx, "", nil) // what it returns is in l
	l.tasks.Add(1)
	go l.watch() // Close waits for it
	return l, nil
}

// renewEvery is the longest time between two questions.
const renewEvery = time.Second

// pause is how long nobody may log in after Redis has forgotten logins. In this time each process asks, and gives back
// the logins that it knows.
func (l *Logins) pause() time.Duration { return 2 * (renewEvery + l.o.Timeout) }

// watch asks Redis again and again.
func (l *Logins) watch() {
	defer l.tasks.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	away := false
	for {
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if is := err != nil; is != away && l.o.Away != nil {
			l.o.Away(err)
		}
		away = err != nil
		timer.Reset(renewEvery*3/4 + rand.N(renewEvery/4))
		select {
		case <-timer.C:
			_, _ = l.ask(l.ctx, "", nil) // what it returns is in l
		case <-l.ctx.Done():
			return
		}
	}
}

// Take implements [budget.SharedLogins]. It waits for at most two questions to Redis. If no answer comes, the caller
// must not log in, although Redis may have counted the login.
func (l *Logins) Take(ctx context.Context, windows []budget.Window) (taken bool, err error) {
	return l.ask(ctx, crand.Text(), windows)
}

// awayFor is how long a connection that needs a login waits, while Redis is away, before it looks again.
const awayFor = 5 * time.Second

var errForgot = errors.New("redisgate: Redis has forgotten the logins, or the Key is new: nobody may log in until all processes have given back what they know")

// Recent implements [budget.SharedLogins]. What it returns was asked for a second and Timeout ago, at most. Redis
// counts as away from a question that is not answered to the next one that is.
func (l *Logins) Recent() ([]time.Time, *budget.LoginError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch err := cmp.Or(context.Cause(l.ctx), l.err); {
	case err != nil:
		return nil, &budget.LoginError{Next: now.Add(awayFor), Err: fmt.Errorf("redisgate: the logins cannot be counted: %w", err)}
	case now.Before(l.opens):
		return nil, &budget.LoginError{Next: l.opens, Err: errForgot}
	}
	return l.times, nil
}

// Close ends the questions, and returns nil when no goroutine of the Logins is left. After that Take and Recent
// return an error that is [net.ErrClosed]. A second call of Close waits as well.
func (l *Logins) Close() error {
	l.stop(fmt.Errorf("redisgate: the logins are closed: %w", net.ErrClosed))
	l.tasks.Wait()
	l.closed.Do(func() { l.turn <- struct{}{} }) // for good, so that nobody asks
	return nil
}

// ask asks Redis what is new, and for a login if id is not empty. It notes the answer.
func (l *Logins) ask(ctx context.Context, id string, windows []budget.Window) (taken bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if l.ctx.Err() != nil {
		return false, context.Cause(l.ctx)
	}
	r := &l.record
	a := l.question(ctx, id, windows, r, nil)
	if forgotten := r.missing(a); len(forgotten) > 0 {
		a = l.question(ctx, id, windows, &record{epoch: a.epoch, longest: r.longest}, forgotten)
	}
	if a.err != nil && ctx.Err() != nil {
		return false, context.Cause(ctx) // which says nothing about Redis
	}
	r.note(a)
	l.note(a)
	return a.taken, a.err
}

// note makes an answer known.
func (l *Logins) note(a loginAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = a.err; l.err != nil {
		return
	}
	l.opens = a.came.Add(a.closed)
	l.times = l.record.times(a) // also if the record is the same, because the server's clock may have been set
}
