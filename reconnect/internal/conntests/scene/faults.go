package scene

import (
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// DialFault returns a random fault of a dial.
func DialFault(r *rand.Rand) conntest.Fault {
	late, way, size := UpTo(r, 20*time.Second), conntest.Direction(1+r.IntN(2)), r.Int64N(2000)
	return []conntest.Fault{
		{Err: syscall.ECONNREFUSED}, {Hang: true}, {Drop: true},
		{Delay: late}, {Delay: late, IgnoresContext: true}, {Delay: late, CompletesAnyway: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptDelay: late},
		{OnConn: func(p *conntest.Pipe) { p.Cut(way, size) }},
	}[r.IntN(9)]
}

// BreakConn breaks a connection in a random way.
func BreakConn(r *rand.Rand, p *conntest.Pipe) {
	d := conntest.Direction(1 + r.IntN(2))
	switch r.IntN(9) {
	case 0:
		p.Reset()
	case 1:
		p.FIN(d)
	case 2:
		p.Cut(d, r.Int64N(3000))
	case 3:
		p.CutReset(d, r.Int64N(3000))
	case 4:
		p.Stall(conntest.Direction(1 + r.IntN(3)))
	case 5:
		p.Thaw(conntest.Both)
	case 6:
		p.Latency(d, UpTo(r, 3*time.Second))
	case 7:
		p.Trickle(d, 1+r.IntN(2000), 10*time.Millisecond)
	case 8:
		p.Window(d, r.IntN(5000))
	}
}

// UpTo draws from [0, d).
func UpTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// EachSeed runs f for each seed below seeds, or below the number that REDIAL_SEEDS states.
func EachSeed(t *testing.T, seeds int, f func(t *testing.T, seed uint64)) {
	if testing.Short() || RaceEnabled() {
		seeds /= 5
	}
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { f(t, seed) })
	}
}

// RaceEnabled reports whether the test was built with -race.
func RaceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Stop ends the faults of new connections.
func (s *FramedServer) Stop() { s.Network.Fault(FramedAddr) }

// Inject breaks the next dial or each connection at random.
func (s *FramedServer) Inject(r *rand.Rand) {
	if r.IntN(4) == 0 {
		s.Network.Fault(FramedAddr, DialFault(r), conntest.Fault{})
		return
	}
	for _, p := range s.Network.Conns(FramedAddr) {
		BreakConn(r, p)
	}
}
