package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is an arbitrary moment.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// constant is a source of one number: 0 draws the least value of a range,
// highest draws the greatest.
type constant uint64

const highest = constant(1<<64 - 1)

func (c constant) Uint64() uint64 { return uint64(c) }

// seen is a policy that writes down each History.
type seen struct {
	attempts []backoff.History
	step     backoff.Step
}

func (s *seen) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	s.attempts = append(s.attempts, a)
	return s.step, true
}
