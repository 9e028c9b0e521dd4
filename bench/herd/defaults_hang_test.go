package herd

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The wishes for herds are met within 3 %. The larger ones are left out by -short
// and -race.
func TestHerdsComeBackAsWanted(t *testing.T) {
	m := &tableMaker{ctx: t.Context(), largest: 50_000, workers: 1}
	if raceEnabled || testing.Short() {
		m.largest = 10_000
	}
	met := 0
	for _, r := range m.herdRows() {
		if r.wanted == "" {
			continue
		}
		cell := r.cell(client("redial"))
		require.NoError(t, m.err)
		if cell == "-" {
			continue
		}
		require.LessOrEqual(t, firstFigure(t, cell), 1.03*firstFigure(t, r.wanted), "%s: %s, wanted %s", r.name, cell, r.wanted)
		met++
	}
	require.GreaterOrEqual(t, met, 6)
}

// firstFigure returns the number with which a cell begins.
func firstFigure(t *testing.T, cell string) float64 {
	t.Helper()
	cell, _, _ = strings.Cut(cell, ";")
	x, err := strconv.ParseFloat(strings.TrimSuffix(cell, " s"), 64)
	require.NoError(t, err)
	return x
}

func TestSpreadShowsTheLeastAndTheGreatest(t *testing.T) {
	for want, figures := range map[string][]float64{
		"never": nil, "1.00 to 2.50": {2, 1, 2.5}, "1.00": {1, 1.001, 1}, "1.00 to 2.00, 1 of 3 never": {2, 1},
	} {
		require.Equal(t, want, spread(figures, 3))
	}
}

// The smallest herd of the table that comes back late, and what brings it back.
func TestAHungHerdBeforeAnUnboundedQueueIsLate(t *testing.T) {
	m := &tableMaker{ctx: t.Context(), largest: 12_000, workers: 1}
	for _, c := range cures() {
		late := firstFigure(t, m.range99(c.apply(swallowed(12_000, 12*time.Second)), 1))
		require.NoError(t, m.err)
		if c.name == "redial" {
			require.Greater(t, late, 10.0)
		} else {
			require.Less(t, late, 2.5, c.name)
		}
	}
}
