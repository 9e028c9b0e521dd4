package classic

import (
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Grow returns min(limit, base*factor^n), and does not overflow with any n and factor. A
// negative n counts as 0. A factor that is not above 1, or not a number, means no growth. The
// result is 0 if base or limit is not above 0. It is for a policy of your own.
func Grow(base time.Duration, factor float64, n int, limit time.Duration) time.Duration {
	return span.Grow(base, factor, n, limit)
}
