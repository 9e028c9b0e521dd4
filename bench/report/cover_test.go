package report

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/chart"
)

func TestTheCoverSaysWhatWasSimulated(t *testing.T) {
	pic, err := Cover(context.Background(), small())
	require.NoError(t, err)
	require.Len(t, pic.Panels, len(coverClients))
	var svg bytes.Buffer
	require.NoError(t, pic.WriteSVG(&svg))
	texts := sound(t, "cover", svg.Bytes())
	require.Contains(t, texts, "N = 300, 50 handshakes/s, back at once")
	for i, name := range coverClients {
		require.Contains(t, texts, name+": peak ")
		require.Contains(t, texts, map[string]string{
			"redial": "limit on a dial: 16 s to connect; 10 s later it dials beside it",
			"full":   "limit on a dial: 20 s, chosen here (it has none of its own)",
			"nats":   "limit on a dial: 2 s",
			"recws":  "limit on a dial: 2 s",
			"fixed":  "limit on a dial: 20 s, chosen here (it has none of its own)",
			"grpc":   "limit on a dial: 20 s, or its wait if that is longer",
		}[name])
		require.IsType(t, chart.Steps{}, pic.Panels[i].Layers[0], "no filled bars on a logarithmic axis")
	}
}

// The picture, the tables of the report and "bench sim -model fleet" have one figure for one
// thing.
func TestThePeaksOfTheCoverAreThoseOfTheTable(t *testing.T) {
	o := small()
	o.Seeds = 3
	pic, err := Cover(context.Background(), o)
	require.NoError(t, err)
	f, err := drawSetting(context.Background(), o, settings(o)[0])
	require.NoError(t, err)
	require.Equal(t, "peak_per_100ms", f.Tables[0][0][7])
	peaks := map[string]string{}
	for _, row := range f.Tables[0][1:] {
		peaks[row[0]] = row[7]
	}
	for i, name := range coverClients {
		require.Contains(t, pic.Panels[i].Title, name+": peak "+peaks[name]+";")
	}
}

func TestTheCoverCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Cover(ctx, Options{N: 100_000})
	require.ErrorIs(t, err, context.Canceled)
}

// The numbers in the pictures of the READMEs are those of the library as it is.
func TestREADMEPicturesUpToDate(t *testing.T) {
	slow(t)
	for _, draw := range readmePictures {
		pic, err := draw(context.Background(), Options{Seed: 1}) // as the command has it
		require.NoError(t, err)
		file := pic.Name + ".svg"
		stored, err := os.ReadFile("../" + file)
		require.NoError(t, err)
		require.Less(t, len(stored), 60_000)
		sound(t, file, stored)
		var now bytes.Buffer
		require.NoError(t, pic.WriteSVG(&now))
		titles := regexp.MustCompile(`>[^<]*(: peak |limit on a dial)[^<]*<`)
		want := titles.FindAllString(now.String(), -1)
		require.GreaterOrEqual(t, len(want), len(pic.Panels))
		got := titles.FindAllString(string(stored), -1)
		require.Equal(t, want, got, "%s is out of date: cd bench && go run . report -readme .", file)
	}
}
