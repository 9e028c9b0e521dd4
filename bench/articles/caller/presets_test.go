package caller

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

func TestPresetsHaveTheirNumbers(t *testing.T) {
	for tokens, want := range map[int]int{0: 1, 1: 1, -1: 1, 10: 10, 1000: 1000, math.MaxInt: 1000, math.MinInt: 1} {
		for _, ratio := range []float64{
			0, 1, -1, 0.1, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1),
		} {
			o := grpc(tokens, ratio)
			b, err := budget.New(o)
			require.NoError(t, err)
			require.Equal(t, 1000*want, b.Tokens())
			require.GreaterOrEqual(t, o.First, 1) // 0 would mean the default of New
			require.LessOrEqual(t, o.First, o.Capacity)
		}
	}
	require.Equal(t, 1, grpc(10, 0.0001).First)
	require.Equal(t, &budget.Options{
		Capacity: 10_000,
		Reserve:  5000,
		Retry:    -1,
		Failure:  1000,
		First:    100,
		Again:    100,
	}, grpc(10, 0.1))
	require.Equal(t, &budget.Options{Capacity: 500, Retry: 5, AfterOverload: 10, First: 1, Again: -1}, aws())
	require.Equal(t, &budget.Options{Capacity: 500, Retry: 14, AfterOverload: 5, First: 1, Again: -1}, aws2026())
}
