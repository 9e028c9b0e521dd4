// Package policytest checks policies in tests: that their waits have the moments of a reference, and that no
// number in an option breaks them.
package policytest

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Start is an arbitrary moment.
var Start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Constant is a source of one number: 0 draws the least value of a range, and [Highest] the greatest.
type Constant uint64

// Highest draws the greatest value of a range.
const Highest = Constant(1<<64 - 1)

// Uint64 returns the number.
func (c Constant) Uint64() uint64 { return uint64(c) }

// Seeded returns random numbers that are the same in each run.
func Seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// Waits returns the first n waits of p in seconds, or fewer if p gives up, after failures of one class that
// take no time, with all draws from source.
func Waits(p backoff.Policy, n int, class backoff.Class, source rand.Source) []float64 {
	var outage schedule.Outage
	seconds, now := make([]float64, 0, n), Start
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
