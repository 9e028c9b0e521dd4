package queueing

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// Series is one strategy on one scenario: the mean over several seeds.
type Series struct {
	Scenario Scenario
	Strategy string
	RPS      int
	Seeds    int // how many it is the mean of
	CPUs     int
	Bucket   time.Duration // length of a row
	Rows     []Row
	Fine     []float64 // load in percent per [FineBucket]
	Answered []float64 // percent of the calls that ended with success, per FineBucket; NaN if none ended
	Requests float64   // that the server ended in a whole run
	Success  float64   // percent of all calls of a run
}

// Row is a part of the virtual time: means over the seeds, in the units of
// testdata/calibration_50ms.csv. What no seed defines is NaN.
type Row struct {
	T               time.Duration // its beginning
	Amplification   float64       // completions in percent of the normal load, 100 rps x bucket
	AmplificationSD float64       // standard deviation of that over the seeds, which count as all there are
	Offered         float64       // requests sent in percent of the normal load
	FirstOK         float64       // completions of first tries whose success their caller still waited for, in percent of the normal load
	FirstFailed     float64       // those of the other first tries, likewise
	RetryOK         float64       // completions of retries whose success their caller still waited for, likewise
	RetryFailed     float64       // those of the other retries, likewise
	ServerOK        float64       // percent of the completions
	ClientDone      float64       // calls that ended in percent of the normal load
	ClientOK        float64       // percent of those
	Unmet           float64       // calls that had arrived and not ended at its end
	P50, P99        float64       // ms, see [Bucket]
	QueueAvg        float64       // requests in the queue, as those that were ended saw it when their service began
	QueueMax        float64       // the most that one of them saw
	CPU             float64       // percent of the CPUs
	Refused         float64       // requests that the server refused at its door in percent of the normal load
	UnderWay        float64       // Little's L: calls that had arrived and not ended, the mean over the row's time
	Rate            float64       // Little's lambda: calls per second that ended
	InSystem        float64       // Little's W: ms from the arrival of a call that ended to its end, the mean
}

// Collect runs a strategy with the seeds o.Seed, o.Seed+1, ... on all processors, and
// returns the mean. When ctx ends first it is the mean of the seeds that are
// done, with the context's cause. It calls each after each run, several at a time; nil
// is allowed.
func Collect(ctx context.Context, o Setup, seeds int, each func()) (*Series, error) {
	results := make([]*Result, seeds)
	err := parallel.Do(ctx, seeds, runtime.GOMAXPROCS(0), func(n int) (err error) {
		one := o
		one.Seed += uint64(n)
		if results[n], err = runUntil(ctx, one); err == nil && each != nil {
			each()
		}
		return err
	})
	if results = slices.DeleteFunc(results, func(r *Result) bool { return r == nil }); len(results) == 0 {
		return nil, err
	}
	return mean(results), err
}

// mean is over at least one result.
func mean(results []*Result) *Series {
	first := results[0]
	o, n := &first.Setup, float64(len(results))
	s := &Series{
		Scenario: o.Scenario, Strategy: o.Strategy.Name,
		RPS: o.RPS, Seeds: len(results), CPUs: first.CPUs, Bucket: o.Bucket,
		Rows:     make([]Row, len(first.Buckets)),
		Fine:     make([]float64, len(first.Fine)),
		Answered: make([]float64, len(first.Fine)),
	}
	for i := range s.Rows {
		s.Rows[i] = s.row(results, i)
	}
	for i := range s.Answered {
		var answered average
		for _, r := range results {
			answered.add(Share(r.OK[i], r.Ended[i]))
		}
		s.Answered[i] = answered.value()
	}
	for _, r := range results {
		for i, completed := range r.Fine {
			s.Fine[i] += s.percent(completed, i, FineBucket) / n
		}
		s.Requests += float64(r.Total.Completed) / n
		s.Success += Share(r.Total.Succeeded, r.Total.Ended) / n
	}
	return s
}

