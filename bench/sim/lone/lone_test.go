package lone_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/sim/fleet"
	"github.com/redial-go/redial/bench/sim/lone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a lone client was promised: with few seeds only the direction.
func TestALoneClientIsBackSoon(t *testing.T) {
	redial, _ := fleet.Named("redial")
	paced, _ := fleet.Named("paced")
	limits := map[string]float64{
		"refused for 1 s":                      1.5,
		"hung for 5m0s, places lost":           20,
		"hung for 1m0s, places kept":           1,
		"503 for 1 h, then hung for 60 s":      20,
		"silent for 5 min, then hung for 20 s": 20,
		"refused for 1 to 60 min":              8,
		"503 for an hour":                      12,
		"black hole for 5 min":                 8,
		"of two addresses the first hangs":     15,
	}
	for _, r := range lone.Circumstances() {
		limit, ok := limits[r.Name]
		if !ok {
			continue
		}
		o, err := r.Run(t.Context(), redial, 2, 1)
		require.NoError(t, err)
		require.Less(t, fleet.Quantile(o.Late, 0.5).Seconds(), limit, r.Name)
		if strings.HasPrefix(r.Name, "hung for 5m") {
			before, err := r.Run(t.Context(), paced, 2, 1)
			require.NoError(t, err)
			require.Greater(t, fleet.Quantile(before.Late, 0.5), 10*fleet.Quantile(o.Late, 0.5))
		}
		delete(limits, r.Name)
	}
	require.Empty(t, limits, "circumstances that there are no more")
}

func TestAFlappingServerIsUsed(t *testing.T) {
	redial, _ := fleet.Named("redial")
	for _, r := range lone.Circumstances() {
		if !strings.HasPrefix(r.Name, "50 times") {
			continue
		}
		o, err := r.Run(t.Context(), redial, 2, 1)
		require.NoError(t, err)
		least, _, _ := strings.Cut(strings.TrimPrefix(r.Wanted, ">= "), " %")
		percent, err := strconv.ParseFloat(least, 64)
		require.NoError(t, err)
		require.Greater(t, 100*o.Up, percent-2, r.Name)
		require.Less(t, o.Rate, 1.0, r.Name)
	}
}
