package history

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// A history whose settings have Apart keeps apart what else would happen at one instant, at which the scheduler decides what comes
// first. The times are far shorter than all others of a history, and no two connections have the same.

// apart lets bytes be some microseconds under way.
func apart(p *conntest.Pipe, lag time.Duration, attempt int) {
	salt := time.Duration(attempt%64) * 17
	p.Latency(conntest.ToServer, lag+3*time.Microsecond+salt)
	p.Latency(conntest.ToClient, lag+7*time.Microsecond+2*salt)
}

// readTakes is how long each Read takes more in the session of an attempt.
func readTakes(attempt int) time.Duration { return 101 + 13*time.Duration(attempt%64) }

// slowly is a connection of which each Read takes some nanoseconds more, and a Write that fails takes longer. So when a session is ready
// whose connection has ended already, it first does what it does when it is ready, and then gets what has come, and then the end.
type slowly struct {
	net.Conn
	takes time.Duration
}

func (c *slowly) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.takes)
	return n, err
}

func (c *slowly) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		time.Sleep(64 * c.takes)
	}
	return n, err
}

func (c *slowly) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func (c *slowly) HungUp() bool { return c.Conn.(interface{ HungUp() bool }).HungUp() }

// salt is a short pause.
func (w *world) salt() {
	if w.set.Apart {
		time.Sleep(7 * time.Nanosecond)
	}
}

// source returns the random numbers of a part of the library.
func (w *world) source(actor uint64) rand.Source {
	if w.set.Apart {
		return &instants{w: w, actor: actor}
	}
	return rand.NewPCG(w.plan.Seed, actor)
}

// instants is a source that gives the same to all who draw at one instant, so that it does not matter which of them is first.
type instants struct {
	w     *world
	actor uint64
	at    time.Duration
	count uint64 // of the instants at which somebody has drawn
	draws uint64 // at this instant
}

// Uint64 repeats itself for a few draws only, because some functions draw until they like the number.
func (s *instants) Uint64() uint64 {
	if now := s.w.now(); now != s.at || s.count == 0 {
		s.at, s.draws, s.count = now, 0, s.count+1
	}
	s.draws++
	return rand.NewPCG(s.w.plan.Seed, s.actor+s.count<<8+s.draws/8<<48).Uint64()
}
