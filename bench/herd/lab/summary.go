package lab

import (
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// Rounds are the runs of one client.
type Rounds []*Result

// ByClient returns the runs of each client, in the order in which the clients first occur. Runs that
// were cut are left out.
func ByClient(results []*Result) (all []Rounds) {
	for _, r := range results {
		i := slices.IndexFunc(all, func(rounds Rounds) bool { return rounds[0].Client == r.Client })
		switch {
		case r.Cut:
		case i < 0:
			all = append(all, Rounds{r})
		default:
			all[i] = append(all[i], r)
		}
	}
	return all
}

// Median returns the median of a figure.
func (r Rounds) Median(of func(*Result) float64) float64 {
	figures := make([]float64, len(r))
	for i, one := range r {
		figures[i] = of(one)
	}
	return Median(figures)
}

// Moment returns the median of a time, [fleet.Never] if half of the runs did not reach it.
func (r Rounds) Moment(of func(*Result) time.Duration) time.Duration {
	m := r.Median(func(one *Result) float64 {
		if of(one) == fleet.Never {
			return math.Inf(1)
		}
		return float64(of(one))
	})
	if math.IsInf(m, 1) {
		return fleet.Never
	}
	return time.Duration(m)
}

// Watched is how long the longest of the runs was watched, from the server's return.
func (r Rounds) Watched() (longest time.Duration) {
	for _, one := range r {
		longest = max(longest, one.Watched)
	}
	return longest
}

// Recovered is how many of the runs have recovered.
func (r Rounds) Recovered() (n int) {
	for _, one := range r {
		if one.Recovered() {
			n++
		}
	}
	return n
}

// Median returns the middle of figures, and of an even number the mean of the two in the middle.
func Median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
