package storm

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
)

// Server is how long requests take: Base while there are up to Limit of them at a time,
// and with n of them
//
//	Base x Factor^((n-Limit)/Every)
//
// Zero fields have the original's values.
type Server struct {
	Limit  int           // default 30
	Factor float64       // default 1.05; at least 1
	Every  int           // default 15
	Base   time.Duration // default 100 ms
}

const serverPoll = 50 * time.Millisecond

// WithDefaults returns s with its defaults. The error names what is wrong.
func (s Server) WithDefaults() (Server, error) {
	s.Limit, s.Factor, s.Every, s.Base = cmp.Or(s.Limit, 30), cmp.Or(s.Factor, 1.05), cmp.Or(s.Every, 15), cmp.Or(s.Base, 100*time.Millisecond)
	if s.Limit < 0 || s.Every < 0 || s.Base < 0 || !(s.Factor >= 1) || math.IsInf(s.Factor, 1) {
		return s, fmt.Errorf("want a limit, a delay and a number of requests from 0 on and a factor of at least 1, not %d, %v, %d and %v", s.Limit, s.Base, s.Every, s.Factor)
	}
	return s, nil
}

// Delay returns how long a request takes while there are n of them at a time. It does not
// overflow.
func (s Server) Delay(n int) time.Duration {
	s, _ = s.WithDefaults()
	if n <= s.Limit {
		return s.Base
	}
	d := float64(s.Base) * math.Pow(s.Factor, float64(n-s.Limit)/float64(s.Every))
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// Throughput returns how many requests the server ends per second while there are n of
// them at a time.
func (s Server) Throughput(n int) float64 { return float64(n) / s.Delay(n).Seconds() }

// Best returns with how many requests at a time the server ends the most. With a factor of
// 1, which has no such number, it is the limit.
func (s Server) Best() int {
	s, _ = s.WithDefaults()
	if s.Factor == 1 {
		return s.Limit
	}
	n := int(float64(s.Every) / math.Log(s.Factor)) // where the derivative of the throughput is 0
	if n <= s.Limit {
		return s.Limit
	}
	if s.Throughput(n+1) > s.Throughput(n) {
		n++
	}
	return n
}

// Tipping returns the least number of requests at a time with which each takes longer than
// a timeout: from there on all that the server does is in vain. False means that there is
// none, because the factor is 1.
func (s Server) Tipping(timeout time.Duration) (n int, ok bool) {
	n = sort.Search(math.MaxInt, func(n int) bool { return s.Delay(n) > timeout })
	return max(n, 1), n < math.MaxInt
}

// serverState holds the requests under way. Each looks every 50 ms, counted from its own
// beginning, whether it is done.
type serverState struct {
	Server
	polls   event.FIFO[pending]
	backlog []visit // requests of the time in which it is stopped
	limit   int     // of backlog
	stopped bool
	delays  []int64 // of the server by n, as far as it was asked for
}

// visit is one request: the number of the client, and of the request among those of that client.
type visit struct{ client, serial uint32 }

// pending is a request under way.
type pending struct {
	visit
	began int64 // ns
}

// n is how many requests are under way.
func (d *serverState) n() int { return d.polls.Len() }

// accept takes a request. It returns false if it is lost.
func (d *serverState) accept(now int64, v visit) bool {
	if !d.stopped {
		d.polls.Push(now+int64(serverPoll), pending{v, now})
		return true
	}
	if len(d.backlog) >= d.limit {
		return false
	}
	d.backlog = append(d.backlog, v)
	return true
}

// resume ends the stop: the requests of the backlog begin, and those that were
// under way are looked at first.
func (d *serverState) resume(now int64) {
	d.stopped = false
	for _, v := range d.backlog {
		d.polls.Push(now+int64(serverPoll), pending{v, now})
	}
	d.backlog = nil
}

// poll looks at the request whose turn it is, and returns it if it is done.
func (d *serverState) poll(now int64) (pending, bool) {
	concurrent := d.n()
	_, p, _ := d.polls.Pop()
	if now-p.began >= d.delay(concurrent) {
		return p, true
	}
	d.polls.Push(now+int64(serverPoll), p)
	return p, false
}

func (d *serverState) delay(n int) int64 {
	for len(d.delays) <= n {
		d.delays = append(d.delays, int64(d.Delay(len(d.delays))))
	}
	return d.delays[n]
}

// stuck reports whether no request can end before until, in ns. At the current number of requests
// each takes longer than the whole run until then, and as none ends, that number cannot fall.
func (d *serverState) stuck(until int64) bool { return d.delay(d.n()) > until }
