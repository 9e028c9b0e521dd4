package history

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/drain"
)

// The invariants of a drain.Group.
const (
	ClosedOnce      Invariant = "drain: a closer and a notice are called once at most, and not after Remove"
	NotBeforeTold   Invariant = "drain: a connection is not closed before the time that it was told, unless the context has ended"
	LeadIsQuiet     Invariant = "drain: in the lead no notice is called, and only what was told before is closed"
	ClosedInWindow  Invariant = "drain: what is there when the window begins is closed in the window"
	OneInASlot      Invariant = "drain: each slot of the window has one connection"
	AllHaveGone     Invariant = "drain: Drain returns nil only when each connection has gone"
	ReturnsAtOnce   Invariant = "drain: Drain returns when the last connection has gone, and the notices and the handlers have returned"
	HurriedAtOnce   Invariant = "drain: when the context ends all that is left is closed at once"
	HurryIsShort    Invariant = "drain: when the context has ended Drain returns within CloseTimeout"
	ClosersBounded  Invariant = "drain: no more closers than Closers run at a time, those of more than a second left out, and no more than 16 times as many in all"
	AgeKept         Invariant = "drain: before Drain a connection is closed at 0.9 to 1.1 times MaxAge only"
	RefusedInWindow Invariant = "drain: Handler refuses from the window on only, with a Retry-After of 1 to 10 s"
	ReadyIsTrue     Invariant = "drain: Ready is true until Drain is called"
	DrainStats      Invariant = "drain: each connection is counted once, by its end"
)

// fleet is a number of servers with a drain.Group each. The connections of the Conn come to the newest. The other members
// are functions only.
type fleet struct {
	nothing
	w *world

	// world.mu guards what follows.
	hosts []*host
}

// host is one server.
type host struct {
	*fleet
	group  *drain.Group
	o      drain.Options
	ctx    context.Context    // of Drain; nil: not yet
	cancel context.CancelFunc // of ctx
	guests []*guest
	active []*time.Duration // when the calls under way began

	draining    bool
	from, until time.Duration // the window; 0: not yet
	hurried     time.Duration // when the context has ended; 0: not yet
	returned    time.Duration
	handled     time.Duration // when the last handler has returned
	hung        time.Duration // when a call has returned that had hung
}

// guest is one member.
type guest struct {
	member         *drain.Member
	added          time.Duration
	noticed        bool // it can be told
	told, closed   time.Duration
	by             time.Duration
	removed, ended time.Duration // by Remove, and by its closer
	tellEnded      time.Duration // when its notice has returned
	notices, calls int
}

func newFleet(w *world) *fleet {
	f := &fleet{w: w}
	f.begin(w.plan.stream(actorAboveOptions), true)
	return f
}

// begin begins a server. The caller holds world.mu, or is alone.
func (f *fleet) begin(r *rand.Rand, renews bool) {
	h := &host{fleet: f}
	h.o = drain.Options{
		Window: time.Second + upTo(r, 40*time.Second), Lead: 1 + upTo(r, 10*time.Second), CloseTimeout: 500*time.Millisecond + upTo(r, 5*time.Second),
		Rand: rand.NewPCG(r.Uint64(), 0), Closers: 256,
	}
	if r.IntN(3) == 0 {
		h.o.Closers = 1 + r.IntN(5)
	}
	if renews && r.IntN(2) == 0 {
		h.o.MaxAge = 10*time.Second + upTo(r, 20*time.Second)
	}
	h.o.Warn = -1
	if r.IntN(2) == 0 {
		h.o.Warn = 1 + upTo(r, h.o.Window/4)
		if h.o.MaxAge > 0 {
			h.o.Warn = min(h.o.Warn, h.o.MaxAge/4)
		}
	}
	g, err := drain.New(&h.o)
	if err != nil {
		panic(err)
	}
	h.group = g
	f.hosts = append(f.hosts, h)
}

// newest returns the server that gets the connections. When the faults are over no connection is renewed.
func (f *fleet) newest() *host {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	h := f.hosts[len(f.hosts)-1]
	if h.o.MaxAge > 0 && f.w.calmed.Load() {
		f.begin(f.w.plan.stream(actorAboveOptions), false)
		h = f.hosts[len(f.hosts)-1]
	}
	return h
}

// The user.

