package queueing

import (
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// call is one call of one client: a request, and more if it fails. It is small
// and what only some need lies elsewhere, for the sake of the processor's caches.
type call struct {
	began   int64  // ns; when its first request was sent
	serial  uint32 // of the request that it waits for
	first   uint32 // the serial of its first request
	holders uint16 // its client while it goes on, and each of its requests that the server may still look at
	timeout uint8  // index of its timeout in Scenario.Timeouts
	host    uint8  // of its user, or of its last request; see Scenario.Hosts
	doomed  bool   // the failure is one of its user or its host
	failed  bool   // a request of it has: its outage has begun
}

// leave is what a budget has to do with a call.
type leave struct {
	budget retry.Budget
	told   func(backoff.Verdict) // takes the outcome of the request that it waits for
}

// arrive draws when the next call comes.
func (r *run) arrive() {
	if r.left == 0 {
		r.arrival = -1
		return
	}
	r.left--
	r.arrival = r.now + exponential(r.rand, r.gap)
}

// begin starts a call that arrived at a time and holds its permit. What is random about its client is
// drawn now, not when it arrived: nothing happens to it before.
func (r *run) begin(arrived int64) {
	id := r.blank()
	c := &r.calls[id]
	if r.limited {
		r.arrived[id] = arrived
	}
	c.began, c.first, c.holders, c.failed = r.now, c.serial, 1, false
	if n := len(r.scenario.Timeouts); n > 1 {
		c.timeout = uint8(r.rand.IntN(n))
	}
	if f := &r.scenario.Failure; f.ByUser {
		user := r.rand.IntN(1e9)
		c.doomed = float64(user%1000)/1000 < f.Share
		c.host = uint8(user % 1000 * r.scenario.Hosts / 1000)
	}
	if n := len(r.budgets); n == 1 {
		r.leaves[id].budget = r.budgets[0]
	} else if n > 1 {
		r.leaves[id].budget = r.budgets[r.rand.IntN(n)]
	}
	if !r.ejected(id) && r.admit(id, backoff.Verdict{}) {
		r.send(id)
	} else {
		r.end(id, false)
	}
}

// blank returns a call that is not in use.
func (r *run) blank() uint32 {
	if n := len(r.idle); n > 0 {
		id := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return id
	}
	r.calls = append(r.calls, call{})
	r.outages = append(r.outages, schedule.Outage{})
	if len(r.budgets) > 0 {
		r.leaves = append(r.leaves, leave{})
	}
	if r.limited {
		r.arrived = append(r.arrived, 0)
	}
	return uint32(len(r.calls) - 1)
}

// admit asks a call's budget for a request after one that ended with last.
func (r *run) admit(id uint32, last backoff.Verdict) (ok bool) {
	if len(r.leaves) == 0 {
		return true
	}
	l := &r.leaves[id]
	l.told, ok = l.budget.Admit(last)
	return ok
}

// send sends a request of a call.
func (r *run) send(id uint32) {
	c := &r.calls[id]
	if f := &r.scenario.Failure; f.ByHost {
		c.host = r.hosts.pick(r.now, r.rand)
		c.doomed = float64(c.host) < f.Share*float64(r.scenario.Hosts)
	}
	q := request{call: id, serial: c.serial}
	c.holders++
	r.network.push(r.now, q)
	r.timeouts[c.timeout].Push(r.now+int64(r.scenario.Timeouts[c.timeout]), q)
	r.meter.at(r.now).Offered++
}

// answer is the server's, at the client.
func (r *run) answer(q request, ok bool) {
	if r.calls[q.call].serial == q.serial {
		v := backoff.Verdict{}
		if !ok {
			v.Class = backoff.ClassRetry
		}
		r.outcome(q.call, v)
	}
	r.let(q.call)
}

// expire is a request's timeout, which few live to see.
func (r *run) expire(q request) {
	if r.calls[q.call].serial == q.serial {
		r.outcome(q.call, backoff.Verdict{Class: backoff.ClassOverload})
	}
}

// outcome does what retry.Loop does between two tries: it reports the outcome to the
// budget, asks the policy, then the budget, and only then waits.
func (r *run) outcome(id uint32, v backoff.Verdict) {
	r.calls[id].serial++ // what still comes of this request is too late
	if len(r.leaves) > 0 {
		r.leaves[id].told(v)
	}
	if r.strategy.Eject > 0 {
		r.hosts.note(r.calls[id].host, v.Class == backoff.ClassOK, r.now)
	}
	if v.Class == backoff.ClassOK {
		r.end(id, true)
		return
	}
	outage := &r.outages[id]
	if c := &r.calls[id]; !c.failed {
		c.failed = true
		*outage = schedule.Outage{}
	}
	step, ok := outage.Next(r.policy, v, time.Unix(0, r.now), r.rand)
	if !ok || r.ejected(id) || !r.admit(id, v) {
		r.end(id, false)
		return
	}
	if step.Wait > 0 {
		r.sleepers.Push(r.now+int64(step.Wait), id)
		return
	}
	r.send(id)
}

// end ends a call and gives its permit back.
func (r *run) end(id uint32, ok bool) {
	c := &r.calls[id]
	arrived := c.began
	if r.limited {
		arrived = r.arrived[id]
	}
	r.meter.end(r.now, ok, r.now-c.began, r.now-arrived)
	r.permits++
	r.let(id)
}

// let releases a call. After the last release another call takes its place; the serial goes
// on, so that nothing that is still on its way can be taken for the other call's.
func (r *run) let(id uint32) {
	c := &r.calls[id]
	if c.holders--; c.holders == 0 {
		r.idle = append(r.idle, id)
	}
}
