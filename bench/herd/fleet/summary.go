package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Summary is what came of runs that differ in their seed alone.
type Summary struct {
	Runs      int
	Recovered int           // runs at whose end all were up
	Watch     time.Duration // how long each was watched, from the loss
	Ideal     time.Duration // N/C
	T50, T99  time.Duration // means; Never if one run did not reach it
	T100      time.Duration
	Median    time.Duration // of T100, which for a lone client is when it is back; Never if half of the runs were never complete
	Peak      float64       // mean of the most dials in one Bin
	PeakAgain float64       // mean of the same after a second death of the server
	Dials     float64       // means per client
	SYNs      float64
	Refused   float64
	Wasted    float64
	Up        float64 // mean at the end
}

// Average is [AverageEach] without a word in between.
func Average(ctx context.Context, h Herd, runs, workers int) (Summary, error) {
	return AverageEach(ctx, h, runs, workers, func() {})
}

// AverageEach runs h with the seeds h.Seed, h.Seed+1, ..., on as many processors as
// workers says, and summarizes. What it returns does not depend on workers. Each is
// called after each run, several at a time. When ctx ends it returns the context's
// cause.
func AverageEach(ctx context.Context, h Herd, runs, workers int, each func()) (Summary, error) {
	results := make([]*Result, runs)
	errs := make([]error, runs)
	var group sync.WaitGroup
	for w := range min(max(workers, 1), runs) {
		group.Go(func() {
			for i := w; i < runs; i += max(workers, 1) {
				one := h
				one.Seed += uint64(i)
				results[i], errs[i] = Run(ctx, one)
				if results[i] != nil {
					results[i].DialsPerBin, results[i].UpPerBin = nil, nil
				}
				each()
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return Summary{}, err
		}
	}
	return summarize(results), nil
}

func summarize(results []*Result) Summary {
	s := Summary{Runs: len(results)}
	n := float64(len(results))
	var last []time.Duration
	for _, r := range results {
		s.Watch, s.Ideal = r.Watch, r.Ideal
		if r.Recovered() {
			s.Recovered++
		}
		s.Peak += float64(r.Peak) / n
		s.PeakAgain += float64(r.PeakAgain) / n
		s.Dials += r.Dials / n
		s.SYNs += r.SYNs / n
		s.Refused += r.Refused / n
		s.Wasted += r.Wasted / n
		s.Up += float64(r.Up) / n
		last = append(last, r.T100)
	}
	s.T50 = average(results, func(r *Result) time.Duration { return r.T50 })
	s.T99 = average(results, func(r *Result) time.Duration { return r.T99 })
	s.T100 = average(results, func(r *Result) time.Duration { return r.T100 })
	slices.SortFunc(last, func(a, b time.Duration) int { return cmp.Compare(uint64(a), uint64(b)) }) // Never is the greatest
	if len(last) > 0 {
		s.Median = last[len(last)/2]
	}
	return s
}

// average is the mean of a time that each run has reached, else Never.
func average(results []*Result, of func(*Result) time.Duration) time.Duration {
	var sum float64
	for _, r := range results {
		d := of(r)
		if d == Never {
			return Never
		}
		sum += float64(d)
	}
	return time.Duration(sum / float64(max(len(results), 1)))
}