func (f *fleet) step(r *rand.Rand, e Event) {
	w, h := f.w, f.newest()
	if r.IntN(3) == 0 && len(f.hosts) > 1 {
		w.mu.Lock()
		h = f.hosts[r.IntN(len(f.hosts))]
		w.mu.Unlock()
	}
	switch n := r.IntN(10); {
	case n < 5:
		noticed := r.IntN(2) == 0
		for range 1 + r.IntN(8) {
			h.visit(r, noticed)
		}
	case n < 8:
		h.request(r)
	default:
		h = f.newest()
		for range r.IntN(12) {
			h.visit(r, n == 8)
		}
		h.drain(r)
	}
}

// visit adds a member that is no connection of the Conn.
func (h *host) visit(r *rand.Rand, noticed bool) {
	w := h.w
	takes, fails := upTo(r, 3*time.Second), r.IntN(5) == 0
	if r.IntN(20) == 0 {
		takes = 20 * time.Second
	}
	leaves := r.IntN(2) == 0
	g := h.add(noticed, func(int, string) error {
		time.Sleep(takes)
		if fails {
			return errFetch
		}
		return nil
	}, func(g *guest, by time.Time) {
		if wait := time.Until(by) * 4 / 5; leaves {
			time.Sleep(wait)
			h.remove(g)
		}
	})
	if life := 1 + upTo(r, 60*time.Second); r.IntN(3) == 0 {
		w.users.Go(func() {
			select {
			case <-time.After(life):
			case <-w.over:
			}
			h.remove(g)
		})
	}
}

// add adds a member.
func (h *host) add(noticed bool, end func(int, string) error, tell func(*guest, time.Time)) *guest {
	w := h.w
	g := &guest{noticed: noticed}
	w.mu.Lock()
	g.added = w.now()
	h.guests = append(h.guests, g)
	w.mu.Unlock()
	closer := func(code int, reason string) error {
		defer h.call(g, func(now time.Duration) {
			g.calls++
			g.closed = now
			w.check(ClosedOnce, g.calls == 1 && (g.removed == 0 || g.removed == now), "%+v", *g)
			w.check(NotBeforeTold, g.by <= now || h.hurried > 0, "%+v", *g)
			h.inPhase(g, now, g.notices > 0)
		}, func(now time.Duration) { g.ended = now })()
		return end(code, reason)
	}
	if !noticed {
		m := h.group.Add(closer)
		w.mu.Lock()
		g.member = m
		w.mu.Unlock()
		return g
	}
	m := h.group.AddNotice(closer, func(by time.Time) {
		defer h.call(g, func(now time.Duration) {
			g.notices++
			g.told, g.by = now, by.Sub(w.start)
			w.check(ClosedOnce, g.notices == 1 && (g.calls == 0 || g.closed == now) && (g.removed == 0 || g.removed == now), "%+v", *g)
			h.inPhase(g, now, false)
		}, func(now time.Duration) { g.tellEnded = now })()
		tell(g, by)
	})
	w.mu.Lock()
	g.member = m
	w.mu.Unlock()
	return g
}

// call records a call of the Group, and returns what is called at its end.
func (h *host) call(g *guest, begin, end func(now time.Duration)) func() {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	h.look()
	begin(now)
	h.active = append(h.active, &now)
	quick := 0
	for _, at := range h.active {
		if *at > now-min(time.Second, h.o.CloseTimeout) {
			quick++
		}
	}
	w.check(ClosersBounded, quick <= h.o.Closers && len(h.active) <= 16*h.o.Closers, "%d, and %d in all, of %d", quick, len(h.active), h.o.Closers)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		h.active = slices.DeleteFunc(h.active, func(at *time.Duration) bool { return at == &now })
		if w.now() >= now+h.o.CloseTimeout {
			h.hung = w.now()
		}
		end(w.now())
	}
}

// ample reports whether no call waits for another.
func (h *host) ample() bool { return h.o.Closers == 256 }

// look notes that the context of Drain has ended. Each check calls look, because the Group may learn of the end earlier
// in the same instant than the function that context.AfterFunc runs. The caller holds world.mu.
func (h *host) look() {
	if h.ctx != nil && h.ctx.Err() != nil && h.returned == 0 && h.hurried == 0 {
		h.hurried = h.w.now()
	}
}

