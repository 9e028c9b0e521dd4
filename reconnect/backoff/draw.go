package backoff

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// longest is the longest wait of all, 146 years. The sum of two of them still fits in a
// time.Duration.
const longest = time.Duration(1<<62 - 1)

// Grow returns min(limit, base*factor^n), and does not overflow with any n and factor. A
// negative n counts as 0. A factor that is not above 1, or not a number, means no
// growth. The result is 0 if base or limit is not above 0. It is for a [Policy] of your
// own.
func Grow(base time.Duration, factor float64, n int, limit time.Duration) time.Duration {
	switch {
	case base <= 0 || limit <= 0:
		return 0
	case n <= 0 || !(factor > 1):
		return min(base, limit)
	case factor == 2:
		return double(base, n, limit)
	}
	if d := float64(base) * math.Pow(factor, float64(n)); d < float64(limit) {
		return time.Duration(d)
	}
	return limit
}

// double is Grow with the factor 2, for n from 0 on and base and limit above 0.
func double(base time.Duration, n int, limit time.Duration) time.Duration {
	if base > limit>>uint(n) {
		return limit
	}
	return base << uint(n)
}

// scaled returns d times by, without overflow, or 0 if that is not above 0.
func scaled(d time.Duration, by float64) time.Duration {
	x := float64(d) * by
	switch {
	case !(x > 0):
		return 0
	case x >= float64(longest):
		return longest
	}
	return time.Duration(x)
}

// Uniform draws from [low, high); a negative bound counts as 0. If high is not above low
// it returns low and draws nothing.
func Uniform(r *rand.Rand, low, high time.Duration) time.Duration {
	low = max(low, 0)
	if high <= low {
		return low
	}
	return draw(r, low, high)
}

// draw is Uniform for bounds that are in order. It draws once and multiplies, so that it
// prefers some values to others by one part in 2^64/(high-low): a millionth for waits of
// four hours.
func draw(r *rand.Rand, low, high time.Duration) time.Duration {
	above, _ := bits.Mul64(r.Uint64(), uint64(high-low))
	return low + time.Duration(above)
}

// bounds returns the first delay and the longest, within [0, longest], with the usual ones
// in the place of zeros.
func bounds(base, limit, usualBase, usualLimit time.Duration) (time.Duration, time.Duration) {
	if base == 0 {
		base = usualBase
	}
	if limit == 0 {
		limit = max(usualLimit, base)
	}
	if limit < 0 || limit > longest {
		limit = longest
	}
	return min(max(base, 0), limit), limit
}

// atLeast0 returns d, or usual if d is zero, or 0 if d is negative: for a delay that may be off.
func atLeast0(d, usual time.Duration) time.Duration {
	if d == 0 {
		d = usual
	}
	return min(max(d, 0), longest)
}

// orLongest returns d, or usual if d is zero, or longest if d is negative: for a limit that may
// be off.
func orLongest(d, usual time.Duration) time.Duration {
	switch {
	case d == 0:
		return usual
	case d < 0:
		return longest
	}
	return min(d, longest)
}

// positive returns d, or usual if d is not above 0.
func positive(d, usual time.Duration) time.Duration {
	if d <= 0 {
		return usual
	}
	return min(d, longest)
}

// orUsual returns x, or usual if x is zero or not a number.
func orUsual(x, usual float64) float64 {
	if x == 0 || x != x {
		return usual
	}
	return x
}

// Rand returns random numbers of the runtime, which need no seed. Unlike other values of
// its type it has no state, so that any number of goroutines may use it at once.
func Rand() *rand.Rand { return shared }

var shared = rand.New(global{})

type global struct{}

func (global) Uint64() uint64 { return rand.Uint64() }
