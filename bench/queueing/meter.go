package queueing

import (
	"slices"
	"time"
)

// Result is what one run has shown.
type Result struct {
	Setup   Setup
	CPUs    int
	Buckets []Bucket // from the start on; what happens after the scenario's length is in Total alone
	Fine    []int    // completed requests per [FineBucket]
	Total   Bucket   // of the whole run: what can be added of all that happened
}

// FineBucket is the length of the buckets of Result.Fine: the article's charts
// have it.
const FineBucket = 20 * time.Millisecond

// Bucket is what happened in a part of the virtual time.
type Bucket struct {
	Arrived   int           // calls that arrived
	Offered   int           // requests sent
	Completed int           // requests that the server ended, with whatever outcome
	OK        int           // of those, with success
	Ended     int           // calls that ended
	Succeeded int           // of those, with success
	Unmet     int           // calls that had arrived and not ended at the end of it: on their way, waiting to retry or for a permit
	P50, P99  time.Duration // from its first request to the end of a call that ended in it; 0 without one
	QueueSum  int           // requests that Completed left behind them in the server's queue when their service began, summed up
	QueueMax  int           // the most that one of them left
	CPU       float64       // share of the CPUs' time that was busy
}

// meter fills the buckets.
type meter struct {
	length, width int64 // ns
	buckets       []Bucket
	fine          []int
	took          [][]int64 // ns; of the calls that ended, per bucket
	after         Bucket    // what happens after the length

	until int64     // ns; busy is complete up to here
	busy  []float64 // ns x CPUs, per bucket
}

func newMeter(length, width time.Duration) meter {
	n := int((length + width - 1) / width)
	return meter{
		length:  int64(length),
		width:   int64(width),
		buckets: make([]Bucket, n),
		fine:    make([]int, (length+FineBucket-1)/FineBucket),
		took:    make([][]int64, n),
		busy:    make([]float64, n),
	}
}

// at returns the bucket of a time in ns.
func (m *meter) at(now int64) *Bucket {
	if now >= m.length {
		return &m.after
	}
	return &m.buckets[now/m.width]
}

// complete notes the end of a request that left so many in the queue.
func (m *meter) complete(now int64, ok bool, left int) {
	b := m.at(now)
	b.Completed++
	if ok {
		b.OK++
	}
	b.QueueSum += left
	b.QueueMax = max(b.QueueMax, left)
	if now < m.length {
		m.fine[now/int64(FineBucket)]++
	}
}

// end notes the end of a call.
func (m *meter) end(now int64, ok bool, took int64) {
	b := m.at(now)
	b.Ended++
	if ok {
		b.Succeeded++
	}
	if now < m.length {
		n := now / m.width
		m.took[n] = append(m.took[n], took)
	}
}

// work notes that so many CPUs were busy since it was called last.
func (m *meter) work(now int64, busy int) {
	for m.until < min(now, m.length) {
		n := m.until / m.width
		until := min(now, (n+1)*m.width, m.length)
		m.busy[n] += float64(float64(until-m.until) * float64(busy))
		m.until = until
	}
}

// result closes the books.
func (m *meter) result(o *Setup, cpus int) *Result {
	total, unmet := Bucket{}, 0
	for n := range m.buckets {
		b := &m.buckets[n]
		width := float64(min(m.width, m.length-int64(n)*m.width))
		b.CPU = m.busy[n] / width / float64(cpus)
		b.P50, b.P99 = quantiles(m.took[n])
		unmet += b.Arrived - b.Ended
		b.Unmet = unmet
		total.add(b)
	}
	total.add(&m.after)
	return &Result{Setup: *o, CPUs: cpus, Buckets: m.buckets, Fine: m.fine, Total: total}
}

// add adds what can be added.
func (b *Bucket) add(c *Bucket) {
	b.Arrived += c.Arrived
	b.Offered += c.Offered
	b.Completed += c.Completed
	b.OK += c.OK
	b.Ended += c.Ended
	b.Succeeded += c.Succeeded
	b.QueueSum += c.QueueSum
	b.QueueMax = max(b.QueueMax, c.QueueMax)
}

// quantiles returns the median and the 99th percentile: of n values in order
// those numbered n/2 and 99 n/100 from 0, as in the calibration series.
func quantiles(took []int64) (p50, p99 time.Duration) {
	n := len(took)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return time.Duration(took[n/2]), time.Duration(took[99*n/100])
}
