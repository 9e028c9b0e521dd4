package classic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/classic"
)

func TestGrowIsExactForWholeFactors(t *testing.T) {
	for n := range 55 {
		require.Equal(t, time.Duration(min(int64(7)<<n, 1<<60)), classic.Grow(7, 2, n, 1<<60), "n %d", n)
	}
	require.Equal(t, time.Duration(1<<60), classic.Grow(7, 2, 70, 1<<60))
	require.Equal(t, time.Duration(567), classic.Grow(7, 3, 4, 1000))
}