// inPhase checks a call for a member. The caller holds world.mu.
func (h *host) inPhase(g *guest, now time.Duration, told bool) {
	switch {
	case h.hurried > 0 || told:
	case h.draining && (h.from == 0 || now < h.from):
		h.w.check(LeadIsQuiet, false, "at %v of %+v", h.from, *g)
	case h.draining:
		h.w.check(LeadIsQuiet, true, "")
	default:
		age := now - g.added
		if g.noticed {
			age += max(0, h.o.Warn)
		}
		h.w.check(AgeKept, h.o.MaxAge > 0 && age >= h.o.MaxAge/10*9 && (age <= h.o.MaxAge/10*11+1 || !h.ample()), "at the age of %v, of %v", age, h.o.MaxAge)
	}
}

func (h *host) remove(g *guest) {
	h.w.mu.Lock()
	m := g.member
	if h.w.mu.Unlock(); m == nil { // Add has not returned
		return
	}
	m.Remove()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if g.removed == 0 {
		g.removed = max(1, h.w.now()) // also at the beginning
	}
}

// request is a request to the Handler, which may add a member.
func (h *host) request(r *rand.Rand) {
	w := h.w
	takes, joins := upTo(r, 3*time.Second), r.IntN(2) == 0
	served := false
	answer := httptest.NewRecorder()
	w.mu.Lock()
	h.look()
	window := h.from > 0 && w.now() >= h.from || h.hurried > 0
	edge := h.from == w.now() || h.hurried == w.now()
	w.mu.Unlock()
	at := w.now()
	h.group.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		served = true
		time.Sleep(takes)
		if joins {
			h.visit(r, false)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		h.handled = w.now()
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	seconds := atoi(answer.Header().Get("Retry-After"))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(RefusedInWindow, edge || served != window, "served: %t, at %v, and the window begins at %v", served, at, h.from)
	w.check(RefusedInWindow, served || answer.Code == http.StatusServiceUnavailable && 1 <= seconds && seconds <= 10 && w.now() == at, "%d, %d s", answer.Code, seconds)
}

// drain begins to drain the server, and another gets the connections from now on.
func (h *host) drain(r *rand.Rand) {
	w := h.w
	limit := time.Hour
	if r.IntN(2) == 0 {
		limit = 1 + upTo(r, 60*time.Second)
	}
	hasLimit := r.IntN(2) == 0
	w.mu.Lock()
	if h.draining {
		w.mu.Unlock()
		return
	}
	now := w.now()
	w.remark("drain")
	w.check(ReadyIsTrue, h.group.Ready(), "before Drain")
	h.draining = true
	lead, window := h.o.Lead, h.o.Window
	ctx, cancel := context.WithCancel(context.Background())
	if hasLimit {
		ctx, cancel = context.WithTimeout(context.Background(), limit)
		lead = min(lead, limit/2)
		window = min(window, (limit-lead)/10*9)
	}
	h.ctx, h.cancel = ctx, cancel
	h.from = now + lead
	h.until = h.from + window
	h.fleet.begin(r, !w.calmed.Load())
	w.mu.Unlock()
	if !hasLimit {
		time.AfterFunc(limit, cancel)
	}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		h.look()
	})
	w.users.Go(func() { h.drained(h.group.Drain(ctx)) })
	time.Sleep(time.Nanosecond)
	w.claim(ReadyIsTrue, !h.group.Ready(), "after Drain")
}

// drained checks what Drain has returned.
func (h *host) drained(err error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	h.look()
	h.returned = w.now()
	last := h.from
	for _, g := range h.guests {
		gone := g.removed
		if g.calls > 0 {
			gone = g.ended
		}
		w.check(AllHaveGone, err != nil || gone > 0 || g.added == h.returned, "%+v, and Drain returns nil", *g)
		last = max(last, gone, g.tellEnded)
	}
	wrong, ok := errors.AsType[*drain.Error](err)
	w.check(AllHaveGone, err == nil || ok && (wrong.Err != nil) == (h.hurried > 0), "%v, and the context has ended at %v", err, h.hurried)
	if ok && h.hurried == 0 {
		hung := slices.ContainsFunc(h.active, func(at *time.Duration) bool { return *at <= h.returned-h.o.CloseTimeout })
		w.check(ReturnsAtOnce, wrong.Hung == 0 || hung || h.hung == h.returned, "%v, and nothing hangs", err)
		w.check(ReturnsAtOnce, wrong.Handlers == 0 || wrong.Hung > 0 || h.returned >= last+h.o.CloseTimeout, "%v, and the last has gone at %v", err, last)
	}
	last = max(last, h.handled)
	switch {
	case h.hurried > 0:
		w.check(HurryIsShort, h.returned <= h.hurried+h.o.CloseTimeout, "%v after %v", h.returned, h.hurried)
	case err == nil:
		w.check(ReturnsAtOnce, h.returned == last, "at %v, and the last has gone at %v", h.returned, last)
	}
}

