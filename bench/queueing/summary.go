package queueing

import "time"

// Summary is what a [Series] comes to, in the terms of the article.
type Summary struct {
	Load    float64       // mean of the completions in the failure, in percent of the normal load
	Peak    float64       // the largest in a [FineBucket], in percent
	Offered float64       // the largest of what was sent in a row, in percent
	Back    time.Duration // begin of the first FineBucket since the end of the failure from which on the load stays at or below 115 % while calls arrive
	IsBack  bool          // there is one
	Success float64       // percent of the calls that ended in the failure; NaN if none did
}

// backAt is the load in percent at which things are as before.
const backAt = 115

// Summary sums s up.
func (s *Series) Summary() Summary {
	var y Summary
	f := &s.Scenario.Failure
	for i, load := range s.Fine {
		y.Peak = max(y.Peak, load)
		from := time.Duration(i) * FineBucket
		switch {
		case from < f.To || load > backAt:
			y.IsBack = false
		case !y.IsBack:
			y.Back, y.IsBack = from, true
		}
	}
	var load, ended, succeeded average
	for i := range s.Rows {
		r := &s.Rows[i]
		y.Offered = max(y.Offered, r.Offered)
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
	return y
}
