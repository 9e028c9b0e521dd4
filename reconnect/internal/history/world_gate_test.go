package history

import (
	"context"
	"slices"
	"time"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// The limits of the gate of a history.
const (
	gateRate  = 5 // dials a second
	gateBurst = 2
)

// watchedGate is a gate that counts its permits.
type watchedGate struct {
	*budget.Gate
	w      *world
	limit  int // permits at a time
	line   *lineModel
	others *budget.Gate // for all other hosts
}

func (w *world) newGate() *watchedGate {
	limit := w.set.Permits
	m := newLineModel(w)
	g, err := budget.NewGate(&budget.GateOptions{Rate: gateRate, Burst: gateBurst, Concurrent: limit, Probe: m, Rand: w.source(4)})
	if err != nil {
		panic(err)
	}
	others, err := budget.NewGate(&budget.GateOptions{Rand: w.source(4)})
	if err != nil {
		panic(err)
	}
	if limit == 0 {
		limit = 16
	}
	m.window = limit
	return &watchedGate{g, w, limit, m, others}
}

// Acquire is that of the gate.
func (g *watchedGate) Acquire(ctx context.Context, host string) (done func(backoff.Verdict), err error) {
	if host != address { // an advised one, whose line has no model
		return g.others.Acquire(ctx, host)
	}
	g.w.callback("Gate.Acquire", nil)
	s := line.Status(g.Status(host))
	g.w.mu.Lock()
	place := g.line.join(s)
	g.w.mu.Unlock()
	back, err := g.Gate.Acquire(ctx, host)
	if err != nil {
		g.w.mu.Lock()
		defer g.w.mu.Unlock()
		g.line.leave(place)
		return nil, err
	}
	p, returned := g.w.grant(g.limit, place), 0
	return func(v backoff.Verdict) {
		at := g.w.now()
		g.w.callback("the gate's done", nil)
		g.w.mu.Lock()
		if g.w.mirror != nil && g.w.now() > at { // it does not know when the session became ready, before this call
			g.w.mirror.dead = true
		}
		g.w.mu.Unlock()
		s, now, counts := line.Status(g.Status(host)), time.Now(), false
		g.w.mu.Lock()
		returned++
		g.w.check(PermitReturnedOnce, returned == 1, "a permit was returned %d times", returned)
		if returned == 1 {
			g.w.returned(p, v)
			counts = g.line.done(place, v, s)
		}
		g.w.mu.Unlock()
		back(v)
		g.w.mu.Lock()
		defer g.w.mu.Unlock()
		g.line.paced(counts, now)
	}, nil
}

// grant checks a permit that was given now.
func (w *world) grant(limit int, place *place) *permit {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate.line.grant(place)
	now := w.now()
	w.permits++
	w.granted = append(w.granted, now)
	w.check(GateLimits, w.permits <= limit, "%d permits of %d", w.permits, limit)
	n := 0
	for i := len(w.granted) - 1; i >= 0 && w.granted[i] > now-10*time.Second; i-- {
		n++
	}
	w.check(GateLimits, n <= gateBurst+10*gateRate, "%d permits in 10 s", n)
	n = 0
	for i := len(w.granted) - 1; i >= 0 && w.granted[i] > now-time.Second; i-- {
		n++
	}
	w.check(GateLimits, n <= gateBurst+gateRate, "%d permits in a second", n)
	p := &permit{at: now}
	if w.down {
		w.check(OneProbeAtATime, w.probe == nil, "two probes while the host is down")
		w.probe = p
	}
	return p
}

// permit is one dial that the gate has let in.
type permit struct{ at time.Duration }

// returned notes that a permit was given back. The caller holds w.mu.
func (w *world) returned(p *permit, v backoff.Verdict) {
	w.permits--
	if w.probe == p {
		w.probe = nil
	}
	switch {
	case v.Class == backoff.ClassStop:
	case !v.Caller && (v.Class == backoff.ClassRetry || v.Class == backoff.ClassOverload):
		w.down = true
	default:
		w.down, w.probe = false, nil
	}
}

// rivals are other connections to the host, which take permits of the same gate.
func (w *world) rivals() {
	for i := range w.set.Rivals {
		w.users.Go(func() {
			r := w.plan.stream(20 + uint64(i))
			pause, failures := w.rivalry(uint64(i))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			w.users.Go(func() {
				select {
				case <-w.over:
					cancel()
				case <-ctx.Done():
				}
			})
			for !w.calmed.Load() {
				select {
				case <-time.After(upTo(r, pause)):
				case <-w.over:
					return
				}
				verdicts := append([]backoff.Verdict{{}, {}}, failures...)
				w.rival(ctx, r.IntN(2) == 0, upTo(r, time.Second), verdicts[r.IntN(5)])
			}
		})
	}
}

// rivalry draws how a rival fares, from a stream of its own: how long it pauses between two dials, and the verdicts on
// those of its dials that do not succeed. The server may limit the account of the rival, or ask it to wait.
func (w *world) rivalry(i uint64) (pause time.Duration, failures []backoff.Verdict) {
	r := w.plan.stream(40 + i)
	wait := time.Duration(1+r.IntN(30)) * time.Second
	failures = []backoff.Verdict{
		{Class: backoff.ClassRetry}, {Class: backoff.ClassOverload}, {Class: backoff.ClassStop},
	}
	switch r.IntN(4) {
	case 0:
		limited := backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: wait, Caller: true}
		return 200 * time.Millisecond, slices.Repeat([]backoff.Verdict{limited}, 3)
	case 1:
		failures[1].RetryAfter = wait
	}
	return 5 * time.Second, failures
}

// rival is one dial of a rival.
func (w *world) rival(ctx context.Context, impatient bool, d time.Duration, v backoff.Verdict) {
	if impatient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*d+1)
		defer cancel()
	}
	w.outlook()
	done, err := w.gate.Acquire(ctx, address)
	if err != nil {
		return
	}
	time.Sleep(d)
	w.outlook()
	done(v)
}

// finishGate checks the gate when all is over. The caller holds w.mu.
func (w *world) finishGate() {
	if w.gate != nil {
		s := line.Status(w.gate.Status(address))
		w.check(PermitReturnedOnce, w.permits == 0 && s.Dialing == 0 && s.Waiting == 0, "%d permits are out: %+v", w.permits, s)
	}
}
