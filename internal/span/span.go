// Package span computes with durations from 0 to Longest, without overflow. The policies of
// package backoff and of the packages below it are made of these functions.
package span

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Longest is the longest wait of all, 146 years. The sum of two of them still fits in a
// time.Duration.
const Longest = time.Duration(1<<62 - 1)

// Grow returns min(limit, base*factor^n), and does not overflow with any n and factor. A
// negative n counts as 0. A factor that is not above 1, or not a number, means no
// growth. The result is 0 if base or limit is not above 0.
func Grow(base time.Duration, factor float64, n int, limit time.Duration) time.Duration {
	switch {
	case base <= 0 || limit <= 0:
		return 0
	case n <= 0 || !(factor > 1):
		return min(base, limit)
	case factor == 2 && base > limit>>uint(n):
		return limit
	case factor == 2:
		return base << uint(n)
	}
	if d := float64(base) * math.Pow(factor, float64(n)); d < float64(limit) {
		return time.Duration(d)
	}
	return limit
}

// Scaled returns d times by, without overflow, or 0 if that is not above 0.
func Scaled(d time.Duration, by float64) time.Duration {
	x := float64(d) * by
	switch {
	case !(x > 0):
		return 0
	case x >= float64(Longest):
		return Longest
	}
	return time.Duration(x)
}

// Uniform draws from [low, high); a negative bound counts as 0. If high is not above low
// it returns low and draws nothing. It draws once and multiplies, so that it prefers some
// values to others by one part in 2^64/(high-low): a millionth for waits of four hours.
func Uniform(r *rand.Rand, low, high time.Duration) time.Duration {
	low = max(low, 0)
	if high <= low {
		return low
	}
	above, _ := bits.Mul64(r.Uint64(), uint64(high-low))
	return low + time.Duration(above)
}

// Around returns d less and d more a share of it, within [0, Longest]. The share is spread, cut to
// [0, 1], or usual if spread is zero or not a number.
func Around(d time.Duration, spread, usual float64) (low, high time.Duration) {
	spread = min(max(OrUsual(spread, usual), 0), 1)
	by := min(d, time.Duration(spread*float64(d)))
	return d - by, d + min(by, Longest-d)
}

// Bounds returns the first delay and the longest, within [0, Longest], with the usual ones
// in the place of zeros.
func Bounds(base, limit, usualBase, usualLimit time.Duration) (time.Duration, time.Duration) {
	if base == 0 {
		base = usualBase
	}
	if limit == 0 {
		limit = max(usualLimit, base)
	}
	if limit < 0 || limit > Longest {
		limit = Longest
	}
	return min(max(base, 0), limit), limit
}

// Delay returns d, or usual if d is zero, or 0 if d is negative: for a delay that may be off.
func Delay(d, usual time.Duration) time.Duration {
	if d == 0 {
		d = usual
	}
	return min(max(d, 0), Longest)
}

// Limit returns d, or usual if d is zero, or Longest if d is negative: for a limit that may
// be off.
func Limit(d, usual time.Duration) time.Duration {
	switch {
	case d == 0:
		return usual
	case d < 0:
		return Longest
	}
	return min(d, Longest)
}

// Positive returns d, or usual if d is not above 0.
func Positive(d, usual time.Duration) time.Duration {
	if d <= 0 {
		return usual
	}
	return min(d, Longest)
}

// OrUsual returns x, or usual if x is zero or not a number.
func OrUsual(x, usual float64) float64 {
	if x == 0 || x != x {
		return usual
	}
	return x
}
