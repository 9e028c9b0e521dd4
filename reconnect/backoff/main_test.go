package backoff_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec = time.Second

// start is an arbitrary moment.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// constant is a source of one number: 0 draws the least value of a range,
// highest draws the greatest.
type constant uint64

const highest = constant(1<<64 - 1)

func (c constant) Uint64() uint64 { return uint64(c) }

// waits returns the waits 0 to n-1 of p, until it gives up, after failures of one class
// that take no time, with all draws from source.
func waits(p backoff.Policy, n int, class backoff.Class, source rand.Source) []float64 {
	var outage schedule.Outage
	seconds, now := make([]float64, 0, n), start
	for range n {
		s, ok := outage.Next(p, backoff.Verdict{Class: class}, now, rand.New(source))
		if !ok {
			break
		}
		seconds = append(seconds, s.Wait.Round(time.Millisecond).Seconds())
		now = now.Add(s.Wait)
	}
	return seconds
}
