package report

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCoverSaysWhatWasSimulated(t *testing.T) {
	pic, err := Cover(context.Background(), small())
	require.NoError(t, err)
	require.Len(t, pic.Panels, len(coverClients))
	var svg bytes.Buffer
	require.NoError(t, pic.WriteSVG(&svg))
	texts := sound(t, "cover", svg.Bytes())
	require.Contains(t, texts, "N = 300, 50 handshakes/s, back at once")
	for _, name := range coverClients {
		require.Contains(t, texts, label(name)+": peak ")
	}
}

func TestTheCoverCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Cover(ctx, Options{N: 100_000})
	require.ErrorIs(t, err, context.Canceled)
}

// The numbers in the picture of the README are those of the library as it is.
func TestThePictureOfTheREADMEIsUpToDate(t *testing.T) {
	slow(t)
	stored, err := os.ReadFile("../herd.svg")
	require.NoError(t, err)
	require.Less(t, len(stored), 60_000)
	sound(t, "herd.svg", stored)
	pic, err := Cover(context.Background(), Options{Seed: 1}) // as the command has it
	require.NoError(t, err)
	var now bytes.Buffer
	require.NoError(t, pic.WriteSVG(&now))
	titles := regexp.MustCompile(`>[^<]*: peak [^<]*<`)
	want := titles.FindAllString(now.String(), -1)
	require.Len(t, want, len(coverClients))
	require.Equal(t, want, titles.FindAllString(string(stored), -1), "draw it again: cd bench && go run . report -readme herd.svg")
}
