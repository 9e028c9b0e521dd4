package queueing

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"
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
}

// Collect runs a strategy with the seeds o.Seed, o.Seed+1, ... on all processors, and
// returns the mean. When ctx ends first it is the mean of the seeds that are
// done, with the context's cause. Each is called after each run, one at a time; nil
// is allowed.
func Collect(ctx context.Context, o Setup, seeds int, each func()) (*Series, error) {
	results, err := runs(ctx, o, seeds, each)
	var done []*Result
	for _, r := range results {
		if r != nil {
			done = append(done, r)
		}
	}
	if len(done) == 0 {
		return nil, err
	}
	return mean(done), err
}

// runs returns one result per seed, nil for those that were not run.
func runs(ctx context.Context, o Setup, seeds int, each func()) ([]*Result, error) {
	var (
		results = make([]*Result, seeds)
		workers sync.WaitGroup
		mu      sync.Mutex // guards next and failed, and each
		next    int
		failed  error
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if next == seeds || failed != nil || ctx.Err() != nil {
			return -1
		}
		next++
		return next - 1
	}
	for range min(seeds, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for n := take(); n >= 0; n = take() {
				mine := o
				mine.Seed += uint64(n)
				r, err := Run(mine)
				mu.Lock()
				results[n] = r
				if err != nil {
					failed = err
				} else if each != nil {
					each()
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if failed == nil {
		failed = context.Cause(ctx)
	}
	return results, failed
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
			answered.add(share(r.OK[i], r.Ended[i]))
		}
		s.Answered[i] = answered.value()
	}
	for _, r := range results {
		for i, completed := range r.Fine {
			s.Fine[i] += s.percent(completed, i, FineBucket) / n
		}
		s.Requests += float64(r.Total.Completed) / n
		s.Success += share(r.Total.Succeeded, r.Total.Ended) / n
	}
	return s
}

// row is the mean of the buckets i.
func (s *Series) row(results []*Result, i int) Row {
	var firstOK, firstFailed, retryOK, retryFailed average
	var amplification, squares, offered, serverOK, done, clientOK, unmet, p50, p99, avg, most, cpu average
	for _, r := range results {
		b := &r.Buckets[i]
		load := s.percent(b.Completed, i, s.Bucket)
		amplification.add(load)
		squares.add(load * load)
		offered.add(s.percent(b.Offered, i, s.Bucket))
		firstOK.add(s.percent(b.FirstOK, i, s.Bucket))
		firstFailed.add(s.percent(b.First-b.FirstOK, i, s.Bucket))
		retryOK.add(s.percent(b.RetryOK, i, s.Bucket))
		retryFailed.add(s.percent(b.Completed-b.First-b.RetryOK, i, s.Bucket))
		serverOK.add(share(b.OK, b.Completed))
		done.add(s.percent(b.Ended, i, s.Bucket))
		clientOK.add(share(b.Succeeded, b.Ended))
		unmet.add(float64(b.Unmet))
		if b.Ended > 0 {
			p50.add(b.P50.Seconds() * 1000)
			p99.add(b.P99.Seconds() * 1000)
		}
		avg.add(share(b.QueueSum, b.Completed) / 100)
		most.add(float64(b.QueueMax))
		cpu.add(100 * b.CPU)
	}
	load := amplification.value()
	return Row{
		T:               time.Duration(i) * s.Bucket,
		Amplification:   load,
		AmplificationSD: math.Sqrt(max(0, squares.value()-float64(load*load))),
		Offered:         offered.value(),
		FirstOK:         firstOK.value(),
		FirstFailed:     firstFailed.value(),
		RetryOK:         retryOK.value(),
		RetryFailed:     retryFailed.value(),
		ServerOK:        serverOK.value(),
		ClientDone:      done.value(),
		ClientOK:        clientOK.value(),
		Unmet:           unmet.value(),
		P50:             p50.value(), P99: p99.value(),
		QueueAvg: avg.value(), QueueMax: most.value(),
		CPU: cpu.value(),
	}
}

// percent is n in percent of the normal load in the i-th of buckets of a width; the
// last may be shorter.
func (s *Series) percent(n, i int, width time.Duration) float64 {
	width = min(width, s.Scenario.Length-time.Duration(i)*width)
	return 100 * float64(n) / (float64(s.RPS) * width.Seconds())
}

// share is n in percent of all, NaN if there is none.
func share(n, all int) float64 {
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
