package subscription

import (
	"slices"
	"time"
)

// flow decides how many requests of a session are in flight, and which of them counts as not answered. As in
// TCP, an answer is missing only if the venue does not work: while it answers earlier requests, a later one
// waits. A flow has no clock and no lock. The Set's mu guards it.
type flow[K comparable] struct {
	patience *patience
	limit    int           // Options.InFlight
	window   int           // how many requests may be in flight: limit, or fewer after a missing answer
	made     uint64        // how many requests were made
	suspect  uint64        // number of the newest request that may be lost
	list     []*request[K] // in flight, in the order in which they expire
	late     []*request[K] // given up, the oldest first; their answers may still come
}

// patience is how long the answer to the oldest request may take. It belongs to a Set, so that the next session
// need not find it out again.
type patience struct {
	least time.Duration // Options.Timeout; zero or less means no limit
	now   time.Duration // at least least
}

// maxPatience is the longest time to which Options.Timeout grows.
const maxPatience = 5 * time.Minute

// maxLate is how many requests of a session are remembered whose answers may still come.
const maxLate = 64

// missed notes that an answer is missing.
func (p *patience) missed() { p.now = min(2*p.now, max(maxPatience, p.least)) }

// answered notes how long an answer took.
func (p *patience) answered(took time.Duration) {
	p.now = min(max(p.least, 2*took, p.now-p.now/8), max(maxPatience, p.least))
}

// newFlow returns the flow of a new session.
func newFlow[K comparable](p *patience, limit int) flow[K] {
	return flow[K]{patience: p, limit: limit, window: limit}
}

// hasRoom reports whether another request may be made. Those that may be lost take no room, but with them there
// are fewer than twice as many as the limit.
func (f *flow[K]) hasRoom() bool {
	n := 0
	for _, r := range f.list {
		if r.number > f.suspect {
			n++
		}
	}
	return n < f.window && len(f.list) < 2*f.limit-1
}

// add adds a new request. If its keys were requested before, without an answer, it is the next to expire.
func (f *flow[K]) add(r *request[K], again bool) {
	f.made++
	r.number = f.made
	f.supersede(r.Op, r.Keys)
	if again {
		f.list = slices.Insert(f.list, 0, r)
	} else {
		f.list = append(f.list, r)
	}
}

// supersede notes that the venue is to do, or has done, op for the keys after requests for the opposite. The
// answers to these say no more what is so.
func (f *flow[K]) supersede(op Op, keys []K) {
	for _, list := range [][]*request[K]{f.late, f.list} {
		for _, old := range list {
			if old.Op != op && !old.superseded {
				old.superseded = slices.ContainsFunc(old.Keys, func(k K) bool { return slices.Contains(keys, k) })
			}
		}
	}
}

// wrote notes that r was written.
func (f *flow[K]) wrote(r *request[K], now time.Time) {
	r.state, r.written, r.since = phaseWritten, now, now
}

// delay puts off every expiry, because no answer could be read for d.
func (f *flow[K]) delay(d time.Duration) {
	for _, r := range f.list {
		if r.state == phaseWritten {
			r.written, r.since = r.written.Add(d), r.since.Add(d)
		}
	}
}

// answered notes an answer to r, which may be late: to the whole of it, or to some keys.
func (f *flow[K]) answered(r *request[K], whole bool, now time.Time) {
	for _, other := range f.list {
		switch {
		case other.state != phaseWritten:
		case other.number >= r.number:
			other.since = now
		default:
			other.passed = true
		}
	}
	if !whole {
		return
	}
	f.window = min(f.window+1, f.limit)
	if r.state != phaseUnsent { // else the answer was faster than the return of the write
		f.patience.answered(now.Sub(r.written))
	}
}

// due returns when r expires, or the zero time if it does not now. Only the oldest request expires, or one that a
// later request has passed.
func (f *flow[K]) due(r *request[K]) time.Time {
	if r.state != phaseWritten || f.patience.least <= 0 {
		return time.Time{}
	}
	for _, first := range f.list {
		if first.state == phaseWritten {
			if first != r && !r.passed {
				return time.Time{}
			}
			break
		}
	}
	return r.since.Add(f.patience.now)
}

// next returns when the next request expires, or the zero time.
func (f *flow[K]) next() (at time.Time) {
	for _, r := range f.list {
		at = earlier(at, f.due(r))
	}
	return at
}

// expire gives up the first request that is due, and returns it, or nil if there is none. Its answer may still
// come.
func (f *flow[K]) expire(now time.Time) *request[K] {
	for _, r := range f.list {
		if due := f.due(r); !due.IsZero() && !now.Before(due) {
			f.forget(r)
			if f.late = append(f.late, r); len(f.late) > maxLate {
				f.late = slices.Delete(f.late, 0, 1)
			}
			return r
		}
	}
	return nil
}

// missed notes that the answer to r, which has expired, is missing. If no later request was answered, the venue
// does not work: the clocks of the others start again, and one request at a time goes out until there is an
// answer.
func (f *flow[K]) missed(r *request[K], now time.Time) {
	if r.passed {
		return
	}
	f.suspect, f.window = f.made, 1
	f.patience.missed()
	for _, other := range f.list {
		other.since = now
	}
}

// forget takes r out of the list.
func (f *flow[K]) forget(r *request[K]) {
	r.state = phaseSettled
	f.list = slices.DeleteFunc(f.list, func(other *request[K]) bool { return other == r })
}
