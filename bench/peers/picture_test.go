package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/chart"
)

func TestAPictureHasTheRatiosOfEachPeer(t *testing.T) {
	picture, err := filled(t).Picture()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, picture.WriteSVG(&b))
	for _, text := range []string{"receive 128 B", "coder: 150 ns", "coder (A/A)", "gws", "0.25", "redial-push", "0.12"} {
		require.Contains(t, b.String(), ">"+text+"<")
	}
	require.Contains(t, picture.Note, "2 rounds")
	require.Contains(t, picture.Note, "2026-01-02, a machine, load average 0.50 to 1.00")
	require.NotContains(t, b.String(), "silence noticed")
	_, err = (&Report{Rows: filled(t).Rows[1:]}).Picture()
	require.Error(t, err)
}

func TestThePictureHasReceivingSendingAndIdleConnections(t *testing.T) {
	r := &Report{}
	usual, long := Rows()
	for _, name := range append(usual, long...) {
		row := result(t, name, "coder", "coder (A/A)", "redial-push")
		figures := make([]float64, len(row.Columns))
		for i := range figures {
			figures[i] = 1
		}
		row.add(map[string][]float64{"coder": figures, "coder (A/A)": figures, "redial-push": figures})
		r.Rows = append(r.Rows, row)
	}
	picture, err := r.Picture()
	require.NoError(t, err)
	var titles []string
	for _, panel := range picture.Panels {
		titles = append(titles, panel.Title)
	}
	require.Equal(t, []string{"receive 128 B", "receive 4 KiB", "send 64 x 128 B", "idle, 10,000"}, titles)
}

func TestTheBarsOfRedialHaveAColourOfTheirOwn(t *testing.T) {
	picture, err := filled(t).Picture()
	require.NoError(t, err)
	layers := picture.Panels[0].Layers
	require.Equal(t, chart.Shade{Style: noise, From: 1, To: 1.1}, layers[0], "of the second measurement of the base")
	colours := map[string]any{}
	for _, b := range layers[1].(chart.HBars).Bars {
		colours[b.Text] = b.Color
	}
	require.Equal(t, map[string]any{"1.00": chart.Grey, "1.05": chart.Grey, "0.25": chart.Grey, "0.12": chart.Green}, colours)
	require.Equal(t, redialing, styleOf("nats"))
}

func TestTheAxisOfRatiosHasRoomForAllOfThem(t *testing.T) {
	rows := filled(t).Rows[:1]
	rows[0].peer("gws").Figures[0] = Spread{-5, 4000} // what few connections hold may seem to be less than nothing
	x := ratioAxis(rows)
	require.Less(t, x.Min, 0.1)
	require.Greater(t, x.Max, 20.)
	rows[0].peer("gws").Figures[0] = Spread{1e-300, 1e300}
	x = ratioAxis(rows)
	require.Greater(t, x.Min, 1e-12)
	require.Less(t, x.Max, 1e12)
}
