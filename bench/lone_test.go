package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/fleet"
)

func TestLonePrintsARowForEachCircumstance(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "lone.svg")
	args := []string{"lone", "-seeds", "1", "-policy", "redial,fixed", "-only", "hung for", "-csv", "-", "-svg", picture}
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"circumstance", "wanted", "redial", "fixed"}, rows[0])
	want := 0
	for _, r := range circumstances() {
		if strings.Contains(r.name, "hung for") {
			want++
			require.Equal(t, r.name, rows[want][0])
			require.Regexp(t, `^\d+(\.\d)? / \d+(\.\d)?$`, rows[want][2])
		}
	}
	require.Len(t, rows, 1+want)
	again, _, _ := bench(args...)
	require.Equal(t, out, again)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(svg), ">hung for 5m0s, places lost<"))
}

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
	for _, r := range circumstances() {
		limit, ok := limits[r.name]
		if !ok {
			continue
		}
		o, err := r.run(t.Context(), redial, 2)
		require.NoError(t, err)
		require.Less(t, fleet.Quantile(o.late, 0.5).Seconds(), limit, r.name)
		if strings.HasPrefix(r.name, "hung for 5m") {
			before, err := r.run(t.Context(), paced, 2)
			require.NoError(t, err)
			require.Greater(t, fleet.Quantile(before.late, 0.5), 10*fleet.Quantile(o.late, 0.5))
		}
		delete(limits, r.name)
	}
	require.Empty(t, limits, "circumstances that there are no more")
}

func TestAFlappingServerIsUsed(t *testing.T) {
	redial, _ := fleet.Named("redial")
	for _, r := range circumstances() {
		if !strings.HasPrefix(r.name, "50 times") {
			continue
		}
		o, err := r.run(t.Context(), redial, 2)
		require.NoError(t, err)
		least, _, _ := strings.Cut(strings.TrimPrefix(r.wanted, ">= "), " %")
		percent, err := strconv.ParseFloat(least, 64)
		require.NoError(t, err)
		require.Greater(t, 100*o.up, percent-2, r.name)
		require.Less(t, o.rate, 1.0, r.name)
	}
}

func TestWrongLoneFlagsGiveOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		`-seeds must be above 0`:                 {"-seeds", "0"},
		`no circumstance has "moon" in its name`: {"-only", "moon"},
	} {
		out, errs, code := bench(append([]string{"lone"}, args...)...)
		require.Equal(t, exitUsage, code)
		require.Equal(t, "bench lone: "+want+"\n", errs)
		require.Empty(t, out)
	}
	_, errs, code := bench("lone", "-policy", "x")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, `bench lone: find policy "x": there are `)
}
