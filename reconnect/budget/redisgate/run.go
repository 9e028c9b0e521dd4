package redisgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// talk is the conversation with Redis. mu of the Limiter guards it.
type talk struct {
	asking bool      // a question is under way
	late   bool      // and has taken longer than Options.Timeout
	sent   time.Time // the last question
	back   time.Time // ask again for those who wait; zero: at once
	quiet  time.Time // no dial for this process before that: the server's clock has jumped
	slow   int       // so many answers in a row came after Options.Slack
	untold int       // so many dials began by the share, and Redis does not know

	closures int           // how many times in a row Redis has closed before it has let a dial begin
	opens    time.Duration // by the clock of the server, after the last of these

	differ     error // another process has other limits
	toldDiffer error // what the last call of Options.Differ said

	away     bool
	toldAway bool      // the last call of Options.Away said that Redis is away
	err      error     // why
	retry    time.Time // ask again while away
	unsure   bool      // a question has failed since the last answer

	declared int  // so many slots of this process are held, as Redis knows
	inQueue  bool // Redis knows that dials wait

	clock   time.Duration // of the server, in the last answer; 0: there is none
	clockAt time.Time     // when that was asked
}

// mostSlow is how many slow answers in a row mean that Redis is of no use.
const mostSlow = 3

// mostClosures is how many closures in a row mean that Redis forgets the keys again and again.
const mostClosures = 3

// gap is the time between two questions of a process, at least.
const gap = 10 * time.Millisecond

var (
	errTimeout = errors.New("redisgate: no answer in time")
	errSlow    = errors.New("redisgate: answers take longer than Options.Slack")
	errForgets = fmt.Errorf("redisgate: Redis has lost our keys %d times in a row before a dial could begin: it must not evict them (maxmemory-policy)", mostClosures)
)

// run asks Redis and lets dials begin, until none waits, none holds a slot, and Redis knows that. While
// Redis is away it goes on: a process that does not look could not know whether others get dials from Redis.
func (l *Limiter) run() {
	defer l.tasks.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.tell()
		next, ok := l.step(time.Now())
		if !ok {
			return
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-l.wake:
		case a := <-l.answers:
			l.take(a)
		case <-l.ctx.Done():
			return
		}
	}
}

// step does all that is due, and returns when to call it next; false: run has ended.
func (l *Limiter) step(now time.Time) (next time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.talk
	if t.asking && !t.late && now.Sub(t.sent) >= l.o.Timeout {
		t.late = true
		l.failed(now, errTimeout)
	}
	next = now.Add(time.Hour)
	l.serveShare(now, &next)
	at, due := l.due(now)
	if due && !t.asking {
		if at.After(now) {
			soonest(&next, at)
		} else {
			l.begin(now)
		}
	}
	if t.asking && !t.late {
		soonest(&next, t.sent.Add(l.o.Timeout))
	}
	if t.away != t.toldAway {
		next = now // tell first, in this goroutine, because another run could follow at once
	}
	if idle := !due && !t.asking && !t.toldAway; l.closed || idle {
		l.running = false
		return next, false
	}
	return next, true
}

func soonest(next *time.Time, at time.Time) {
	if at.Before(*next) {
		*next = at
	}
}

