package tiers

import (
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// call is one call of a tier: a request, and more if it fails.
type call struct {
	serves  request // of the tier above, for which the call is made; of no meaning for tier 0
	tier    int
	serial  uint32  // of the request that it waits for
	first   uint32  // the serial of its first request
	holders int     // its caller while it goes on, and each of its requests that is not answered
	user    float64 // the user that calls from outside, uniform in [0, 1)
	again   bool    // what it is made for is a repetition
	final   bool    // a tier below has repeated a request that failed
	outage  schedule.Outage
	told    func(backoff.Verdict) // takes the outcome of the request that it waits for; nil: nothing wants it
}

// request is one try of a call: its answer counts while serial is the call's.
type request struct{ call, serial uint32 }

// begin starts a call of a tier.
func (r *run) begin(tier int, serves request, again bool) {
	id := r.blank()
	c := &r.calls[id]
	*c = call{serves: serves, tier: tier, serial: c.serial, first: c.serial, holders: 1, again: again}
	if tier == 0 {
		c.user = r.rand.Float64()
	}
	if r.admit(c, backoff.Verdict{}) {
		r.send(id)
	} else {
		r.end(id, false)
	}
}

// blank returns a call that is not in use. Its serial goes on, so that nothing that is still on
// its way can be taken for another call's.
func (r *run) blank() uint32 {
	if n := len(r.idle); n > 0 {
		id := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return id
	}
	r.calls = append(r.calls, call{})
	return uint32(len(r.calls) - 1)
}

// admit asks the budget of a call's tier for a request after one that ended with last.
func (r *run) admit(c *call, last backoff.Verdict) (ok bool) {
	b := r.budgets[c.tier]
	if b == nil {
		return true
	}
	c.told, ok = b.Admit(last)
	return ok
}

// send sends a request of a call, or has it turned away before the first tier.
func (r *run) send(id uint32) {
	c := &r.calls[id]
	q := request{id, c.serial}
	c.holders++
	r.expiry[c.tier].Push(r.now+int64(r.setup.Scenario.Tiers[c.tier].Timeout), q)
	b, kind := r.result.at(r.now), kindReached
	if c.tier == 0 && c.user >= r.setup.Strategy.Admission.Admits(time.Duration(r.now)) {
		b.Turned++
		kind = kindTurned
	} else {
		b.Tiers[c.tier].Sent++
	}
	r.events.Push(r.now+r.exponential(meanTrip), due{kind, q})
}

// answer is a tier's, at its caller. Final means that a tier below has repeated its request.
func (r *run) answer(q request, ok, final bool) {
	if c := &r.calls[q.call]; c.serial == q.serial {
		v := backoff.Verdict{}
		if !ok {
			v.Class = backoff.ClassRetry
		}
		c.final = final
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
	c := &r.calls[id]
	c.serial++ // what still comes of this request is too late
	if c.told != nil {
		c.told(v)
		c.told = nil
	}
	if v.Class == backoff.ClassOK {
		r.end(id, true)
		return
	}
	caller := &r.setup.Strategy.Callers[c.tier]
	if caller.Final && c.final || caller.Marked && c.again {
		r.end(id, false)
		return
	}
	step, ok := c.outage.Next(r.policies[c.tier], v, time.Unix(0, r.now), r.rand)
	if !ok || !r.admit(c, v) {
		r.end(id, false)
		return
	}
	if step.Wait > 0 {
		r.events.Push(r.now+int64(step.Wait), due{kindAwake, request{call: id}})
		return
	}
	r.send(id)
}

// end ends a call: the tier that has made it has its answer.
func (r *run) end(id uint32, ok bool) {
	c := &r.calls[id]
	if c.tier == 0 {
		r.result.end(r.now, ok)
	} else {
		r.answer(c.serves, ok, !ok && (c.final || c.serial > c.first+1))
	}
	r.let(id)
}

// let releases a call. After the last release another call takes its place.
func (r *run) let(id uint32) {
	c := &r.calls[id]
	if c.holders--; c.holders == 0 {
		r.idle = append(r.idle, id)
	}
}
