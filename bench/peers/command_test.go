package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestMistakesAboutPeersAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"-only nonsense", `there is no row "nonsense": there are receive-128, receive-4k, send-64, echo-64, echo-1, latency, machine, tls-redial, idle-1000, `},
		{"-only receive-128,", `there is no row "": there are receive-128, `},
		{"-peers coder,nonsense", `there is no peer "nonsense": there are coder, coder-reader, `},
		{"-from x.json -rounds 3 -only gap", "-from measures nothing, and -only, -rounds is about a measurement"},
		{"-json - -svg -", "-json and -svg cannot both go to standard output"},
		{"-rounds 0", `invalid value "0" for flag -rounds: must be a whole number, at least 1`},
		{"-svg /nonexistent/peers.svg", "open /nonexistent/peers.svg: no such file or directory"},
		{"more", `unexpected argument "more"`},
	} {
		out, errs, code := program.Try(t.Context(), strings.Fields(w.args)...)
		require.Equal(t, cli.ExitUsage, code, w.args)
		require.Contains(t, errs, "peers: "+w.want, w.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), w.args)
		require.Empty(t, out, w.args)
	}
}

func TestAFewPeersAreMeasuredAndDrawn(t *testing.T) {
	t.Parallel()
	svg := filepath.Join(t.TempDir(), "peers.svg")
	out, errs, code := program.Try(t.Context(), "-only", "tls-redial", "-peers", "tcp,redial-framed", "-rounds", "1", "-svg", svg)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?s)^tls-redial: .*\n  coder .*\n  coder \(A/A\) .*\n  tcp .*\n  redial-framed .*load average`, out)
	picture, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(picture), ">redial-framed<")
}

// measuredOnce measures one row with few peers into a file of -json.
func measuredOnce(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "peers.json")
	_, errs, code := program.Try(t.Context(), "-only", "tls-redial", "-peers", "tcp", "-rounds", "1", "-json", name)
	require.Zero(t, code, errs)
	return name
}

func TestWhatWasMeasuredIsPrintedAndDrawnAgain(t *testing.T) {
	t.Parallel()
	name := measuredOnce(t)
	out, errs, code := program.Try(t.Context(), "-from", name)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?s)^tls-redial: .*\n  coder .*\n  coder \(A/A\) .*\n  tcp .*load average`, out)
	out, table, code := program.Try(t.Context(), "-from", name, "-markdown", "-")
	require.Zero(t, code)
	require.Regexp(t, `(?s)^\|  \| TLS redial, client \| TLS redial, server, µs \| TLS sessions resumed \|\n.*\n\| tcp \| [\d.]+ \| [\d,]+ \| 0.00 \|\n\nMeasured .*, 1 round\.\n$`, out)
	require.Contains(t, table, "tls-redial: ", "the table is on the other stream")
	svg := filepath.Join(t.TempDir(), "peers.svg")
	_, errs, code = program.Try(t.Context(), "-from", "../peers.json", "-svg", svg)
	require.Zero(t, code, errs)
	require.FileExists(t, svg)
}

func TestAFileKeepsTheRowsThatAreNotMeasuredAgain(t *testing.T) {
	t.Parallel()
	name := measuredOnce(t)
	_, errs, code := program.Try(t.Context(), "-only", "killed", "-peers", "redial-run", "-rounds", "1", "-json", name)
	require.Zero(t, code, errs)
	out, _, _ := program.Try(t.Context(), "-from", name)
	require.Regexp(t, `(?s)^tls-redial: .*\n  tcp .*\nkilled: .*\n  redial-run `, out)
}

func TestAFileThatIsNoMeasurementIsAnErrorBeforeAnythingIsMeasured(t *testing.T) {
	name := filepath.Join(t.TempDir(), "peers.json")
	require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	for _, args := range [][]string{
		{"-json", name}, {"-from", name},
	} {
		out, errs, code := program.Try(t.Context(), args...)
		require.NotZero(t, code)
		require.Equal(t, "peers: read peers "+name+": there are no rows\n", errs)
		require.Empty(t, out)
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
}

// The figures in peers.json, their picture in peers.svg, and the table in README.md come from one run.
func TestThePictureAndTheTableAreThoseOfTheStoredRun(t *testing.T) {
	report, err := ReadFile("../peers.json")
	if errors.Is(err, fs.ErrNotExist) {
		require.NoFileExists(t, "../peers.svg", "its figures are missing")
		return
	}
	require.NoError(t, err)
	var svg bytes.Buffer
	picture, err := report.Picture()
	require.NoError(t, err)
	require.NoError(t, picture.WriteSVG(&svg))
	stored, err := os.ReadFile("../peers.svg")
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	const again = "write both again: go run . -from ../peers.json -svg ../peers.svg -markdown -"
	texts := regexp.MustCompile(`>[^<>]+</text>`)
	require.Equal(t, texts.FindAllString(svg.String(), -1), texts.FindAllString(string(stored), -1), again)
	require.Contains(t, string(readme), report.Markdown(), again)
}

func TestAPictureWithoutRatiosIsAnError(t *testing.T) {
	t.Parallel()
	_, errs, code := program.Try(t.Context(), "-only", "killed", "-peers", "redial-run", "-rounds", "1", "-svg", filepath.Join(t.TempDir(), "peers.svg"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "none of the rows has ratios")
}

func TestTheHelpFitsOnAScreenAndHasAnExample(t *testing.T) {
	out, errs, code := program.Try(t.Context(), "-h")
	require.Zero(t, code, errs)
	require.LessOrEqual(t, strings.Count(out, "\n"), 40)
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(line), 101, line)
	}
	require.Contains(t, out, "\nexample: peers -")
}
