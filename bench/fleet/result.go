package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Bin is the length of a step of the series.
const Bin = 100 * time.Millisecond

// Result is what came of one run. Times are counted from the server's (last)
// return; one that was not reached while the run was watched is [Never].
type Result struct {
	N           int
	Watch       time.Duration // how long the run was watched, from the loss
	Ideal       time.Duration // N/C
	T50, T99    time.Duration // when so many percent, rounded up, were up at once
	T100        time.Duration
	Up          int     // at the end
	Peak        int     // the most dials in one Bin
	PeakAgain   int     // the same after a second death of the server; 0: there was none
	Dials       float64 // per client, in all
	SYNs        float64 // per client; more than Dials if some were dropped
	Refused     float64 // dials per client that were refused or answered 503, while the server was away or full
	Wasted      float64 // handshakes per client that the server completed for nobody
	DialsPerBin []int32 // from the loss on
	UpPerBin    []int32 // at the end of each Bin
}

// Never is a time that was not reached.
const Never = time.Duration(-1)

// Seconds returns a time of a Result or Summary as text, such as "19.80", or "not
// within 14m0s" if it is [Never] and the run was watched for that long.
func Seconds(d, watch time.Duration, digits int) string {
	if d == Never {
		return NotWithin(watch)
	}
	return fmt.Sprintf("%.*f", digits, d.Seconds())
}

// NotWithin says that something did not happen while it was watched. Parts of a
// second are left out.
func NotWithin(watch time.Duration) string {
	if watch >= time.Second {
		watch = watch.Truncate(time.Second)
	}
	return fmt.Sprintf("not within %v", watch)
}

// Recovered reports whether all were up at the end.
func (r *Result) Recovered() bool { return r.Up == r.N }

// tally counts what happens in a run.
type tally struct {
	n        int
	back     int64 // when the server is back
	now      int   // up now
	reached  [3]time.Duration
	syns     int64
	refused  int64
	wasted   int64
	died2    int // the Bin of the second death
	dialBins []int32
	upBins   []int32 // changes
}

func newTally(n int, watch time.Duration) tally {
	bins := int((watch + Bin - 1) / Bin)
	return tally{n: n, now: n, dialBins: make([]int32, bins), upBins: make([]int32, bins)}
}

// died starts the count of those who are up anew.
func (t *tally) died(now, back int64) {
	t.back, t.reached = back, [3]time.Duration{Never, Never, Never}
	t.died2 = int(now / int64(Bin))
}

// ups notes that by more sessions are up.
func (t *tally) ups(now int64, by int) {
	t.now += by
	t.upBins[now/int64(Bin)] += int32(by)
	for i, share := range [...]int{50, 99, 100} {
		if by > 0 && t.reached[i] == Never && t.now >= (share*t.n+99)/100 {
			t.reached[i] = time.Duration(now - t.back)
		}
	}
}

func (t *tally) dialled(now int64) { t.dialBins[now/int64(Bin)]++ }

func (r *run) result() *Result {
	t := &r.tally
	used := len(t.dialBins)
	for used > 0 && t.dialBins[used-1] == 0 && t.upBins[used-1] == 0 {
		used--
	}
	res := &Result{
		N: r.N, Watch: r.Watch, Ideal: r.Ideal(), T50: t.reached[0], T99: t.reached[1], T100: t.reached[2], Up: r.up,
		SYNs: t.per(t.syns), Refused: t.per(t.refused), Wasted: t.per(t.wasted),
		DialsPerBin: t.dialBins[:used], UpPerBin: t.upBins[:used],
	}
	dials, up := int64(0), int32(r.N)
	for i, n := range res.DialsPerBin {
		dials += int64(n)
		up += res.UpPerBin[i]
		res.UpPerBin[i] = up
	}
	res.Dials = t.per(dials)
	res.Peak = int(slices.Max(append(res.DialsPerBin, 0)))
	if t.died2 > 0 {
		res.PeakAgain = int(slices.Max(append(res.DialsPerBin[t.died2:], 0)))
	}
	return res
}

func (t *tally) per(n int64) float64 { return float64(n) / float64(t.n) }
