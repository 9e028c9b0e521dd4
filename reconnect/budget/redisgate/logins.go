package redisgate

import (
	"cmp"
	"context"
	crand "crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Logins counts the logins of all processes that share a Key in a Redis server. It is a
// [budget.SharedLogins], for LoginsOptions.Shared. One Logins for each account and process is enough.
//
// A login whose time is in the future, because a clock was wrong, counts as made now. If it is further ahead
// than the longest window, and is so for as long as that window, it is removed from Redis.
//
// It is safe for concurrent use. From NewLogins to Close it has one goroutine, which asks Redis once a
// second.
type Logins struct {
	server
	away  func(err error) // LoginsOptions.Away
	turn  chan struct{}   // held by the goroutine that asks Redis
	tasks sync.WaitGroup

	record record // owned by the goroutine that holds turn

	mu    sync.Mutex  // guards what follows
	times []time.Time // of the logins, by the clock of this process; replaced as a whole, never changed
	opens time.Time   // no login may be made before that
	err   error       // why Redis is away, or nil
}

// LoginsOptions are the options of [NewLogins].
type LoginsOptions struct {
	// Key names the account in Redis, under the rules of Options.Key. A [Limiter] may have the same Key.
	Key string

	// Timeout limits one request to Redis. It must be the same in all processes, because it determines how long
	// a process may need to give back what Redis has forgotten. At least 1 ms, and at most 10 s. Default: 500
	// ms.
	Timeout time.Duration

	// Away, if non-nil, is called with the reason when Redis is away, and with nil when it is back, in the
	// goroutine of the Logins and one call at a time. It must not block.
	Away func(err error)
}

//go:embed logins.lua
var loginsScript string

// NewLogins returns a Logins. It asks Redis once, for at most Timeout; it is no error if Redis is away. The
// client stays the caller's, who may close it after Close. The error names the option that is wrong.
func NewLogins(client Client, o *LoginsOptions) (*Logins, error) {
	o = cmp.Or(o, new(LoginsOptions))
	s, err := newServer(client, "LoginsOptions", o.Key, loginsScript, "logins", "loginstate")
	if err != nil {
		return nil, err
	}
	s.timeout = cmp.Or(o.Timeout, 500*time.Millisecond)
	if s.timeout < time.Millisecond || s.timeout > 10*time.Second {
		return nil, fmt.Errorf("redisgate: LoginsOptions.Timeout: %v is not between 1ms and 10s", s.timeout)
	}
	l := &Logins{server: s, away: o.Away, turn: make(chan struct{}, 1)}
	_, _ = l.update(l.ctx, "", nil) // its results are in l
	l.tasks.Go(l.watch)             // Close waits for it
	return l, nil
}

const renewEvery = time.Second // maximum time between two requests

// watch asks Redis until Close, and calls LoginsOptions.Away.
func (l *Logins) watch() {
	for away := false; l.ctx.Err() == nil; {
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if away != (err != nil) && l.away != nil {
			l.away(err)
		}
		away = err != nil
		select {
		case <-time.After(renewEvery*3/4 + rand.N(renewEvery/4)):
			_, _ = l.update(l.ctx, "", nil) // its results are in l
		case <-l.ctx.Done():
		}
	}
}

// Take implements [budget.SharedLogins]. It waits for at most two requests to Redis. If no response comes,
// the caller must not log in, although Redis may have counted the login.
func (l *Logins) Take(ctx context.Context, windows []budget.Window) (taken bool, err error) {
	return l.update(ctx, crand.Text(), windows)
}

// Recent implements [budget.SharedLogins]. What it returns was requested a second and Timeout ago, at most.
// Redis is away from a request that fails to the next one that does not.
func (l *Logins) Recent() ([]time.Time, *budget.LoginError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch err := cmp.Or(context.Cause(l.ctx), l.err); {
	case err != nil:
		err = fmt.Errorf("redisgate: the logins cannot be counted: %w", err)
		return nil, &budget.LoginError{Next: now.Add(5 * time.Second), Err: err}
	case now.Before(l.opens):
		err = errors.New("redisgate: Redis has forgotten the logins, or the Key is new: " +
			"nobody may log in until all processes have given back what they know")
		return nil, &budget.LoginError{Next: l.opens, Err: err}
	}
	return l.times, nil
}

// Close ends the requests, and returns nil when no goroutine of the Logins is left. After that Take and
// Recent return an error that is [net.ErrClosed]. A second call of Close waits as well.
func (l *Logins) Close() error {
	l.stop(fmt.Errorf("redisgate: the logins are closed: %w", net.ErrClosed))
	l.tasks.Wait()
	l.turn <- struct{}{} // waits for a Take that uses the client
	<-l.turn
	return nil
}

// record is what a process knows of the record in Redis, and the response that said so.
type record struct {
	epoch   string // changes when Redis forgets; empty if not known
	version int64  // changes with each login
	longest int64  // longest window of any process, in microseconds; 0 if not known
	logins  []login
	newest  int64 // when the newest of logins was made; 0 if there is none

	came   time.Time
	clock  int64         // of the server, in microseconds
	closed time.Duration // for how long no login may be made
	taken  bool          // the requested login is made
}

type login struct {
	id string
	at int64 // in microseconds of the server's clock
}

// update asks Redis for the record, and for a login if id is not empty.
func (l *Logins) update(ctx context.Context, id string, windows []budget.Window) (taken bool, err error) {
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
	known := l.record
	r, err := l.exchange(ctx, id, windows, known, nil)
	if err == nil && r.epoch != known.epoch && len(known.logins) > 0 { // Redis has forgotten some
		r, err = l.exchange(ctx, id, windows, record{epoch: r.epoch, longest: known.longest}, known.logins)
	}
	if err != nil && ctx.Err() != nil {
		return false, context.Cause(ctx) // which says nothing about Redis
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err != nil {
		return false, err
	}
	l.record, l.opens, l.times = r, r.came.Add(r.closed), make([]time.Time, len(r.logins))
	for i, x := range r.logins {
		// 2 µs later, because the times in Redis are rounded down and a window there is longer by a microsecond. A
		// login in the future counts as made now: logins.lua removes it if it is too far ahead for too long.
		l.times[i] = r.came.Add(-time.Duration(max(r.clock-x.at-2, 0)) * time.Microsecond)
	}
	return r.taken, nil
}

// exchange runs the script for a process that knows a record, and gives the forgotten logins back to Redis.
func (l *Logins) exchange(
	ctx context.Context, id string, windows []budget.Window, known record, forgotten []login,
) (record, error) {
	// In this time after Redis has forgotten logins each process asks, and gives back those that it knows.
	pause := 2 * (renewEvery + l.timeout)
	args := []any{id, known.epoch, known.version, known.newest, crand.Text(), pause.Microseconds(),
		known.longest, len(windows)}
	for _, w := range windows {
		args = append(args, w.N, w.Per.Microseconds()+1) // because the times in Redis are rounded down
	}
	for _, x := range forgotten {
		args = append(args, x.at, x.id)
	}
	r := record{logins: known.logins, newest: known.newest}
	text, err := l.call(ctx, args, "%t %d %d %d %d %q",
		&r.taken, &r.clock, &r.closed, &r.version, &r.longest, &r.epoch)
	r.came = time.Now()
	if err != nil || r.epoch == known.epoch && r.version == known.version {
		return r, err
	}
	r.logins, r.newest = nil, 0
	for line := range strings.Lines(text) { // the oldest first
		var x login
		if _, err := fmt.Sscan(line, &x.at, &x.id); err != nil {
			return r, fmt.Errorf("redisgate: the script returned a login %.200q", line)
		}
		r.logins, r.newest = append(r.logins, x), x.at
	}
	return r, nil
}