// admit makes a connection of the Conn a member.
func (f *fleet) admit(p *peer) {
	h := f.newest()
	w := f.w
	g := h.add(p.session%2 == 0, func(code int, reason string) error {
		w.note(p.pipe, "drain")
		return p.end(code, reason)
	}, func(_ *guest, by time.Time) {
		p.say(framed("leave", time.Until(by).Nanoseconds()))
	})
	context.AfterFunc(p.ctx, func() { h.remove(g) })
}

// hear obeys a notice.
func (f *fleet) hear(session uint64, words []string) {
	w := f.w
	by := time.Now().Add(time.Duration(atoi(words[1])) * 4 / 5)
	w.users.Go(func() {
		w.pushRotation()
		w.mu.Lock()
		w.meddled[session] = true
		w.mu.Unlock()
		w.conn.Rotate(session, reconnect.Advice{By: by})
	})
}

// over ends all drains.
func (f *fleet) over() {
	w := f.w
	w.mu.Lock()
	hosts := slices.Clone(f.hosts)
	w.mu.Unlock()
	r := w.plan.stream(actorAboveOptions)
	for _, h := range hosts {
		h.drain(r)
	}
	time.Sleep(time.Minute)
	w.mu.Lock()
	for _, h := range f.hosts {
		if h.cancel != nil {
			h.cancel()
		}
	}
	w.mu.Unlock()
	time.Sleep(time.Minute) // for what hangs
}

func (f *fleet) finish() {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range f.hosts {
		h.finish()
	}
}

// finish checks the moments of the closes. The caller holds world.mu.
func (h *host) finish() {
	w, s := h.w, h.group.Stats()
	gone := 0
	for _, g := range h.guests {
		if g.calls > 0 {
			gone++
		}
	}
	w.check(DrainStats, s.Added == len(h.guests) && s.Added == s.Members+s.Left+s.Closed+s.Failed && s.Hung == 0 && s.Closed+s.Failed == gone, "%+v, and %d were added, %d closed", s, len(h.guests), gone)
	if !h.draining || !h.ample() {
		return
	}
	slots, noticed, n := make(map[int]bool), 0, 0
	var there []*guest // when the window began
	for _, g := range h.guests {
		moment := g.moment()
		if g.added >= h.from || moment > 0 && moment < h.from || moment == 0 && g.removed > 0 && g.removed <= h.from {
			continue
		}
		there = append(there, g)
		if n++; g.noticed {
			noticed++
		}
	}
	for _, g := range there {
		moment := g.moment()
		if hurried := h.hurried; hurried > 0 && (moment == 0 || moment >= hurried) {
			w.check(HurriedAtOnce, g.calls > 0 && g.closed == hurried || g.removed > 0 && g.removed <= hurried, "%+v, and the context has ended at %v", *g, hurried)
			continue
		}
		if moment == 0 {
			continue // it has left
		}
		w.check(ClosedInWindow, moment >= h.from && max(moment, g.closed) <= h.until, "%+v, and the window is %v to %v", *g, h.from, h.until)
		if noticed > 0 && noticed < n {
			continue // slots of two lengths
		}
		span := h.until - h.from
		if noticed > 0 {
			span -= min(max(0, h.o.Warn), span)
		}
		if span <= time.Duration(n) {
			continue
		}
		slot := int(float64(moment-h.from) * float64(n) / float64(span))
		w.check(OneInASlot, !slots[slot], "slot %d of %d, %+v", slot, n, *g)
		slots[slot] = true
	}
}

// moment is when the Group has first called something of a member; 0: not at all.
func (g *guest) moment() time.Duration { return cmp.Or(g.told, g.closed) }
