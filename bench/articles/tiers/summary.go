package tiers

import (
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// Summary is what a [Result] comes to. Shares of nothing are NaN.
type Summary struct {
	Load          []float64     // requests sent to each tier in the failure, in percent of the calls from outside that are usual
	Peak          []float64     // the largest of a [Bucket], likewise
	Queue         []int         // the longest of each tier
	CPUs          []float64     // the most that each tier had, times those that it had at first
	CPUsMean      []float64     // the mean over the scenario's length, likewise
	LoadBack      time.Duration // begin of the first bucket since the end of the failure from which on the lowest tier's load stays at or below 115 % while calls arrive
	LoadIsBack    bool          // there is one
	SuccessBack   time.Duration // the same for the errors: from there on at least 95 % of the calls that end succeed
	SuccessIsBack bool          // there is one
	Success       float64       // percent of all calls
	Up            float64       // percent of the scenario's length, by buckets, in which at least 95 % of the calls that ended succeeded
	Lost          int           // calls that ended without success
	LostFor       time.Duration // the time in which as many calls arrive
}

// Load returns the requests that were sent to a tier in a bucket, in percent of the calls from
// outside that are usual in its time.
func (r *Result) Load(bucket, tier int) float64 {
	s := &r.Setup.Scenario
	width := min(s.Bucket, s.Length-time.Duration(bucket)*s.Bucket)
	return 100 * float64(r.Buckets[bucket].Tiers[tier].Sent) / (float64(r.Setup.RPS) * width.Seconds())
}

// Success returns the percentage of the calls that ended in a bucket with success, NaN if none
// ended.
func (r *Result) Success(bucket int) float64 {
	b := &r.Buckets[bucket]
	return queueing.Share(b.Succeeded, b.Ended)
}

// Summary sums r up.
func (r *Result) Summary() Summary {
	s, all := &r.Setup.Scenario, &r.Total
	lowest := len(s.Tiers) - 1
	y := Summary{
		Success: queueing.Share(all.Succeeded, all.Ended),
		Lost:    all.Ended - all.Succeeded,
		LostFor: time.Duration(float64(all.Ended-all.Succeeded) / float64(r.Setup.RPS) * float64(time.Second)),
	}
	for tier, total := range all.Tiers {
		load, n, peak := 0.0, 0, 0.0
		for i := range r.Buckets {
			peak = max(peak, r.Load(i, tier))
			if at := time.Duration(i) * s.Bucket; at >= s.Failure.From && at < s.Failure.To {
				load, n = load+r.Load(i, tier), n+1
			}
		}
		y.Load = append(y.Load, load/float64(n))
		y.Peak = append(y.Peak, peak)
		y.Queue = append(y.Queue, total.Queue)
		cpus := 0
		for i := range r.Buckets {
			cpus += r.Buckets[i].Tiers[tier].CPUs
		}
		first := float64(max(1, r.Buckets[0].Tiers[tier].CPUs))
		y.CPUs = append(y.CPUs, float64(total.CPUs)/first)
		y.CPUsMean = append(y.CPUsMean, float64(cpus)/float64(len(r.Buckets))/first)
	}
	up, loads, successes := 0, make([]float64, len(r.Buckets)), make([]float64, len(r.Buckets))
	for i := range r.Buckets {
		loads[i], successes[i] = r.Load(i, lowest), r.Success(i)
		if queueing.IsUp(successes[i]) {
			up++
		}
	}
	y.LoadBack, y.LoadIsBack = queueing.Since(s.Failure.To, s.Bucket, loads, queueing.IsBack)
	y.SuccessBack, y.SuccessIsBack = queueing.Since(s.Failure.To, s.Bucket, successes, queueing.IsUp)
	y.Up = queueing.Share(up, len(r.Buckets))
	return y
}

// When returns a time of a [Summary] as people read it: "1.04 s", or "15.5 min" in a scenario
// of minutes; if there is none "not within 3 s", which is the scenario's length.
func (s *Scenario) When(at time.Duration, ok bool) string {
	unit, name := time.Second, "s"
	if s.Length >= 5*time.Minute {
		unit, name = time.Minute, "min"
	}
	if !ok {
		return fmt.Sprintf("not within %g %s", s.Length.Seconds()/unit.Seconds(), name)
	}
	return fmt.Sprintf("%.5g %s", math.Round(100*at.Seconds()/unit.Seconds())/100, name)
}
