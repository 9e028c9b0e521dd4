package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff/internal/span"
)

// Uniform draws from [low, high); a negative bound counts as 0. If high is not above low
// it returns low and draws nothing.
func Uniform(r *rand.Rand, low, high time.Duration) time.Duration { return span.Uniform(r, low, high) }

// Rand returns random numbers of the runtime, which need no seed. Unlike other values of
// its type it has no state, so that any number of goroutines may use it at once.
func Rand() *rand.Rand { return shared }

var shared = rand.New(global{})

type global struct{}

func (global) Uint64() uint64 { return rand.Uint64() }
