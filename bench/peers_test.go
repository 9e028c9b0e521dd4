package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMistakesAboutPeersAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"-only nonsense", `find row "nonsense": there are receive-128, receive-4k, send-64, echo-64, tls-redial, idle-1000, `},
		{"-only receive-128,", `find row "": there are receive-128, `},
		{"-peers coder,nonsense", `find peer "nonsense": there are coder, coder-reader, `},
		{"-rounds 0", "want at least one of -rounds, not 0"},
		{"-svg /nonexistent/peers.svg", "open /nonexistent/peers.svg: no such file or directory"},
		{"more", `unexpected argument "more"`},
	} {
		out, errs, code := bench(append([]string{"peers"}, strings.Fields(w.args)...)...)
		require.Equal(t, exitUsage, code, w.args)
		require.Contains(t, errs, "bench peers: "+w.want, w.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), w.args)
		require.Empty(t, out, w.args)
	}
}

func TestAFewPeersAreMeasuredAndDrawn(t *testing.T) {
	t.Parallel()
	svg := filepath.Join(t.TempDir(), "peers.svg")
	out, errs, code := bench("peers", "-only", "tls-redial", "-peers", "tcp,redial-framed", "-rounds", "1", "-svg", svg)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?s)^tls-redial: .*\n  coder .*\n  coder \(A/A\) .*\n  tcp .*\n  redial-framed .*load average`, out)
	picture, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(picture), ">redial-framed<")
}

func TestAPictureWithoutRatiosIsAnError(t *testing.T) {
	t.Parallel()
	_, errs, code := bench("peers", "-only", "killed", "-peers", "redial-run", "-rounds", "1", "-svg", filepath.Join(t.TempDir(), "peers.svg"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "none of the rows has ratios")
}
