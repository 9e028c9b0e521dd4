package peers

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASpreadHasAMiddle(t *testing.T) {
	require.Equal(t, []float64{1, 2, 9}, []float64{Spread{9, 1, 2}.Min(), Spread{9, 1, 2}.Median(), Spread{9, 1, 2}.Max()})
	require.Equal(t, 2.5, Spread{4, 1, 2, 3}.Median())
	require.True(t, math.IsInf(Spread{1, never, never}.Median(), 1))
	require.True(t, math.IsInf(Spread{never}.Min(), 1))
	require.True(t, math.IsNaN(Spread(nil).Median()))
}

// filled is a report of two rounds with a ratio, and of one without.
func filled() *Report {
	with := newResult(&row{name: "receive", title: "what comes", columns: perMessage}, []string{"coder", "coder (A/A)", "gws"})
	with.add(map[string][]float64{"coder": {100, 1}, "coder (A/A)": {110, 1}, "gws": {20, 0.5}})
	with.add(map[string][]float64{"coder": {200, 1}, "coder (A/A)": {200, 1}, "gws": {60, 0.5}})
	without := newResult(&row{name: "silent", title: "what is noticed", columns: []column{{name: "s", digits: 1}}}, []string{"coder", "nats"})
	without.add(map[string][]float64{"coder": {never}, "nats": {240}})
	with.Notes = []string{"gws: it was late"}
	empty := newResult(&row{name: "gap", title: "nothing yet", columns: perMessage}, []string{"coder"})
	return &Report{Rows: []*Result{with, without, empty}}
}

func TestARatioIsThatOfARound(t *testing.T) {
	require.Equal(t, Spread{0.2, 0.3}, filled().Rows[0].Peers[2].Ratio)
	require.Empty(t, filled().Rows[1].Peers[1].Ratio)
}

func TestATableHasEachRowThatWasMeasured(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, filled().Write(&b))
	require.Equal(t, `receive: what comes; 2 rounds: min / median / max
               ns               ratio to coder      allocations
  coder        100 / 150 / 200  1.00 / 1.00 / 1.00  1.00
  coder (A/A)  110 / 155 / 200  1.00 / 1.05 / 1.10  1.00
  gws          20 / 40 / 60     0.20 / 0.25 / 0.30  0.50
gws: it was late

silent: what is noticed; 1 round
         s
  coder  not in time
  nats   240.0

`, b.String())
}

func TestAPictureHasTheRatiosAlone(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, filled().Picture("measured somewhere").WriteSVG(&b))
	for _, text := range []string{"coder (A/A)", "gws", "0.25", "1.05", "receive", "measured somewhere"} {
		require.Contains(t, b.String(), ">"+text+"<")
	}
	require.NotContains(t, b.String(), "silent")
	require.Nil(t, (&Report{Rows: filled().Rows[1:]}).Picture(""))
}
