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
	Ended   []int    // calls that ended per FineBucket
	OK      []int    // of those, with success
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
	First     int           // of those that were completed, first tries; the others are retries
	FirstOK   int           // first tries that succeeded while their caller still waited for them
	RetryOK   int           // retries that succeeded while their caller still waited for them
	Ended     int           // calls that ended
	Succeeded int           // of those, with success
	Unmet     int           // calls that had arrived and not ended at the end of it: on their way, waiting to retry or for a permit
	P50, P99  time.Duration // from its first request to the end of a call that ended in it; 0 without one
	UnderWay  int64         // the time in ns that calls spent under way in it, from their arrival to their end, summed up over all calls: see [Row.UnderWay]
	InSystem  int64         // the time in ns from the arrival of the calls that ended in it to their end, summed up
	Refused   int           // requests that the server refused at its door; see Strategy.Concurrency
	QueueSum  int           // requests that Completed left behind them in the server's queue when their service began, summed up
	QueueMax  int           // the most that one of them left
	CPU       float64       // share of the CPUs' time that was busy
}

// meter fills the buckets.
type meter struct {
	length, width int64 // ns
	buckets       []Bucket
	fine          []int
	ended, ok     []int
	took          [][]int64 // ns; of the calls that ended, per bucket
	after         Bucket    // what happens after the length

	under int   // calls that have arrived and not ended
	noted int64 // ns; UnderWay is complete up to here

	until int64     // ns; busy is complete up to here
	busy  []float64 // ns x CPUs, per bucket
}

func newMeter(length, width time.Duration) meter {
	n, fine := int((length+width-1)/width), (length+FineBucket-1)/FineBucket
	return meter{
		length:  int64(length),
		width:   int64(width),
		buckets: make([]Bucket, n),
		fine:    make([]int, fine),
		ended:   make([]int, fine),
		ok:      make([]int, fine),
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

// ending is how a request ended at the server.
type ending struct {
	ok      bool // it succeeded
	first   bool // it was the first try of its call
	awaited bool // its caller had not given it up
	left    int  // requests in the queue when its service began
}

// complete notes the end of a request at the server.
func (m *meter) complete(now int64, e ending) {
	b := m.at(now)
	b.Completed++
	if e.ok {
		b.OK++
	}
	if e.first {
		b.First++
	}
	if e.ok && e.awaited {
		if e.first {
			b.FirstOK++
		} else {
			b.RetryOK++
		}
	}
	b.QueueSum += e.left
	b.QueueMax = max(b.QueueMax, e.left)
	if now < m.length {
		m.fine[now/int64(FineBucket)]++
	}
}

// arrive notes the arrival of a call.
func (m *meter) arrive(now int64) {
	m.note(now)
	m.under++
	m.at(now).Arrived++
}

// note notes the time that calls have been under way since it was called last.
func (m *meter) note(now int64) {
	for m.noted < now {
		until := now
		if m.noted < m.length {
			until = min(now, (m.noted/m.width+1)*m.width, m.length)
		}
		m.at(m.noted).UnderWay += (until - m.noted) * int64(m.under)
		m.noted = until
	}
}

// end notes the end of a call that has taken so long since its first request, and so long since
// it arrived.
func (m *meter) end(now int64, ok bool, took, inSystem int64) {
	m.note(now)
	m.under--
	b := m.at(now)
	b.Ended++
	b.InSystem += inSystem
	if ok {
		b.Succeeded++
	}
	if now < m.length {
		n := now / m.width
		m.took[n] = append(m.took[n], took)
		m.ended[now/int64(FineBucket)]++
		if ok {
			m.ok[now/int64(FineBucket)]++
		}
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
	return &Result{Setup: *o, CPUs: cpus, Buckets: m.buckets, Fine: m.fine, Ended: m.ended, OK: m.ok, Total: total}
}

// add adds what can be added.
func (b *Bucket) add(c *Bucket) {
	b.Arrived += c.Arrived
	b.Offered += c.Offered
	b.Completed += c.Completed
	b.OK += c.OK
	b.First += c.First
	b.FirstOK += c.FirstOK
	b.RetryOK += c.RetryOK
	b.Ended += c.Ended
	b.Succeeded += c.Succeeded
	b.UnderWay += c.UnderWay
	b.InSystem += c.InSystem
	b.Refused += c.Refused
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
