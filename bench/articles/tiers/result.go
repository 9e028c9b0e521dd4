package tiers

// Result is what one run has shown.
type Result struct {
	Setup   Setup
	Buckets []Bucket // from the start on; what happens after the scenario's length is in Total alone
	Total   Bucket   // of the whole run: what can be added of all that happened

	after Bucket // what happens after the length
	sizes []size // of the tiers, in order of time
}

// Bucket is what happened in a part of the virtual time.
type Bucket struct {
	Arrived   int // calls from outside
	Ended     int // of those, that ended
	Succeeded int // with success
	Turned    int // requests that were turned away before the first tier
	Tiers     []TierBucket
}

// TierBucket is what happened at one tier.
type TierBucket struct {
	Sent      int // requests
	Completed int // requests on which the tier has done its own work
	Refused   int // requests that found the queue full
	Queue     int // the most that waited at once
	CPUs      int // that it had at the end; in a total the most
}

func newResult(o *Setup) *Result {
	n := int((o.Scenario.Length + o.Scenario.Bucket - 1) / o.Scenario.Bucket)
	r := &Result{Setup: *o, Buckets: make([]Bucket, n)}
	tiers := make([]TierBucket, (n+2)*len(o.Scenario.Tiers))
	take := func(b *Bucket) { b.Tiers, tiers = tiers[:len(o.Scenario.Tiers)], tiers[len(o.Scenario.Tiers):] }
	for i := range r.Buckets {
		take(&r.Buckets[i])
	}
	take(&r.after)
	take(&r.Total)
	return r
}

// at returns the bucket of a time in ns.
func (r *Result) at(now int64) *Bucket {
	if now >= int64(r.Setup.Scenario.Length) {
		return &r.after
	}
	return &r.Buckets[now/int64(r.Setup.Scenario.Bucket)]
}

// end notes the end of a call from outside.
func (r *Result) end(now int64, ok bool) {
	b := r.at(now)
	b.Ended++
	if ok {
		b.Succeeded++
	}
}

// close adds up the total.
func (r *Result) close() {
	now := make([]int, len(r.Total.Tiers)) // CPUs of each tier
	for i := range r.Buckets {
		for len(r.sizes) > 0 && r.sizes[0].at < int64(i+1)*int64(r.Setup.Scenario.Bucket) {
			now[r.sizes[0].tier] = r.sizes[0].cpus
			r.sizes = r.sizes[1:]
		}
		for tier, cpus := range now {
			r.Buckets[i].Tiers[tier].CPUs = cpus
		}
		r.Total.add(&r.Buckets[i])
	}
	r.Total.add(&r.after)
}

func (b *Bucket) add(c *Bucket) {
	b.Arrived += c.Arrived
	b.Ended += c.Ended
	b.Succeeded += c.Succeeded
	b.Turned += c.Turned
	for i, t := range c.Tiers {
		sum := &b.Tiers[i]
		sum.Sent += t.Sent
		sum.Completed += t.Completed
		sum.Refused += t.Refused
		sum.Queue = max(sum.Queue, t.Queue)
		sum.CPUs = max(sum.CPUs, t.CPUs)
	}
}
