package classic

import "time"

// longest is the longest duration here. The sum of two of them does not overflow.
const longest = time.Duration(1<<62 - 1)

// orDefault returns d within [0, longest], or other if d is 0.
func orDefault(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return min(max(d, 0), longest)
}

// orUsual returns x, or usual if x is zero or not a number.
func orUsual(x, usual float64) float64 {
	if x == 0 || x != x {
		return usual
	}
	return x
}
