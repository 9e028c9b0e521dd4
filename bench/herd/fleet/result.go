package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Bin is the length of a step of the series.
const Bin = 100 * time.Millisecond

// Result is the outcome of one run. Times are counted from the server's (last)
// return; one that was not reached while the run was watched is [Never].
type Result struct {
	N           int
	Watch       time.Duration // how long the run was watched, from the loss
	Ideal       time.Duration // N/C
	T50, T99    time.Duration // when so many percent, rounded up, were up at once; with Leaves: when so many were back
	T100        time.Duration
	Up          int               // at the end
	Peak        int               // the most dials in one Bin
	PeakAgain   int               // the same after a second death of the server; 0: there was none
	Dials       float64           // per client, in all
	SYNs        float64           // per client; more than Dials if some were dropped
	Refused     float64           // dials per client that were refused, or answered 503 or 401, while the server was away or full
	Wasted      float64           // handshakes per client that the server completed in vain
	DialsPerBin []int32           // from the loss on
	UpPerBin    []int32           // at the end of each Bin
	Late        []time.Duration   // of each client, sorted: how long after the return it was back; Never is last
	Away        []time.Duration   // of each client, sorted: for how long it was away in all
	UpShare     float64           // of the time until the server's last return
	DialRate    float64           // dials per client and second until then
	Groups      [][]time.Duration // Late, of each of the groups
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

// NotWithin returns the text for what did not happen while it was watched. Parts of a
// second are left out.
func NotWithin(watch time.Duration) string {
	if watch >= time.Second {
		watch = watch.Truncate(time.Second)
	}
	return fmt.Sprintf("not within %v", watch)
}

// Recovered reports whether all were up at the end.
func (r *Result) Recovered() bool { return r.Up == r.N }

// counter counts what happens in a run.
type counter struct {
	n        int
	returned int64 // when the server is back
	now      int   // up now
	reached  [3]time.Duration
	syns     int64
	refused  int64
	wasted   int64
	died2    int // the Bin of the second death
	dialBins []int32
	upBins   []int32 // changes

	lastReturn int64
	settled    bool
	upShare    float64
	dialRate   float64
	dialCount  int64
	backAt     []int64 // of each client, last; -1: never
	awayFor    []int64
}

func newCounter(n int, watch time.Duration) counter {
	bins := int((watch + Bin - 1) / Bin)
	c := counter{n: n, now: n, dialBins: make([]int32, bins), upBins: make([]int32, bins), backAt: make([]int64, n), awayFor: make([]int64, n)}
	c.reached = [3]time.Duration{Never, Never, Never}
	return c
}

// died starts the count of connections that are up anew.
func (c *counter) died(now, back int64) {
	c.returned, c.reached = back, [3]time.Duration{Never, Never, Never}
	c.died2 = int(now / int64(Bin))
}

// ups notes that by more sessions are up.
func (c *counter) ups(now int64, by int) {
	c.now += by
	c.upBins[now/int64(Bin)] += int32(by)
	for i, share := range [...]int{50, 99, 100} {
		if by > 0 && c.reached[i] == Never && c.now >= (share*c.n+99)/100 {
			c.reached[i] = time.Duration(max(now-c.returned, 0)) // another server was there before
		}
	}
}

func (c *counter) dialed(now int64) { c.dialBins[now/int64(Bin)]++; c.dialCount++ }

// settle notes the figures of the time until the last return.
func (r *run) settle(now int64) {
	r.settled = true
	if now == 0 { // there is no such time
		return
	}
	away := float64(0)
	for i := range r.clients {
		a := r.awayFor[i]
		if c := &r.clients[i]; c.state != connected {
			a += now - c.since
		}
		away += float64(a)
	}
	r.upShare = 1 - away/float64(now)/float64(r.n)
	r.dialRate = float64(r.dialCount) / float64(r.n) / (float64(now) / 1e9)
}

func (r *run) result() *Result {
	t := &r.counter
	used := len(t.dialBins)
	for used > 0 && t.dialBins[used-1] == 0 && t.upBins[used-1] == 0 {
		used--
	}
	res := &Result{
		N: r.N, Watch: r.Watch, Ideal: r.Ideal(), T50: t.reached[0], T99: t.reached[1], T100: t.reached[2], Up: t.now,
		SYNs: t.per(t.syns), Refused: t.per(t.refused), Wasted: t.per(t.wasted),
		DialsPerBin: t.dialBins[:used], UpPerBin: t.upBins[:used],
	}
	res.UpShare, res.DialRate = r.upShare, r.dialRate
	res.Groups = make([][]time.Duration, len(r.Groups))
	for i := range r.clients {
		c := &r.clients[i]
		late := Never
		away := time.Duration(t.awayFor[i])
		if c.state == connected {
			late = max(time.Duration(t.backAt[i]-t.returned), 0)
		} else {
			away = Never
		}
		res.Late = append(res.Late, late)
		res.Away = append(res.Away, away)
		res.Groups[c.group] = append(res.Groups[c.group], late)
	}
	SortTimes(res.Late)
	SortTimes(res.Away)
	if r.Leaves != nil { // most are up at any time
		res.T50, res.T99, res.T100 = Quantile(res.Late, 0.5), Quantile(res.Late, 0.99), Quantile(res.Late, 1)
	}
	for _, g := range res.Groups {
		SortTimes(g)
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

func (c *counter) per(n int64) float64 { return float64(n) / float64(c.n) }

// SortTimes sorts with Never as the greatest.
func SortTimes(s []time.Duration) {
	slices.SortFunc(s, func(a, b time.Duration) int { return cmp.Compare(uint64(a), uint64(b)) })
}

// Quantile returns the time within which a share of s lie, which is sorted.
func Quantile(s []time.Duration, share float64) time.Duration {
	if len(s) == 0 {
		return Never
	}
	i := int(math.Ceil(share*float64(len(s)))) - 1
	return s[min(max(i, 0), len(s)-1)]
}

// Mean returns the mean of times, or [Never] if one of them is that or there are none.
func Mean(times []time.Duration) time.Duration {
	sum := float64(0)
	for _, d := range times {
		if d == Never {
			return Never
		}
		sum += float64(d)
	}
	if len(times) == 0 {
		return Never
	}
	return time.Duration(sum / float64(len(times)))
}
