package fleet_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// liveServer is a server of a bubble: it takes one client after the other out of a queue and
// completes a handshake in 1/C s. The mutex of the bubble guards what is not constant.
type liveServer struct {
	*bubble
	work   time.Duration
	hangs  bool
	spells []fleet.Spell
	calls  chan struct{} // capacity 1: a client has joined

	queue []*place
	back  time.Time // since when it has been there, or when it will be; zero: for ever
}

// place is one in the server's queue.
type place struct {
	over   chan struct{} // closed when it is served, or reset
	served bool
}

func newLiveServer(b *bubble, k int) *liveServer {
	s := &liveServer{
		bubble: b, work: time.Duration(float64(time.Second) / b.Server.Capacity),
		hangs: k < b.Server.Hung, calls: make(chan struct{}, 1),
	}
	if k > 0 && b.Server.Rolling > 0 {
		s.spells = []fleet.Spell{{Down: fleet.Up, Length: time.Duration(k) * b.Server.Rolling}}
	}
	if s.spells = append(s.spells, b.Outage.Spells...); b.Outage.Spells == nil {
		s.spells = append(s.spells, fleet.Spell{Down: b.Outage.Down, Length: b.Outage.Length})
	}
	return s
}

// play lets the server go and come back.
func (s *liveServer) play() {
	before := fleet.Up
	for i, spell := range s.spells {
		if spell.Down != fleet.Up && before == fleet.Up {
			s.kill(s.spells[i:])
		}
		before = spell.Down
		time.Sleep(spell.Length)
	}
}

// kill is the loss of all connections to a server that is away for some spells. Clients in
// the queue are reset.
func (s *liveServer) kill(away []fleet.Spell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
	s.back = time.Now()
	for _, spell := range away {
		if spell.Down == fleet.Up {
			break
		}
		s.back = s.back.Add(spell.Length)
	}
	s.next = s.back
	for _, p := range s.queue {
		close(p.over)
	}
	s.queue = nil
	for i := range s.clients {
		c := &s.clients[i]
		if c.conn == nil || c.home != s {
			continue
		}
		lost := c.conn
		time.AfterFunc(c.group.Late, func() { lost.Fail(io.EOF) })
		c.conn = nil
		s.up--
	}
	clear(s.reached)
}

// serve completes handshakes, also of those who have left.
func (s *liveServer) serve(ctx context.Context) {
	for {
		s.mu.Lock()
		var first *place
		if len(s.queue) > 0 {
			first = s.queue[0]
		}
		work := s.takes()
		s.mu.Unlock()
		if first == nil {
			select {
			case <-s.calls:
				continue
			case <-ctx.Done():
				return
			}
		}
		time.Sleep(work)
		s.mu.Lock()
		if len(s.queue) > 0 && s.queue[0] == first { // it was not reset meanwhile
			first.served, s.queue = true, s.queue[1:]
			close(first.over)
		}
		s.mu.Unlock()
	}
}

// takes returns in how long a handshake is complete that is the next: a server that was
// stopped goes on when it is back. The speed of a server with a ramp grows in proportion to
// the time since its return.
func (s *liveServer) takes() time.Duration {
	away := max(time.Until(s.back), 0)
	ramp, slow := s.Server.Ramp.Seconds(), fleet.RampFrom
	since := (time.Since(s.back) + away).Seconds()
	if s.back.IsZero() || since >= ramp {
		return away + s.work
	}
	speed, faster := slow+(1-slow)*since/ramp, (1-slow)/ramp
	took := (math.Sqrt(speed*speed+2*faster*s.work.Seconds()) - speed) / faster
	return away + time.Duration(took*float64(time.Second))
}

// connect sends SYNs as Linux does until there is room.
func (s *liveServer) connect(ctx context.Context, limit time.Duration) (mine *place, err error) {
	pause := time.Second
	for {
		mine, err := s.knock()
		if mine != nil || err != nil {
			return mine, err
		}
		select {
		case <-time.After(min(pause, limit)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if limit -= pause; limit <= 0 {
			return nil, fmt.Errorf("connect: %w", context.DeadlineExceeded)
		}
		pause *= 2
	}
}

// meets is what a dial meets now.
func (s *liveServer) meets() fleet.Down {
	at := time.Since(s.lost)
	for _, spell := range s.spells {
		if at < spell.Length {
			return spell.Down
		}
		at -= spell.Length
	}
	return fleet.Up
}

// knock is one SYN: no place and no error means that it was dropped.
func (s *liveServer) knock() (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := &place{over: make(chan struct{})}
	if s.playing {
		waiting := max(len(s.queue)-1, 0) // beside the one that is being served
		full := waiting >= s.Server.Backlog && s.Server.Queue != fleet.Unbounded
		switch down := s.meets(); {
		case s.hangs, down == fleet.Swallowed:
			return mine, nil
		case down == fleet.Unavailable, down == fleet.Up && full && s.Server.Queue == fleet.Busy:
			code := 503
			if s.Server.Status429 {
				code = 429
			}
			return nil, unavailable{code, s.Server.RetryAfter}
		case down == fleet.Denied:
			return nil, denied{}
		case down == fleet.Nameless:
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		case down == fleet.Refused, full && s.Server.Queue == fleet.Reject:
			return nil, syscall.ECONNREFUSED
		case full, down == fleet.Silent:
			return nil, nil
		}
	}
	s.queue = append(s.queue, mine)
	select {
	case s.calls <- struct{}{}:
	default:
	}
	return mine, nil
}

// denied is a 401.
type denied struct{}

func (denied) Error() string   { return "401" }
func (denied) StatusCode() int { return 401 }

// unavailable is a 503, or a 429.
type unavailable struct {
	code  int
	after time.Duration
}

func (u unavailable) Error() string                     { return fmt.Sprint(u.code) }
func (u unavailable) StatusCode() int                   { return u.code }
func (u unavailable) RetryAfter() (time.Duration, bool) { return u.after, u.after > 0 }
