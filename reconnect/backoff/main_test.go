package backoff_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sec = time.Second

var start = policytest.Start

func seeded() *rand.Rand { return policytest.Seeded() }

type constant = policytest.Constant

const highest = policytest.Highest

// waits returns the waits of p in seconds, as [policytest.Waits] does.
func waits(p backoff.Policy, n int, class backoff.Class, source rand.Source) []float64 {
	return policytest.Waits(p, n, class, source)
}
