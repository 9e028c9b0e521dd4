package lab

import (
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// Summary is the medians of a client's runs, those that were cut left out.
type Summary struct {
	Client    string
	Runs      int
	Recovered int // of them
	N         int
	Watched   time.Duration // the longest of them, from the server's return
	Ideal     time.Duration // 0: unknown
	T50, T99  time.Duration // fleet.Never if half of the runs did not reach it
	T100      time.Duration
	Peak      float64
	PeakIn    float64
	Dials     float64
	Refused   float64
	TimedOut  float64
	Wasted    float64
	Down      float64       // connections that were not up at the end
	UpShare   float64       // of the time until the server's return
	AwayMean  time.Duration // for how long clients were away in all; fleet.Never if some were not back in half of the runs
	AwayP99   time.Duration
	AwayMost  time.Duration
	Local     int // in all runs together
}

// Ratio is T99 over Ideal: +Inf if it was not reached, NaN if Ideal is unknown.
func (s *Summary) Ratio() float64 {
	switch {
	case s.Ideal <= 0:
		return math.NaN()
	case s.T99 == fleet.Never:
		return math.Inf(1)
	}
	return float64(s.T99) / float64(s.Ideal)
}

// Summarise returns a Summary per client, in the order in which they first occur.
func Summarise(results []*Result) []Summary {
	var names []string
	of := make(map[string][]*Result)
	for _, r := range results {
		if r.Cut {
			continue
		}
		if of[r.Client] == nil {
			names = append(names, r.Client)
		}
		of[r.Client] = append(of[r.Client], r)
	}
	var all []Summary
	for _, name := range names {
		all = append(all, summarise(of[name]))
	}
	return all
}

func summarise(runs []*Result) Summary {
	middle := func(of func(*Result) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, of(r))
		}
		return median(all)
	}
	moment := func(of func(*Result) time.Duration) time.Duration {
		m := middle(func(r *Result) float64 {
			if of(r) == fleet.Never {
				return math.Inf(1)
			}
			return float64(of(r))
		})
		if math.IsInf(m, 1) {
			return fleet.Never
		}
		return time.Duration(m)
	}
	s := Summary{
		Client: runs[0].Client, Runs: len(runs), N: runs[0].N, Ideal: runs[0].Ideal,
		T50:      moment(func(r *Result) time.Duration { return r.T50 }),
		T99:      moment(func(r *Result) time.Duration { return r.T99 }),
		T100:     moment(func(r *Result) time.Duration { return r.T100 }),
		Peak:     middle(func(r *Result) float64 { return float64(r.Peak) }),
		PeakIn:   middle(func(r *Result) float64 { return float64(r.PeakIn) }),
		Dials:    middle(func(r *Result) float64 { return r.Dials }),
		Refused:  middle(func(r *Result) float64 { return r.Refused }),
		TimedOut: middle(func(r *Result) float64 { return r.TimedOut }),
		Wasted:   middle(func(r *Result) float64 { return r.Wasted }),
		Down:     middle(func(r *Result) float64 { return float64(r.N - r.Up) }),
		UpShare:  middle(func(r *Result) float64 { return r.UpShare }),
		AwayMean: moment(func(r *Result) time.Duration { return fleet.Mean(r.Away) }),
		AwayP99:  moment(func(r *Result) time.Duration { return fleet.Quantile(r.Away, 0.99) }),
		AwayMost: moment(func(r *Result) time.Duration { return fleet.Quantile(r.Away, 1) }),
	}
	for _, r := range runs {
		s.Watched = max(s.Watched, r.Watched)
		s.Local += r.Local
		if r.Recovered() {
			s.Recovered++
		}
	}
	return s
}

// median is the middle of all, or the mean of the two that are; at least one is
// needed.
func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