// due returns when Redis must be asked; false: it must not.
func (l *Limiter) due(now time.Time) (time.Time, bool) {
	t := &l.talk
	waiting, held := l.line.Len() > 0, l.held
	if t.away {
		return t.retry, true
	}
	at := now.Add(time.Hour)
	ok := waiting || held > 0
	if waiting {
		soonest(&at, later(t.back, t.quiet))
	}
	if held > 0 {
		soonest(&at, t.sent.Add(retryEvery))
	}
	if l.o.Slots > 0 && held != t.declared || !waiting && t.inQueue || t.untold > 0 {
		at, ok = now, true
	}
	return later(at, t.sent.Add(gap)), ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin asks Redis.
func (l *Limiter) begin(now time.Time) {
	t := &l.talk
	q := question{want: min(l.line.Len(), mostDials), held: l.held, spent: -1}
	if now.Before(t.quiet) || t.slow >= mostSlow { // it would be void
		q.want = 0
	}
	if t.unsure || t.untold > 0 {
		q.spent, q.untold = max(0, min(t.untold, l.o.Local.N-l.share.Free(now))), t.untold
	}
	t.asking, t.sent = true, now
	l.count.Questions++
	l.tasks.Add(1)
	go func() { // Close waits for it
		defer l.tasks.Done()
		ctx, cancel := context.WithTimeoutCause(l.ctx, l.o.Timeout, errTimeout)
		defer cancel()
		l.answers <- l.ask(ctx, q, now)
	}()
}

// failed notes that Redis cannot be asked.
func (l *Limiter) failed(now time.Time, err error) {
	t := &l.talk
	t.leave(err)
	t.unsure = true
	l.mode.failed(now)
}

// leave notes that Redis is away.
func (t *talk) leave(err error) {
	t.away, t.err = true, err
	t.retry = t.sent.Add(retryEvery/2 + rand.N(retryEvery/2))
}

// forgets counts the closures, and reports whether there are too many in a row. Answers that name the same time at
// which Redis opens are about the same closure.
func (t *talk) forgets(a answer) bool {
	if a.closed == 0 {
		t.closures, t.opens = 0, 0
		return false
	}
	if opens := a.clock + a.closed; opens != t.opens {
		t.closures, t.opens = t.closures+1, opens
	}
	return t.closures >= mostClosures
}

// take notes an answer, and lets the dials begin that it allows.
func (l *Limiter) take(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.talk
	late := t.late
	t.asking, t.late = false, false
	if a.err != nil {
		if !late {
			l.failed(a.came, a.err)
		}
		return
	}
	t.untold -= a.q.untold
	if took := a.came.Sub(a.sent); took <= l.o.Slack {
		t.slow = 0
	} else if t.slow++; t.slow >= mostSlow {
		l.count.Void += uint64(a.granted)
		l.failed(a.came, fmt.Errorf("%w: %v", errSlow, took))
		return
	}
	t.away, t.err, t.unsure, t.differ = false, nil, false, a.differ
	forgets := t.forgets(a)
	if forgets {
		t.leave(errForgets)
	}
	l.mode.answered(a.sent, a.came, a.closed, forgets)
	t.inQueue = a.q.want > a.granted
	if l.o.Slots > 0 {
		t.declared = a.q.held + a.granted
	}
	if l.jumped(a) {
		t.quiet = a.came.Add(l.mode.window)
	}
	t.back = time.Time{}
	if a.came.Before(t.quiet) || t.slow > 0 {
		l.count.Void += uint64(a.granted)
		return
	}
	if t.inQueue {
		t.back = a.came.Add(a.back + rand.N(l.o.jitter()))
	}
	for range a.granted {
		if !l.hand(permit{sent: a.sent}) {
			l.count.Void++
		}
	}
}

// jumped reports whether the server's clock has gone ahead by more than the time that can have
// passed. The window in Redis has then lost dials that it should still hold. A step
// that is shorter than two round-trips is not seen.
func (l *Limiter) jumped(a answer) bool {
	t := &l.talk
	known, clock, at := t.clock != 0, t.clock, t.clockAt
	t.clock, t.clockAt = a.clock, a.sent
	passed := a.came.Sub(at)
	return known && a.closed == 0 && a.clock-clock > passed+passed/1000+time.Millisecond
}

// serveShare lets the dials begin that this process may begin by itself.
func (l *Limiter) serveShare(now time.Time, next *time.Time) {
	ok, at := l.mode.share(now)
	if !at.IsZero() {
		soonest(next, at)
	}
	// An answer within Slack may let dials begin. The permits of a later answer are void, so the share is used again.
	if late := l.talk.sent.Add(l.o.Slack + 1); ok && l.talk.asking && now.Before(late) {
		soonest(next, late)
		return
	}
	for ok && l.line.Len() > 0 && (l.o.Slots == 0 || l.held < l.o.Local.Slots) {
		if at := l.share.At(now); at.After(now) {
			soonest(next, at)
			return
		}
		l.share.Take(now)
		if l.o.Rate.N > 0 {
			l.talk.untold++
		}
		l.hand(permit{sent: now, share: true})
	}
}

// tell calls Options.Away and Options.Differ when that has changed.
func (l *Limiter) tell() {
	l.mu.Lock()
	t := &l.talk
	away, err, differ := t.away, t.err, t.differ
	changed, differs := away != t.toldAway, fmt.Sprint(differ) != fmt.Sprint(t.toldDiffer)
	t.toldAway, t.toldDiffer = away, differ
	l.mu.Unlock()
	if changed && l.o.Away != nil {
		l.o.Away(err)
	}
	if differs && l.o.Differ != nil {
		l.o.Differ(differ)
	}
}
