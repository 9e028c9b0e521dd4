package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
	"github.com/redial-go/redial/bench/internal/table"
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

// Average is the [Summary] of [Runs].
func Average(ctx context.Context, h Herd, runs, workers int, each func()) (Summary, error) {
	results, err := Runs(ctx, h, runs, workers, each)
	if err != nil {
		return Summary{}, err
	}
	return Summarize(results), nil
}

// Runs runs h with the seeds h.Seed, h.Seed+1, ..., so many at a time. Only the first result has its
// series, DialsPerBin and UpPerBin. What Runs returns does not depend on workers. It calls each after each
// run, several at a time; nil is allowed. When ctx ends it returns the cause of ctx, and the first of the
// results as far as there are some.
func Runs(ctx context.Context, h Herd, runs, workers int, each func()) ([]*Result, error) {
	results := make([]*Result, runs)
	err := parallel.Do(ctx, runs, workers, func(i int) (err error) {
		one := h
		one.Seed += uint64(i)
		if results[i], err = Run(ctx, one); err != nil {
			return err
		}
		if i > 0 {
			results[i].DialsPerBin, results[i].UpPerBin = nil, nil
		}
		if each != nil {
			each()
		}
		return nil
	})
	if missing := slices.Index(results, nil); missing >= 0 {
		results = results[:missing]
	}
	return results, err
}

// Summarize returns what came of runs that differ in their seed alone.
func Summarize(results []*Result) Summary {
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
	mean := func(of func(r *Result) time.Duration) time.Duration {
		var all []time.Duration
		for _, r := range results {
			all = append(all, of(r))
		}
		return Mean(all)
	}
	s.T50 = mean(func(r *Result) time.Duration { return r.T50 })
	s.T99 = mean(func(r *Result) time.Duration { return r.T99 })
	s.T100 = mean(func(r *Result) time.Duration { return r.T100 })
	SortTimes(last)
	if len(last) > 0 {
		s.Median = last[len(last)/2]
	}
	return s
}

// Ratio returns T99 over Ideal as text, or "not within 14m0s" if it was not reached in that time.
func (s *Summary) Ratio() string {
	if s.T99 == Never {
		return NotWithin(s.Watch)
	}
	return fmt.Sprintf("%.2f", s.T99.Seconds()/s.Ideal.Seconds())
}

// Table returns a table with a row for the runs of each client. Its times are in seconds.
func Table(clients []Client, rows []Summary) table.Table {
	t := table.Table{{"client", "recovered", "ideal_s", "t50_s", "t99_s", "t100_s", "t99_over_ideal", "peak_per_100ms", "dials_per_client", "syns_per_client", "refused_per_client", "wasted_per_client", "up_at_end"}}
	for i, s := range rows {
		row := []string{clients[i].Name, fmt.Sprintf("%d/%d", s.Recovered, s.Runs), fmt.Sprintf("%.2f", s.Ideal.Seconds())}
		for _, d := range []time.Duration{s.T50, s.T99, s.T100} {
			row = append(row, Seconds(d, s.Watch, 2))
		}
		row = append(row, s.Ratio(), fmt.Sprintf("%.0f", s.Peak))
		for _, x := range []float64{s.Dials, s.SYNs, s.Refused, s.Wasted} {
			row = append(row, fmt.Sprintf("%.2f", x))
		}
		t.Row(append(row, fmt.Sprintf("%.0f", s.Up))...)
	}
	return t
}
