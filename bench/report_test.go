package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMistakesAboutTheReportAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"", "want -out DIRECTORY, or -readme FILE"},
		{"-out x -readme y.svg", "want -out DIRECTORY, or -readme FILE"},
		{"-readme y.gif", "want a file that ends in .svg or .png as -readme, not y.gif"},
		{"-readme y.svg -only aws", "-only, -herd and -peers say what is in a report, and -readme is one picture"},
		{"-out x -rps 0", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -seeds -1", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -capacity NaN", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -n 1000001", "draw report: a number is out of range"},
		{"-out x -only herd,nonsense", `find chapter "nonsense": there are herd, spells, lone, real, peers, queueing, tiers, letters, aws, storm`},
		{"-out x -herd missing.csv", "read herd missing.csv: no such file or directory"},
		{"-out x more", `unexpected argument "more"`},
		{"-out x -nonsense", `flag provided but not defined: -nonsense; "bench report -h" lists the flags`},
	} {
		out, errs, code := bench(append([]string{"report"}, strings.Fields(w.args)...)...)
		require.Equal(t, exitUsage, code, w.args)
		require.Equal(t, "bench report: "+w.want+"\n", errs, w.args)
		require.Empty(t, out, w.args)
		require.NoFileExists(t, "x")
	}
}

func TestTheReportSaysWhereItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "report")
	out, errs, code := bench("report", "-out", dir, "-only", "letters")
	require.Zero(t, code, errs)
	require.Equal(t, filepath.Join(dir, "report.html")+"\n", out)
	require.FileExists(t, filepath.Join(dir, "report.html"))
	require.FileExists(t, filepath.Join(dir, "letters.svg"))
}

func TestAPlaceThatCannotBeWrittenIsOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, args := range [][]string{
		{"report", "-out", filepath.Join(file, "x")},
		{"report", "-readme", filepath.Join(file, "x.svg"), "-n", "100"},
	} {
		out, errs, code := bench(args...)
		require.Equal(t, exitFailed, code)
		require.Empty(t, out)
		require.Contains(t, errs, "not a directory")
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
}

func TestCtrlCKeepsWhatIsDrawn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	dir := t.TempDir()
	var out, errs bytes.Buffer
	code := dispatch(ctx, &console{out: &out, errs: &errs}, []string{"report", "-out", dir})
	require.Equal(t, exitInterrupted, code)
	require.Equal(t, "bench: interrupted; the results until then are kept\n", errs.String())
	require.Equal(t, filepath.Join(dir, "report.html")+"\n", out.String(), "where it is kept")
}

func TestThePictureOfTheREADMEIsSVGOrPNG(t *testing.T) {
	for ending, begin := range map[string]string{".svg": "<?xml", ".png": "\x89PNG"} {
		file := filepath.Join(t.TempDir(), "herd"+ending)
		out, errs, code := bench("report", "-readme", file, "-n", "200", "-capacity", "50")
		require.Zero(t, code, errs)
		require.Equal(t, file+"\n", out)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(got), begin))
	}
}
