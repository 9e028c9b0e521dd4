package storm

import "time"

// Result is what a run has shown.
type Result struct {
	Options   Options       // with its defaults
	Seconds   []Second      // from the start on
	Recovered bool          // within the watch, see Back
	Back      time.Duration // from when the server goes on until at least 95 % of the requests that end succeed, for half a minute on end
	Everyone  time.Duration // from then until the last client that had failed has succeeded; what it is if not AllServed counts only those that have
	AllServed bool          // no client is left that failed and has not succeeded since
	Backlog   int           // requests that the server has at the instant at which it goes on
	Peak      int           // the most at the end of a second
	Wasted    int           // requests that the server ended for clients that had left
	Lost      int           // requests that never reached it: the backlog was full
	GaveUp    int           // times that a client's policy gave up; the client thinks then, as after a success
}

// Second is what happened in a second of virtual time.
type Second struct {
	Sent       int // requests
	OK         int // of them, or of earlier ones, ended with success
	TimedOut   int // clients gave up
	Concurrent int // requests at the server at the end of it, the backlog included
}

const (
	wellShare = 0.95
	wellFor   = 30 // s

	// LeastWatch is how long a run must be watched at least, so that it can be seen to recover.
	LeastWatch = (wellFor + 1) * time.Second
)

// second returns the current one. Those that it follows have got their
// concurrency.
func (r *run) second() *Second {
	n := int(r.now / int64(time.Second))
	for len(r.seconds) <= n {
		if k := len(r.seconds); k > 0 {
			r.seconds[k-1].Concurrent = r.server.n() + len(r.server.backlog)
		}
		r.seconds = append(r.seconds, Second{})
	}
	return &r.seconds[n]
}

func (r *run) result() *Result {
	y := &r.total
	y.Options, y.Seconds = r.o, r.seconds
	if n := len(y.Seconds); n > 0 {
		y.Seconds[n-1].Concurrent = r.server.n() + len(r.server.backlog)
	}
	y.AllServed = true
	for i := range r.clients {
		y.AllServed = y.AllServed && !r.clients[i].arrears
	}
	for _, s := range y.Seconds {
		y.Peak = max(y.Peak, s.Concurrent)
	}
	from := int((r.resume + int64(time.Second) - 1) / int64(time.Second))
	if first, ok := wellSince(y.Seconds[min(from, len(y.Seconds)):]); ok {
		y.Recovered = true
		y.Back = max(0, time.Duration(from+first)*time.Second-time.Duration(r.resume))
	}
	return y
}

// wellSince returns the number of the second from which on things went well for
// long enough.
func wellSince(seconds []Second) (first int, ok bool) {
	var good, ended int
	for i, s := range seconds {
		good, ended = good+s.OK, ended+s.OK+s.TimedOut
		if i >= wellFor {
			old := seconds[i-wellFor]
			good, ended = good-old.OK, ended-old.OK-old.TimedOut
		}
		if i >= wellFor-1 && good > 0 && float64(good) >= wellShare*float64(ended) {
			return i - wellFor + 1, true
		}
	}
	return 0, false
}
