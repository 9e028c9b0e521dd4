package redisgate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// talk is the conversation with Redis, guarded by mu of the Limiter.
//
// Between the last dial that Redis allows and the first by the share lies a window, and the same on the way
// back. So no interval has dials of both kinds, provided that Redis is away for all processes or for none.
type talk struct {
	asking bool      // a request is in progress
	sent   time.Time // of the last request
	next   time.Time // of the next request, for dials that wait or while Redis is away; zero means now
	slow   int       // number of responses in a row that came after Options.Slack
	untold int       // number of dials that began by the share and are not reported to Redis

	err    error     // why Redis is away, or nil
	from   time.Time // no dial begins by the share before that
	opens  time.Time // Redis forgot, and allows no dial before that; zero means that it did not, or fails
	differ error     // another process has other limits

	closures int           // number of times in a row that Redis forgot before a dial could begin
	closure  time.Duration // end of the last of them, by the server's clock

	declared int  // number of slots of this process that Redis knows
	inQueue  bool // Redis knows that dials wait

	clock   time.Duration // of the server, in the last response; 0 means that there was none
	clockAt time.Time     // when that response was requested
	quiet   time.Time     // permits are void before that, because the server's clock was set ahead

	notifiedAway   bool  // what the last call of Options.Away said; owned by run
	notifiedDiffer error // likewise, of Options.Differ
}

const (
	maxSlow     = 3                      // number of slow responses in a row after which Redis is away
	maxClosures = 3                      // number of closures in a row after which Redis is away
	gap         = 10 * time.Millisecond  // minimum time between two requests
	retryEvery  = 500 * time.Millisecond // maximum, while Redis fails or slots are held
)

var errForgets = fmt.Errorf("redisgate: Redis has lost our keys %d times in a row "+
	"before a dial could begin: it must not evict them (maxmemory-policy)", maxClosures)

var errStuck = errors.New("redisgate: a request to Redis has not returned at the end of its context")

// run asks Redis and lets dials begin, until no dial waits, no slot is held, and Redis knows that. While
// Redis is away it continues, because otherwise it could not know whether others get dials from Redis.
func (l *Limiter) run() {
	for {
		l.notify()
		next, ok := l.step(time.Now())
		if !ok {
			return
		}
		select {
		case <-time.After(time.Until(next)):
		case <-l.wake:
		case x := <-l.exchanges:
			l.take(x)
		case <-l.ctx.Done():
			return
		}
	}
}

// notify calls Options.Away and Options.Differ if their arguments have changed.
func (l *Limiter) notify() {
	l.mu.Lock()
	t := &l.talk
	err, differ := t.err, t.differ
	l.mu.Unlock()
	if away := err != nil; away != t.notifiedAway && l.o.Away != nil {
		t.notifiedAway = away
		l.o.Away(err)
	}
	if l.o.Differ != nil && fmt.Sprint(differ) != fmt.Sprint(t.notifiedDiffer) {
		t.notifiedDiffer = differ
		l.o.Differ(differ)
	}
}

