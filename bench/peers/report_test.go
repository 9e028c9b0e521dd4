package main

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/cli"
)

func TestASpreadHasAMiddle(t *testing.T) {
	require.Equal(t, []float64{1, 2, 9}, []float64{Spread{9, 1, 2}.Min(), Spread{9, 1, 2}.Median(), Spread{9, 1, 2}.Max()})
	require.Equal(t, 2.5, Spread{4, 1, 2, 3}.Median())
	require.True(t, math.IsInf(Spread{1, never, never}.Median(), 1))
	require.True(t, math.IsInf(Spread{never}.Min(), 1))
	require.True(t, math.IsNaN(Spread(nil).Median()))
}

// conditions are those of all results of the tests.
var conditions = cli.Conditions{Date: "2026-01-02", Machine: "a machine", Load: [2]float64{0.5, 1}, Took: "1s"}

// result is a row as it is now, with a few peers and without figures.
func result(t testing.TB, name string, peers ...string) *Result {
	t.Helper()
	r, err := findRow(rowsOf(fullSizes), name)
	require.NoError(t, err)
	r.title = "what is measured"
	filled := newResult(r, peers)
	filled.Measured = conditions
	return filled
}

// filled is a report of two rounds with ratios, one without, and a row without figures.
func filled(t testing.TB) *Report {
	t.Helper()
	with := result(t, "receive-128", "coder", "coder (A/A)", "gws", "redial-push")
	with.add(map[string][]float64{"coder": {100, 1, 1}, "coder (A/A)": {110, 1, 1}, "gws": {20, 0.5, 1}, "redial-push": {10, 0, 1}})
	with.add(map[string][]float64{"coder": {200, 1, 1}, "coder (A/A)": {200, 1, 1}, "gws": {60, 0.5, 1}, "redial-push": {28, 0, 1}})
	with.Notes = []string{"gws: it was late"}
	without := result(t, "silent", "coder", "nats")
	without.add(map[string][]float64{"coder": {never}, "nats": {240}})
	return &Report{Rows: []*Result{with, without, result(t, "gap", "nats")}}
}

func TestARatioIsThatOfARound(t *testing.T) {
	rows := filled(t).Rows
	require.Equal(t, Spread{0.2, 0.3}, rows[0].ratio(rows[0].peer("gws"), 0))
	require.Empty(t, rows[1].ratio(rows[1].peer("nats"), 0))
}

func TestATableHasEachRowThatWasMeasured(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, filled(t).Write(&b))
	require.Equal(t, `receive-128: what is measured; 2 rounds: min / median / max
               ns               ratio to coder      allocations  busy
  coder        100 / 150 / 200  1.00 / 1.00 / 1.00  1.00         1.00
  coder (A/A)  110 / 155 / 200  1.00 / 1.05 / 1.10  1.00         1.00
  gws          20 / 40 / 60     0.20 / 0.25 / 0.30  0.50         1.00
  redial-push  10 / 19 / 28     0.10 / 0.12 / 0.14  0.00         1.00
gws: it was late
2026-01-02, a machine, load average 0.50 before and 1.00 after; took 1s

silent: what is measured; 1 round
         s
  coder  not in time
  nats   240.0
2026-01-02, a machine, load average 0.50 before and 1.00 after; took 1s

`, b.String())
}

// residents is a row with two columns that have ratios.
func residents(t testing.TB) *Report {
	t.Helper()
	row := result(t, "idle-1000", "coder", "coder (A/A)", "gws")
	row.add(map[string][]float64{
		"coder": {100, 1, 2000, 1, 1}, "coder (A/A)": {110, 1, 2200, 1, 1}, "gws": {50, 1, 500, 1, 1},
	})
	row.add(map[string][]float64{
		"coder": {200, 1, 1000, 1, 1}, "coder (A/A)": {200, 1, 1300, 1, 1}, "gws": {60, 1, 750, 1, 1},
	})
	return &Report{Rows: []*Result{row}}
}

func TestEachColumnWithRatiosHasItsOwn(t *testing.T) {
	r := residents(t)
	row := r.Rows[0]
	require.Equal(t, Spread{0.5, 0.3}, row.ratio(row.peer("gws"), 0))
	require.Equal(t, Spread{0.25, 0.75}, row.ratio(row.peer("gws"), 2))
	require.Empty(t, row.ratio(row.peer("gws"), 1))
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	gws := `  gws          50 / 55 / 60     0.30 / 0.40 / 0.50  1  +500 / 625 / 750     0.25 / 0.50 / 0.75  1.0 `
	require.Regexp(t, gws, b.String())
}

func TestSystemWithoutResidentMemoryHasNoRatio(t *testing.T) {
	row := result(t, "idle-1000", "coder", "gws")
	row.add(map[string][]float64{"coder": {100, 1, 0, 1, 1}, "gws": {50, 1, 0, 1, 1}})
	require.Empty(t, row.ratio(row.peer("gws"), 2))
	require.Equal(t, "-", row.cell("gws", 2))
}
