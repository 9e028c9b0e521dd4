package queueing

import (
	"math"
	"slices"
	"time"
)

// door refuses requests while a server holds as many as it should. The limit is a fixed number, or follows
// the time that requests take, as in the gradient controller of Envoy's adaptive concurrency filter
// (envoyproxy/envoy, gradient_controller.cc):
//
//   - each 100 ms the gradient is minRTT x 1.25 / the median of what requests took in it, but 0.5 to 2;
//   - the limit becomes gradient x limit + sqrt(gradient x limit), but 3 to 1,000. Here the 1,000 are for
//     10,000 calls per second, and in proportion for others;
//   - minRTT is the time that requests take without a queue. Envoy measures it each minute, and meanwhile
//     lets three requests pass at a time. A run is shorter than a minute: it begins after a measurement,
//     when few requests have come and the limit has risen to its maximum.
type door struct {
	limit    float64
	adaptive bool
	most     float64
	minRTT   float64 // ns
	next     int64   // ns; when the limit is set again
	took     []int64 // ns; since it was set last
}

const (
	updateEvery = 100 * ms
	bufferRTT   = 1.25
	leastLimit  = 3
)

// newDoor returns the door of a server for a strategy, nil if it has none.
func newDoor(y *Strategy, cpus, rps int, latency time.Duration) *door {
	switch most := max(leastLimit, float64(rps)/10); {
	case y.Adaptive:
		return &door{limit: most, adaptive: true, most: most, minRTT: float64(latency), next: int64(updateEvery)}
	case y.Concurrency > 0:
		return &door{limit: max(1, math.Floor(y.Concurrency*float64(cpus)))}
	}
	return nil
}

// admit reports whether a server that holds so many requests takes one more.
func (d *door) admit(now int64, held int) bool {
	d.update(now)
	return held < int(d.limit)
}

// sample notes how long a request was at the server that leaves it now.
func (d *door) sample(now, took int64) {
	if d.adaptive {
		d.update(now)
		d.took = append(d.took, took)
	}
}

// update sets the limit again if it is time to.
func (d *door) update(now int64) {
	if !d.adaptive || now < d.next {
		return
	}
	d.next = now - now%int64(updateEvery) + int64(updateEvery)
	if len(d.took) == 0 {
		return
	}
	slices.Sort(d.took)
	gradient := min(max(float64(d.minRTT*bufferRTT)/float64(d.took[len(d.took)/2]), 0.5), 2)
	limit := float64(d.limit * gradient)
	d.limit = math.Floor(min(max(limit+math.Sqrt(limit), leastLimit), d.most))
	d.took = d.took[:0]
}
