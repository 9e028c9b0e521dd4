package report

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestMistakesAboutTheReportAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"", "want -out DIRECTORY, or -readme FILE"},
		{"-out x -readme y.svg", "want -out DIRECTORY, or -readme FILE"},
		{"-readme y.svg -only aws", "-only says what is in a report, and -readme is one picture"},
		{"-out x -rps 0", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -seeds -1", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -capacity NaN", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -n 1000001", "draw report: a number is out of range"},
		{"-out x -only herd,nonsense", `there is no -only "nonsense": there are herd, queueing, tiers, letters, aws, storm`},
		{"-out x more", `unexpected argument "more"`},
		{"-out x -nonsense", `flag provided but not defined: -nonsense; "bench report -h" lists the flags`},
	} {
		out, errs, code := bench(strings.Fields(w.args)...)
		require.Equal(t, cli.ExitUsage, code, w.args)
		require.Equal(t, "bench report: "+w.want+"\n", errs, w.args)
		require.Empty(t, out, w.args)
		require.NoFileExists(t, "x")
	}
}

func TestTheReportSaysWhereItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "report")
	out, errs, code := bench("-out", dir, "-only", "letters")
	require.Zero(t, code, errs)
	require.Equal(t, filepath.Join(dir, "report.html")+"\n", out)
	require.FileExists(t, filepath.Join(dir, "report.html"))
	require.FileExists(t, filepath.Join(dir, "letters.svg"))
}

func TestAPlaceThatCannotBeWrittenIsOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, args := range [][]string{
		{"-out", filepath.Join(file, "x")},
		{"-readme", filepath.Join(file, "x.svg"), "-n", "100"},
	} {
		out, errs, code := bench(args...)
		require.Equal(t, cli.ExitFailed, code)
		require.Empty(t, out)
		require.Contains(t, errs, "not a directory")
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
}

func TestCtrlCKeepsWhatIsDrawn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cli.ErrInterrupted)
	dir := t.TempDir()
	out, errs, code := program.Try(ctx, "-out", dir)
	require.Equal(t, cli.ExitInterrupted, code)
	require.Equal(t, "bench report: interrupted; the results until then are kept\n", errs)
	require.Equal(t, filepath.Join(dir, "report.html")+"\n", out, "where it is kept")
}

func TestThePictureOfTheREADMEIsDrawnAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "herd.svg")
	out, errs, code := bench("-readme", file, "-n", "200", "-capacity", "50")
	require.Zero(t, code, errs)
	require.Equal(t, file+"\n", out)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(got), "<?xml"))
}
