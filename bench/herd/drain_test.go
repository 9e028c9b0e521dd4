package herd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/drain"
)

func TestDrainsArePrintedForEachWayAndClient(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "drain.svg")
	args := []string{"sim", "-model", "drain", "-n", "1000", "-window", "6s", "-seeds", "2", "-svg", picture}
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	require.Equal(t, 1+2*len(drain.Ways()), len(strings.Split(strings.TrimSpace(out), "\n")), out)
	require.Regexp(t, `(?m)^ +recws +cut +0\.0 +1000 `, out)
	require.Regexp(t, `(?m)^ +redial +drain +[56]\.\d +\d\d +1\.00 +1\.[0-3] +2\.\d +\d+ +1000 +[678]\.\d *$`, out)
	require.Regexp(t, `(?m)^ +redial +notice +\d\.\d +\d\d +1\.00 +0\.0 +0\.0 +\d+ +\d+ +[56]\.\d *$`, out)
	again, _, _ := bench(args...)
	require.Equal(t, out, again)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(svg), ">centrifuge<")
}

// The command that draws it again is in README.md.
func TestThePictureOfDrainsIsThatOfTheLibrary(t *testing.T) {
	out, errs, code := bench("sim", "-model", "drain", "-way", "cut,centrifuge,batches,lame duck,drain,notice", "-seeds", "1", "-svg", "-")
	require.Zero(t, code, errs)
	svg, err := os.ReadFile("../drain.svg")
	require.NoError(t, err)
	require.True(t, out == string(svg), "drain.svg is not what the simulator draws now")
}

func TestDrainSaysWhatIsWrongWithItsFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-way drain,x":    `there is no -way "x": there are cut, `,
		"-policy x":       `there is no -policy "x": there are redial, `,
		"-window 1ms":     "want a window of 1s to 24h0m0s, not 1ms",
		"-capacity -1":    "a server cannot complete -1 handshakes per second",
		"-n 2000000":      "want 1 to 1000000 clients, not 2000000",
		"-svg /nowhere/x": "no such file or directory",
	} {
		out, errs, code := bench(append([]string{"sim", "-model", "drain"}, strings.Fields(args)...)...)
		require.NotZero(t, code, args)
		require.Contains(t, errs, want)
		require.Empty(t, out)
	}
	out, _, code := bench("sim", "-model", "drain", "-list")
	require.Zero(t, code)
	require.Contains(t, out, "drain        reconnect/drain: each has a slot of the window, in a random order, and is closed at a draw from that\n")
}
