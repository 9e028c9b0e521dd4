package report

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

func TestEachTimeThatAServerIsAwayIsShaded(t *testing.T) {
	want := map[string]int{"hang": 1, "hang_busy": 1, "flapping": 11, "ramp": 1, "rolling": 10, "half": 0}
	for _, s := range spellSettings(Options{N: 300, Capacity: 50}) {
		shades := outages(s.herd)
		require.Len(t, shades, want[s.id], s.id)
		delete(want, s.id)
		if n := len(shades); n > 0 {
			require.Equal(t, s.herd.Return().Seconds(), shades[n-1].(chart.Shade).To, s.id)
		}
	}
	require.Empty(t, want)
}

func TestASpreadStartIsNoPeak(t *testing.T) {
	f, err := drawStart(context.Background(), Options{N: 1000, Capacity: 500, Seeds: 1, Seed: 1})
	require.NoError(t, err)
	peak := func(row int) string { return f.Tables[0].Rows[row][5] }
	require.Equal(t, "1,000", peak(0), "all at once")
	require.Regexp(t, `^[56]\d$`, peak(2), "a twentieth of them, and chance")
	require.Contains(t, f.Pictures[0].Panels[0].Title, "all up after")
	require.Equal(t, "time since the start, s", f.Pictures[1].Panels[0].X.Label)
}

func TestAHerdThatIsLostAgainAndAgainIsShownByHowLongItWasAway(t *testing.T) {
	for _, s := range spellSettings(Options{N: 300, Capacity: 50, Seed: 1}) {
		if s.id != "flapping" {
			continue
		}
		f, err := drawSetting(context.Background(), Options{Seeds: 1, Seed: 1}, s)
		require.NoError(t, err)
		require.Len(t, f.Tables[0].Rows, len(compared))
		for _, row := range f.Tables[0].Rows {
			require.Len(t, row, len(f.Tables[0].Head))
		}
		require.Regexp(t, `^3\d\.\d$`, f.Tables[0].Rows[0][1], "the library is up for a third of the time, of at most a half")
	}
}

func TestALineOfThoseWhoAreBackEndsWhereItStops(t *testing.T) {
	const second = time.Second
	late := []time.Duration{second, 2 * second, fleet.Never, fleet.Never}
	require.Equal(t, []chart.Point{{}, {X: 5}, {X: 6, Y: 25}, {X: 7, Y: 50}, {X: 60, Y: 50}}, backOverTime(late, 5*second, 60))
}
