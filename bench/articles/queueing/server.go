package queueing

// served is a request that holds a CPU.
type served struct {
	request
	reached int64  // ns; when it came to the server
	seen    uint32 // requests in the queue when its service began
	late    bool   // the server refuses it; see Strategy.Deadline
}

// reach is the arrival of a request at the server.
func (r *run) reach(q request) {
	if r.door != nil && !r.door.admit(r.now, r.busy+r.queue.Len()) {
		r.meter.at(r.now).Refused++
		r.answer(q, false)
		return
	}
	if r.busy < r.cpus {
		r.serve(q, r.now)
		return
	}
	r.queue.Push(r.now, q)
}

// serve gives a request a CPU that came at a time.
func (r *run) serve(q request, reached int64) {
	d := int64(float64(r.scenario.Latency) * exp(sigma*r.rand.NormFloat64()))
	v := served{request: q, reached: reached, seen: uint32(r.queue.Len())}
	if r.strategy.Deadline {
		d, v.late = r.hurry(q.call, d)
	}
	r.meter.work(r.now, r.busy)
	r.busy++
	r.service.Push(r.now+d, v)
}

// hurry returns how long a request takes that takes d normally, if the server
// knows until when it is waited for, and whether it is refused. That moment is
// the call's, counted from its first request: retries do not renew it.
func (r *run) hurry(id uint32, d int64) (took int64, late bool) {
	c := &r.calls[id]
	switch left := c.began + int64(r.scenario.Timeouts[c.timeout]) - r.now; {
	case left < 0:
		return d / 20, true
	case left < d:
		return min(left+d/5, d), true
	}
	return d, false
}

// finish is the end of a request's service.
func (r *run) finish(v served) {
	r.meter.work(r.now, r.busy)
	r.busy--
	ok := !v.late && r.succeeds(v.call)
	c := &r.calls[v.call]
	r.meter.complete(r.now, ending{ok: ok, first: v.serial == c.first, awaited: v.serial == c.serial, left: int(v.seen)})
	if r.door != nil {
		r.door.sample(r.now, r.now-v.reached)
	}
	if reached, next, some := r.queue.Pop(); some {
		r.serve(next, reached)
	}
	r.answer(v.request, ok)
}

// succeeds decides how a request ends.
func (r *run) succeeds(id uint32) bool {
	f := &r.scenario.Failure
	switch {
	case r.now < int64(f.From) || r.now > int64(f.To):
		return r.rand.Float64() < uptime
	case f.ByUser || f.ByHost:
		return !r.calls[id].doomed
	default:
		return r.rand.Float64() >= f.Share
	}
}

// exp is e^x for |x| below 3, to ten digits. Unlike math.Exp it has the same bits on
// every machine: each product is rounded before something is added.
func exp(x float64) float64 {
	x /= 16
	y := 1.0 / 5040
	for _, c := range [...]float64{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1} {
		y = float64(y*x) + c
	}
	for range 4 {
		y *= y
	}
	return y
}
