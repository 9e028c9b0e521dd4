package fleet

import (
	"math"
	"time"
)

// server is the queue before the one who completes handshakes. Since it serves in
// order, never skips anybody and takes the same time for each, it is known on
// joining when one will be served, and the queue need not exist: the time at which
// the server will be idle says it all.
type server struct {
	queue   Queue
	backlog int64
	work    int64 // ns for a handshake
	answer  int64 // ns for a 503
	told    time.Duration

	back    int64 // until then it is away
	idle    int64 // when the last handshake of the queue will be complete
	written int64 // when the last 503 will be written
}

func newServer(s Server) server {
	work := max(int64(1e9/s.Capacity), 1)
	return server{
		queue:   s.Queue,
		backlog: min(int64(s.Backlog), math.MaxInt64/work),
		work:    work,
		answer:  max(int64(1e9/s.Answers), 1),
		told:    s.RetryAfter,
	}
}

// full reports whether one who comes now finds no room: backlog others wait,
// beside the one who is being served.
func (s *server) full(now int64) bool {
	return s.queue != Unbounded && s.idle-max(now, s.back) > s.backlog*s.work
}

// join puts one who comes now at the end and returns when it will be served.
func (s *server) join(now int64) int64 {
	s.idle = max(s.idle, now) + s.work
	return s.idle
}

// turnAway is join for the queue of those who are answered 503.
func (s *server) turnAway(now int64) int64 {
	s.written = max(s.written, now) + s.answer
	return s.written
}

// die is the server dying, to be back at a later time: whoever waits is forgotten.
func (s *server) die(now, back int64) { s.back, s.idle, s.written = back, back, now }