// step does all that is due, and returns when to call it next, or false when run must end.
func (l *Limiter) step(now time.Time) (next time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = l.serveShare(now)
	t, waiting := &l.talk, l.line.Len() > 0
	var at time.Time // of the next request; zero means now
	switch renewal := t.sent.Add(retryEvery); {
	case t.asking:
		// Otherwise a client that ignores its context would hold all dials.
		switch late := t.sent.Add(2 * l.o.Timeout); {
		case t.err != nil:
		case now.Before(late):
			next = earliest(next, late)
		default:
			l.suspend(now, errStuck, time.Time{})
			next = l.serveShare(now)
		}
		return next, true
	case t.err != nil:
		at = t.next
	case l.held != t.declared, !waiting && t.inQueue, t.untold > 0:
	case l.held > 0 && (!waiting || renewal.Before(t.next)):
		at = renewal
	case waiting:
		at = t.next
	default:
		l.running = false
		return next, false
	}
	at = latest(at, t.sent.Add(gap))
	if !at.After(now) {
		l.ask(now)
	} else if at.Before(next) {
		next = at
	}
	return next, true
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

// serveShare lets the dials begin that this process may begin by itself, and returns when to look again.
func (l *Limiter) serveShare(now time.Time) (next time.Time) {
	t := &l.talk
	next = now.Add(time.Hour)
	if t.err == nil || !t.opens.IsZero() && !now.Before(t.opens.Add(-l.share.Per)) {
		return next
	}
	from := t.from
	if t.asking { // a response within Slack may let dials begin
		from = latest(from, t.sent.Add(l.o.Slack+1))
	}
	for l.line.Len() > 0 && (l.o.Slots == 0 || l.held < l.o.Local.Slots) {
		if at := latest(from, l.share.At(now)); at.After(now) {
			return at
		}
		l.share.Take(now)
		t.untold++
		l.hand(permit{sent: now, share: true})
	}
	return next
}

// exchange is a request to Redis, and its response.
type exchange struct {
	sent       time.Time
	want, held int // number of dials that wait, and of slots that are held
	untold     int // what talk.untold was

	granted int           // number of dials that may begin
	back    time.Duration // time to the next request, for dials that must wait
	clock   time.Duration // of the server
	closed  time.Duration // time until Redis allows dials, because it forgot
	limits  string        // of another process, or empty
	came    time.Time
	err     error
}

// ask sends a request to Redis.
func (l *Limiter) ask(now time.Time) {
	t, o := &l.talk, &l.o
	x := exchange{sent: now, want: min(l.line.Len(), maxDials), held: l.held, untold: t.untold}
	if now.Before(t.quiet) || t.slow >= maxSlow { // permits would be void
		x.want = 0
	}
	spent := -1 // number of dials of the share in this window, unless Redis is closed until it is over
	if t.opens.IsZero() && (t.untold > 0 || t.err != nil) {
		spent = max(0, min(t.untold, o.Local.N-l.share.Free(now)))
	}
	// A process notices that Redis is back within lag: one request came too early, and the next succeeds.
	lag := max(retryEvery, o.Timeout) + o.Timeout
	args := []any{l.id, x.want, x.held, spent, o.Rate.N, l.share.Per.Microseconds(), o.Slots,
		o.Lease.Microseconds(), lag.Microseconds(), o.limits()}
	t.asking, t.sent = true, now
	l.count.Questions++
	l.tasks.Go(func() { // Close waits for it
		_, x.err = l.call(l.ctx, args, "%d %d %d %d %q", &x.granted, &x.back, &x.clock, &x.closed, &x.limits)
		x.came = time.Now()
		l.exchanges <- x
	})
}

// suspend notes that Redis is away because of err, if non-nil, and allows no dial before opens, if that is
// set. If Redis may have let dials begin since the last response, the share is not used for a window.
func (l *Limiter) suspend(now time.Time, err error, opens time.Time) {
	t := &l.talk
	if !now.Before(t.opens) && (t.err == nil || !t.opens.IsZero()) {
		t.from = now.Add(l.share.Per)
	}
	t.err, t.opens = err, opens
	t.next = t.sent.Add(retryEvery/2 + rand.N(retryEvery/2))
}

// take notes a response, and lets the dials begin that it allows.
func (l *Limiter) take(x exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.talk
	t.asking = false
	if x.err == nil && (x.granted < 0 || x.granted > x.want) {
		x.err = fmt.Errorf("redisgate: the script allows %d of %d dials", x.granted, x.want)
	}
	if x.err != nil {
		l.suspend(x.came, x.err, time.Time{})
		return
	}
	t.untold -= x.untold
	if took := x.came.Sub(x.sent); took <= l.o.Slack {
		t.slow = 0
	} else if t.slow++; t.slow >= maxSlow {
		l.count.Void += uint64(x.granted)
		l.suspend(x.came, fmt.Errorf("redisgate: answers take longer than Options.Slack: %v", took), time.Time{})
		return
	}
	t.inQueue, t.declared, t.differ = x.want > x.granted, x.held+x.granted*l.slot, nil
	if x.limits != "" {
		t.differ = fmt.Errorf("redisgate: another process has other limits for the key %s: %s, and this one %s",
			l.o.Key, x.limits, l.o.limits())
	}
	if x.closed > 0 {
		if end := x.clock + x.closed; end != t.closure { // otherwise it is the same closure
			t.closures, t.closure = t.closures+1, end
		}
		var err error
		if t.closures >= maxClosures {
			err = errForgets
		}
		l.suspend(x.came, err, x.sent.Add(x.closed))
	} else {
		t.err, t.opens, t.closures, t.closure = nil, time.Time{}, 0, 0
	}
	// The window in Redis has lost dials if the clock was set ahead, by more than two round-trips to be seen.
	passed := x.came.Sub(t.clockAt)
	if t.clock != 0 && x.closed == 0 && x.clock-t.clock > passed+passed/1000+time.Millisecond {
		t.quiet = x.came.Add(l.share.Per)
	}
	t.clock, t.clockAt = x.clock, x.sent
	void := x.came.Before(t.quiet) || t.slow > 0
	jitter := rand.N(min(max(l.share.Per/100, time.Millisecond), 20*time.Millisecond))
	switch next := x.came.Add(x.back + jitter); {
	case t.err == nil && (void || !t.inQueue):
		t.next = t.quiet
	case t.err == nil, t.inQueue && next.Before(t.next): // Redis does not miss a process that asks by then
		t.next = next
	}
	for range x.granted {
		if void || !l.hand(permit{sent: x.sent}) {
			l.count.Void++
		}
	}
}
