package chart

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func labels(ticks []Tick) (all []string) {
	for _, t := range ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return all
}

func TestTicksAreRoundNumbers(t *testing.T) {
	for _, w := range []struct {
		from, to    float64
		logarithmic bool
		want        []string
	}{
		{0, 1.5, false, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2", "1.4"}},
		{0, 400, false, []string{"0", "100", "200", "300", "400"}},
		{-20, 160, false, []string{"-20", "0", "20", "40", "60", "80", "100", "120", "140", "160"}},
		{-0.75, 60, false, []string{"0", "10", "20", "30", "40", "50", "60"}},
		{0, 12_000, false, []string{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}},
		{0.8, 10_000, true, []string{"1", "10", "100", "1,000", "10,000"}},
		{0.1, 20, true, []string{"0.1", "1", "10"}},
		{3, 3, false, nil},
		{math.NaN(), 3, false, nil},
	} {
		require.Equal(t, w.want, labels(roundTicks(w.from, w.to, w.logarithmic)), "%v to %v", w.from, w.to)
	}
	require.Equal(t, []string{"1", "10", "100"}, labels(Decades(999)))
}

func TestALogarithmicAxisHasSmallMarksBetween(t *testing.T) {
	require.Len(t, roundTicks(1, 100, true), 19)
}

func TestNumbersAreWrittenAsPeopleDo(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.25: "0.25", 999: "999", 1000: "1,000", 1234567.5: "1,234,567.5", -1000: "-1,000"} {
		require.Equal(t, want, Number(x))
	}
}

func TestRoundUpIsTheNextRoundNumber(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, -3: 1, 1: 1, 1.01: 1.2, 97: 100, 400: 400, 401: 500, 8.5: 10, 0.07: 0.08} {
		require.InEpsilon(t, want, RoundUp(x), 1e-9, "%v", x)
	}
	require.Equal(t, 1., RoundUp(math.NaN()))
}