// row is the mean of the buckets i.
func (s *Series) row(results []*Result, i int) Row {
	r := Row{T: time.Duration(i) * s.Bucket}
	load := func(n int) float64 { return s.percent(n, i, s.Bucket) }
	ms := func(b *Bucket, d time.Duration) float64 {
		if b.Ended == 0 {
			return math.NaN()
		}
		return d.Seconds() * 1000
	}
	var squares float64
	for _, f := range []struct {
		into *float64
		of   func(b *Bucket) float64
	}{
		{&r.Amplification, func(b *Bucket) float64 { return load(b.Completed) }},
		{&squares, func(b *Bucket) float64 { return load(b.Completed) * load(b.Completed) }},
		{&r.Offered, func(b *Bucket) float64 { return load(b.Offered) }},
		{&r.FirstOK, func(b *Bucket) float64 { return load(b.FirstOK) }},
		{&r.FirstFailed, func(b *Bucket) float64 { return load(b.First - b.FirstOK) }},
		{&r.RetryOK, func(b *Bucket) float64 { return load(b.RetryOK) }},
		{&r.RetryFailed, func(b *Bucket) float64 { return load(b.Completed - b.First - b.RetryOK) }},
		{&r.ServerOK, func(b *Bucket) float64 { return Share(b.OK, b.Completed) }},
		{&r.ClientDone, func(b *Bucket) float64 { return load(b.Ended) }},
		{&r.ClientOK, func(b *Bucket) float64 { return Share(b.Succeeded, b.Ended) }},
		{&r.Unmet, func(b *Bucket) float64 { return float64(b.Unmet) }},
		{&r.P50, func(b *Bucket) float64 { return ms(b, b.P50) }},
		{&r.P99, func(b *Bucket) float64 { return ms(b, b.P99) }},
		{&r.QueueAvg, func(b *Bucket) float64 { return Share(b.QueueSum, b.Completed) / 100 }},
		{&r.QueueMax, func(b *Bucket) float64 { return float64(b.QueueMax) }},
		{&r.Refused, func(b *Bucket) float64 { return load(b.Refused) }},
		{&r.UnderWay, func(b *Bucket) float64 { return float64(b.UnderWay) / float64(s.width(i, s.Bucket)) }},
		{&r.Rate, func(b *Bucket) float64 { return float64(b.Ended) / s.width(i, s.Bucket).Seconds() }},
		{&r.InSystem, func(b *Bucket) float64 {
			if b.Ended == 0 {
				return math.NaN()
			}
			return float64(b.InSystem) / float64(b.Ended) / 1e6
		}},
		{&r.CPU, func(b *Bucket) float64 { return 100 * b.CPU }},
	} {
		var a average
		for _, one := range results {
			a.add(f.of(&one.Buckets[i]))
		}
		*f.into = a.value()
	}
	r.AmplificationSD = math.Sqrt(max(0, squares-float64(r.Amplification*r.Amplification)))
	return r
}

// percent is n in percent of the normal load in the i-th of buckets of a width.
func (s *Series) percent(n, i int, width time.Duration) float64 {
	return 100 * float64(n) / (float64(s.RPS) * s.width(i, width).Seconds())
}

// width is the length of the i-th of buckets of a width; the last may be shorter.
func (s *Series) width(i int, width time.Duration) time.Duration {
	return min(width, s.Scenario.Length-time.Duration(i)*width)
}

// Little is what Little's law says of the calls under way: the rate at which calls end times the time
// that they have been in the system, L = lambda W (John D. C. Little, "A Proof for the Queuing Formula",
// Operations Research 9, 1961). It is as many as [Row.UnderWay] while what comes and goes is the same, and NaN if no call ended.
func (r *Row) Little() float64 { return r.Rate * r.InSystem / 1000 }

// Share returns n in percent of all, NaN if there is none.
func Share(n, all int) float64 {
	if all == 0 {
		return math.NaN()
	}
	return 100 * float64(n) / float64(all)
}

// average is a mean of what is defined.
type average struct {
	sum float64
	n   int
}

func (a *average) add(x float64) {
	if x == x {
		a.sum += float64(x) // x may be a product, which must be rounded first: see exponential
		a.n++
	}
}

func (a *average) value() float64 {
	if a.n == 0 {
		return math.NaN()
	}
	return a.sum / float64(a.n)
}
