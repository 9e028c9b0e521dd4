package waits_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/waits"
)

func TestUsersWaitWithinTwentyPercent(t *testing.T) {
	rows, err := waits.Users(3, 8, waits.UsersJitter, 1)
	require.NoError(t, err)
	var tables, delays []float64
	for i, row := range rows {
		require.Equal(t, i+1, row.Attempt)
		require.Len(t, row.Waits, 3)
		for _, w := range row.Waits {
			require.Zero(t, w%time.Millisecond)
			require.GreaterOrEqual(t, w, row.Low-time.Millisecond)
			require.Less(t, w, row.High)
		}
		require.NotEqual(t, row.Waits[0], row.Waits[1], "the users do not stay together")
		require.NotEqual(t, row.Waits[1], row.Waits[2])
		tables, delays = append(tables, row.Table.Seconds()), append(delays, row.Delay.Seconds())
	}
	require.Equal(t, []float64{1, 2, 4, 8, 16, 30, 30, 30}, tables)
	require.Equal(t, []float64{2, 4, 8, 16, 30, 30, 30, 30}, delays, "its code counts attempts from 1")
	require.Equal(t, []time.Duration{24 * time.Second, 36 * time.Second}, []time.Duration{rows[7].Low, rows[7].High})
}

// The mean and the share of zeros are those of a uniform draw that is cut at 0.
func TestAJitterAboveOneIsCutAtZero(t *testing.T) {
	const users = 20_000
	for _, jitter := range []float64{0.5, 1, 1.5, 4} {
		rows, err := waits.Users(users, 6, jitter, 1)
		require.NoError(t, err)
		for _, row := range rows {
			zeros, mean := 0.0, 0.0
			for _, w := range row.Waits {
				require.GreaterOrEqual(t, w, row.Low.Truncate(time.Millisecond))
				require.Less(t, w, row.High)
				require.Zero(t, w%time.Millisecond)
				if w < time.Millisecond {
					zeros++
				}
				mean += w.Seconds() / users
			}
			wantZeros, wantMean := 0.0, 1.0
			if jitter > 1 {
				require.Zero(t, row.Low)
				wantZeros, wantMean = (jitter-1)/(2*jitter), (1+jitter)*(1+jitter)/(4*jitter)
			}
			require.InDelta(t, wantZeros, zeros/users, 0.01)
			require.InEpsilon(t, wantMean*row.Delay.Seconds(), mean, 0.02)
		}
	}
	rows, err := waits.Users(2, 3, 0, 1)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{4 * time.Second, 4 * time.Second}, rows[1].Waits)
	for _, jitter := range []float64{-0.1, math.NaN(), 1001} {
		_, err := waits.Users(2, 3, jitter, 1)
		require.ErrorContains(t, err, "want a jitter from 0 to 1000")
	}
}

func TestEthernetWaitsEAfterCCollisions(t *testing.T) {
	rows, err := waits.Ethernet(t.Context(), 40_000, 1, nil)
	require.NoError(t, err)
	require.Len(t, rows, 15, "after 16 attempts a station gives up")
	require.Equal(t, 3.5, rows[2].Formula.Mean, "the article's example")
	for _, row := range rows {
		c := float64(min(row.Collisions, 10))
		require.Equal(t, (math.Pow(2, c)-1)/2, row.Formula.Mean)
		require.InDelta(t, math.Sqrt((math.Pow(4, c)-1)/12), row.Formula.SD, 1e-9)
		require.InDelta(t, row.Formula.Mean, row.Drawn.Mean, 4*row.Formula.SD/200, "4 standard errors of 40,000 draws")
		require.InEpsilon(t, row.Formula.SD, row.Drawn.SD, 0.02)
	}
}

// The noise compounds, and comes after the cap.
func TestNormalNoiseHasTheMomentsOfItsFormula(t *testing.T) {
	exact, last := []int{8, 12}, []float64{600, 300}
	for i, s := range waits.NormalSettings() {
		rows, err := waits.Normals(t.Context(), s.Policy, 20, 20_000, 1, nil)
		require.NoError(t, err)
		n := 0
		for _, row := range rows {
			if !row.Exact {
				continue
			}
			n++
			require.InEpsilon(t, row.Formula.Mean, row.Drawn.Mean, 0.01, "%s, retry %d", s.Name, row.Retry)
			require.InDelta(t, row.Formula.SD, row.Drawn.SD, 0.03*row.Formula.SD+1e-9, "%s, retry %d", s.Name, row.Retry)
			require.Zero(t, row.AtCap)
		}
		require.Equal(t, exact[i], n, s.Name)
		end := rows[19]
		require.InEpsilon(t, last[i], end.Drawn.Mean, 0.01)
		require.InEpsilon(t, last[i]/10, end.Drawn.SD, 0.03, "the noise is that of one step")
		require.Greater(t, end.Stats.P95, last[i], "a wait may exceed the cap")
		require.Greater(t, end.AtCap, 0.99)
	}
}

// The moments in reconnect/backoff/testdata of the rule with its defaults: 100 ms, 2, 10 %, 15 min.
func TestNormalsAgreeWithTheReferenceMoments(t *testing.T) {
	rows, err := waits.Normals(t.Context(), waits.NormalSettings()[0].Policy, 3, 1, 1, nil)
	require.NoError(t, err)
	require.Equal(t, 0.1, rows[0].Drawn.Mean, "the first wait has no noise")
	p := *waits.NormalSettings()[0].Policy
	p.Factor, p.Max = 2, 15*time.Minute
	rows, err = waits.Normals(t.Context(), &p, 13, 40_000, 1, nil)
	require.NoError(t, err)
	for n, want := range map[int]waits.Moments{1: {0.200013, 0.0199729}, 4: {1.59964, 0.322462}, 8: {25.5859, 7.37193}, 12: {408.855, 143.934}} {
		require.InEpsilon(t, want.Mean, rows[n].Drawn.Mean, 0.01, n)
		require.InEpsilon(t, want.SD, rows[n].Drawn.SD, 0.03, n)
	}
	require.InDelta(t, 0.00505, rows[12].AtCap, 0.003)
}

func TestWhatIsDrawnWhenTheContextEndsIsKept(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	rows, err := waits.Ethernet(ctx, 10, 1, func() {
		if n++; n == 3 {
			cancel(over)
		}
	})
	require.Equal(t, over, err)
	require.Len(t, rows, 3)
	normals, err := waits.Normals(ctx, waits.NormalSettings()[0].Policy, 3, 10, 1, nil)
	require.Equal(t, over, err)
	require.Empty(t, normals)
	ctx, cancel = context.WithCancelCause(t.Context())
	normals, err = waits.Normals(ctx, waits.NormalSettings()[0].Policy, 3, 10, 1, func() { cancel(over) })
	require.Equal(t, over, err)
	require.Len(t, normals, 3)
	require.Equal(t, 1, normals[2].Stats.N)
}

func TestNothingToDrawIsAnError(t *testing.T) {
	_, err := waits.Users(0, 1, waits.UsersJitter, 1)
	require.ErrorContains(t, err, "want users and attempts, not 0 and 1")
	_, err = waits.Ethernet(t.Context(), 0, 1, nil)
	require.ErrorContains(t, err, "want at least one draw, not 0")
	_, err = waits.Normals(t.Context(), waits.NormalSettings()[0].Policy, 1, 0, 1, nil)
	require.ErrorContains(t, err, "want retries and draws, not 1 and 0")
	_, err = waits.Normals(t.Context(), waits.NormalSettings()[0].Policy, 100, 1_000_000, 1, nil)
	require.ErrorContains(t, err, "want at most 20000000 waits in all")
}
