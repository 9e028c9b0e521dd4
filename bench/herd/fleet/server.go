package fleet

import (
	"math"
	"math/rand/v2"
	"time"
)

// server is one of several behind a balancer: what a dial meets there now, and the queue of
// handshakes. A queue that is served in order need not exist: the time at which the server will be
// idle tells each dial on joining when it will be served.
//
// Inside, time is the work that can be done in it, in ns at full speed: after a return it runs
// slowly at first if the server has a ramp.
type server struct {
	queue   Queue
	backlog int64
	work    int64 // ns for a handshake
	answer  int64 // ns for a 503
	told    time.Duration
	booked  bool
	ramp    float64 // ns until it is at full speed

	spells  []Spell // what is still to come, the present one first
	down    Down
	back    int64 // until then it is away; while it is up: since when it has been
	idle    int64 // work: when the last handshake of the queue will be complete
	written int64 // when the last 503 will be written
	next    int64 // work: the next time to be booked

	waiting []ticket // served at random: all, with those of clients that have left
	serving bool
}

// ticket is a place in a queue that is served at random.
type ticket struct {
	who   int32
	which uint8
	begun uint8 // the number of the dial, so that a later one is not taken for it
}

func newServer(s Server) server {
	work := max(int64(1e9/s.Capacity), 1)
	return server{
		queue:   s.Queue,
		backlog: min(int64(s.Backlog), math.MaxInt64/work),
		work:    work,
		answer:  max(int64(1e9/s.Answers), 1),
		told:    s.RetryAfter,
		booked:  s.Booked,
		ramp:    float64(s.Ramp),
	}
}

// done is how much work, in ns at full speed, could be done from the return until now.
func (s *server) done(now int64) int64 {
	if s.ramp == 0 {
		return now
	}
	t := float64(max(now-s.back, 0))
	if t >= s.ramp {
		return s.back + int64(float64(s.ramp*(1+RampFrom)/2)+float64(t-s.ramp))
	}
	return s.back + int64(float64(RampFrom*t)+float64(float64((1-RampFrom)*t)*t)/(2*s.ramp))
}

// when is the inverse of done.
func (s *server) when(work int64) int64 {
	if s.ramp == 0 {
		return work
	}
	w := float64(work - s.back)
	if full := float64(s.ramp * (1 + RampFrom) / 2); w >= full {
		return s.back + int64(s.ramp+float64(w-full))
	}
	a := (1 - RampFrom) / s.ramp
	return s.back + int64((math.Sqrt(float64(RampFrom*RampFrom)+float64(2*a*w))-RampFrom)/a) + 1
}

// full reports whether a dial that comes now finds no room, because backlog others wait
// beside the one that is being served.
func (s *server) full(now int64) bool {
	return s.queue != Unbounded && s.queue != Random && s.idle-s.done(max(now, s.back)) > s.backlog*s.work
}

// join puts a dial at the end of the queue now and returns when it will be served.
func (s *server) join(now int64) int64 {
	s.idle = max(s.idle, s.done(now)) + s.work
	return s.when(s.idle)
}

// turnAway is join for the queue of dials that are answered 503. It also returns the
// Retry-After of the answer.
func (s *server) turnAway(now int64) (answered int64, told time.Duration) {
	s.written = max(s.written, now) + s.answer
	if !s.booked {
		return s.written, s.told
	}
	if s.down != Up {
		return s.written, s.told
	}
	s.next = max(s.next, s.idle, s.done(now)) + s.work
	wait := time.Duration(s.when(s.next) - now)
	return s.written, wait.Truncate(time.Second) + time.Second
}

// die notes that the server dies, to be back at a later time. It forgets all that wait.
func (s *server) die(now, back int64) {
	s.back, s.idle, s.written, s.next = back, back, now, back
	s.waiting, s.serving = s.waiting[:0], false
}

// pick takes one of the waiting dials at random.
func (s *server) pick(r *rand.Rand) ticket {
	i := r.IntN(len(s.waiting))
	t := s.waiting[i]
	last := len(s.waiting) - 1
	s.waiting[i] = s.waiting[last]
	s.waiting = s.waiting[:last]
	return t
}
