package herd

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/lone"
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
	for _, r := range lone.Circumstances() {
		if strings.Contains(r.Name, "hung for") {
			want++
			require.Equal(t, r.Name, rows[want][0])
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

func TestWrongLoneFlagsGiveOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		`invalid value "0" for flag -seeds: must be a whole number, at least 1`: {"-seeds", "0"},
		`no circumstance has "moon" in its name; "bench lone -seeds 1" prints `: {"-only", "moon"},
	} {
		out, errs, code := bench(append([]string{"lone"}, args...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, "bench lone: "+want)
		require.Empty(t, out)
	}
	_, errs, code := bench("lone", "-policy", "x")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `bench lone: there is no -policy "x": there are `)
}
