package schedule

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// slowWait returns the wait of p after ClassSlow, which is the zero value if p has none.
func slowWait(p backoff.Policy) backoff.SlowWait {
	if s, ok := p.(interface{ SlowWait() backoff.SlowWait }); ok {
		return s.SlowWait()
	}
	return backoff.SlowWait{}
}

// slowBounds returns the first and the greatest d of w, with the defaults.
func slowBounds(w backoff.SlowWait) (first, most time.Duration) {
	return span.Bounds(w.Min, w.Max, 10*time.Second, 2*time.Minute)
}

// drawSlow draws the least wait after the n-th ClassSlow in a row, from 0 on.
func drawSlow(w backoff.SlowWait, n int, r *rand.Rand) time.Duration {
	first, most := slowBounds(w)
	d := span.Grow(first, span.OrUsual(w.Growth, 1.2), n, most)
	return span.Uniform(r, d/2, d+min(d/2, span.Longest-d))
}
