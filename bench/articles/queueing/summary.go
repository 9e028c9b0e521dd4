package queueing

import (
	"math"
	"time"
)

// Summary is what a [Series] comes to, in the terms of the article. What no row defines is
// NaN.
type Summary struct {
	Load    float64       // mean of the completions in the failure, in percent of the normal load
	Peak    float64       // the largest in a [FineBucket], in percent
	Offered float64       // the largest of what was sent in a row, in percent
	Back    time.Duration // begin of the first FineBucket since the end of the failure from which on the load stays at or below 115 % while calls arrive
	IsBack  bool          // there is one
	Success float64       // percent of the calls that ended in the failure

	SuccessBack   time.Duration // the same as Back for the errors: from there on at least 95 % of the calls that end succeed
	SuccessIsBack bool          // there is one
	Up            float64       // percent of the FineBuckets, until the last in which a call ended, in which at least 95 % of the calls that ended succeeded
	ServerUp      float64       // percent of the completions in the scenario's length that the server ended with success, awaited or not
	P50, P99      float64       // ms; the largest of a row, see [Bucket]
	Queue         float64       // requests; the largest QueueMax of a row
}

// Summary sums s up.
func (s *Series) Summary() Summary {
	y := Summary{P50: math.NaN(), P99: math.NaN()}
	f := &s.Scenario.Failure
	y.Back, y.IsBack = Since(f.To, FineBucket, s.Fine, IsBack)
	y.SuccessBack, y.SuccessIsBack = Since(f.To, FineBucket, s.Answered, IsUp)
	y.Up = s.up()
	for _, load := range s.Fine {
		y.Peak = max(y.Peak, load)
	}
	var load, ended, succeeded, completed, ok average
	for i := range s.Rows {
		r := &s.Rows[i]
		y.Offered = max(y.Offered, r.Offered)
		y.Queue = max(y.Queue, r.QueueMax)
		if r.ClientDone > 0 {
			y.P50, y.P99 = larger(y.P50, r.P50), larger(y.P99, r.P99)
		}
		if r.Amplification > 0 {
			completed.add(r.Amplification)
			ok.add(r.Amplification * r.ServerOK / 100)
		}
		if r.T < f.From || r.T >= f.To {
			continue
		}
		load.add(r.Amplification)
		if r.ClientDone > 0 {
			ended.add(r.ClientDone)
			succeeded.add(r.ClientDone * r.ClientOK / 100)
		}
	}
	y.Load = load.value()
	y.Success = 100 * succeeded.value() / ended.value()
	y.ServerUp = 100 * ok.value() / completed.value()
	return y
}

// Since returns the begin of the first bucket, of those that are so wide, at or after a time from
// which on all buckets are well, and false if there is none. A bucket that is not defined changes
// nothing.
func Since(after, wide time.Duration, buckets []float64, well func(float64) bool) (at time.Duration, ok bool) {
	for i, x := range buckets {
		from := time.Duration(i) * wide
		switch {
		case math.IsNaN(x):
		case from < after || !well(x):
			ok = false
		case !ok:
			at, ok = from, true
		}
	}
	return at, ok
}

// IsBack reports whether a load, in percent of the normal one, is as before the failure.
func IsBack(load float64) bool { return load <= 115 }

// IsUp reports whether a service is up of whose calls so many percent succeed.
func IsUp(success float64) bool { return success >= 95 }

// up returns the percentage of buckets in which s was up, of those until the last in which
// a call ended.
func (s *Series) up() float64 {
	n, all := 0, 0
	for i, x := range s.Answered {
		if !math.IsNaN(x) {
			all = i + 1
		}
		if IsUp(x) {
			n++
		}
	}
	return Share(n, all)
}

// larger returns the larger of two numbers of which each may be undefined.
func larger(a, b float64) float64 {
	if a >= b || b != b {
		return a
	}
	return b
}
