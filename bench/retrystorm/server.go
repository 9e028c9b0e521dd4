package retrystorm

import (
	"math"
	"time"

	"github.com/redial-go/redial/bench/event"
)

// The constants of the original's server.
const (
	serverLimit  = 30 // requests at a time without extra delay
	serverFactor = 1.05
	serverBase   = 100 * time.Millisecond
	serverPoll   = 50 * time.Millisecond
	serverDamper = 15
)

// Delay returns how long a request takes while there are n of them at a time:
//
//	100 ms x 1.05^((n-30)/15)
//
// but at least 100 ms. It does not overflow.
func Delay(n int) time.Duration {
	if n <= serverLimit {
		return serverBase
	}
	d := float64(serverBase) * math.Pow(serverFactor, float64(n-serverLimit)/serverDamper)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// server holds the requests under way. Each looks every 50 ms, counted from its own
// beginning, whether it is done.
type server struct {
	polls   event.Lane[pending]
	backlog []visit // requests of the time in which it is stopped
	limit   int     // of backlog
	stopped bool
	delays  []int64 // Delay by n, as far as it was asked for
}

// visit is one request: who made it, and the how many-th of theirs it is.
type visit struct{ client, serial uint32 }

// pending is a request under way.
type pending struct {
	visit
	began int64 // ns
}

// n is how many requests are under way.
func (s *server) n() int { return s.polls.Len() }

// accept takes a request. It returns false if it is lost.
func (s *server) accept(now int64, v visit) bool {
	if !s.stopped {
		s.polls.Push(now+int64(serverPoll), pending{v, now})
		return true
	}
	if len(s.backlog) >= s.limit {
		return false
	}
	s.backlog = append(s.backlog, v)
	return true
}

// resume ends the stop: the requests of the backlog begin, and those that were
// under way are looked at first.
func (s *server) resume(now int64) {
	s.stopped = false
	for _, v := range s.backlog {
		s.polls.Push(now+int64(serverPoll), pending{v, now})
	}
	s.backlog = nil
}

// poll looks at the request whose turn it is, and returns it if it is done.
func (s *server) poll(now int64) (pending, bool) {
	concurrent := s.n()
	_, p, _ := s.polls.Pop()
	if now-p.began >= s.delay(concurrent) {
		return p, true
	}
	s.polls.Push(now+int64(serverPoll), p)
	return p, false
}

func (s *server) delay(n int) int64 {
	for len(s.delays) <= n {
		s.delays = append(s.delays, int64(Delay(len(s.delays))))
	}
	return s.delays[n]
}

// stuck says that no request can end before a time in ns, whoever comes: the oldest
// is not old enough by then for as many as there are now.
func (s *server) stuck(until int64) bool {
	_, oldest, ok := s.polls.Peek()
	return ok && !s.stopped && until-oldest.began < s.delay(s.n())
}
