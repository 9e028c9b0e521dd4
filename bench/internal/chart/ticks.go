package chart

import (
	"math"
	"strconv"
	"strings"
)

// wantedTicks is how many marks with a label an axis has at least, about.
const wantedTicks = 4

// roundTicks returns marks at round numbers: steps of 1, 2 or 5 times a power of ten, or
// the powers of ten of a logarithmic axis.
func roundTicks(from, to float64, logarithmic bool) []Tick {
	if logarithmic {
		return decades(from, to)
	}
	if !(to > from) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((to-from)/wantedTicks)))
	for _, times := range []float64{5, 2} {
		if step*times <= (to-from)/wantedTicks {
			step *= times
			break
		}
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var ticks []Tick
	for n := math.Ceil(from/step - 1e-9); n*step <= to+1e-9*step; n++ {
		at := n*step + 0 // no negative zero
		label := strconv.FormatFloat(at, 'f', digits, 64)
		if digits == 0 {
			label = Number(math.Round(at))
		}
		ticks = append(ticks, Tick{at, label})
	}
	return ticks
}

// Decades returns a mark at each power of ten from 1 to an end, and no small ones: for the
// axis of a low panel.
func Decades(to float64) []Tick {
	var ticks []Tick
	for at := 1.0; at <= to; at *= 10 {
		ticks = append(ticks, Tick{at, Number(at)})
	}
	return ticks
}

// decades returns a mark at each power of ten, and small ones between.
func decades(from, to float64) []Tick {
	var ticks []Tick
	for n := math.Floor(math.Log10(from)); n <= math.Ceil(math.Log10(to)); n++ {
		for times := 1.0; times < 10; times++ {
			at := times * math.Pow(10, n)
			if at < from*(1-1e-9) || at > to*(1+1e-9) {
				continue
			}
			label := ""
			if times == 1 {
				label = Number(at)
			}
			ticks = append(ticks, Tick{at, label})
		}
	}
	return ticks
}

// Number writes a number as people do: 0.25, 1,000, 1,000,000.
func Number(x float64) string {
	whole, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(x), 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if x < 0 {
		return "-" + whole
	}
	return whole
}

// RoundUp returns the least round number that is not below x: 1, 1.2, 1.5, 2, 2.5, 3, 4,
// 5, 6 or 8 times a power of ten. It suits the end of an axis.
func RoundUp(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, times := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if x <= times*unit*(1+1e-9) {
			return times * unit
		}
	}
	return 10 * unit
}
