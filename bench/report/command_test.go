package report

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/articles"
	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/stretchr/testify/require"
)

func TestMistakesAboutTheReportAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"", "want -out DIRECTORY, or -readme DIRECTORY"},
		{"-out x -readme y", "want -out DIRECTORY, or -readme DIRECTORY"},
		{"-readme y -only aws", "-only says what is in a report, and -readme is two pictures"},
		{"-out x -rps 0", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -seeds -1", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -capacity NaN", "-rps, -seeds, -n and -capacity must be above 0"},
		{"-out x -n 1000001", "draw report: a number is out of range"},
		{"-out x -only herd,nonsense", `there is no -only "nonsense": there are herd, queueing, tiers, letters, aws, storm`},
		{"-out x -scenario mfs -only aws", "-scenario is all that is in a report"},
		{"-out x -scenario mfx", `find scenario "mfx": there is none of that name (is it "mfs"?): -list names them`},
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

func TestREADMEPicturesDrawnAlone(t *testing.T) {
	dir := t.TempDir()
	_, errs, code := bench("-readme", dir, "-n", "200", "-capacity", "50")
	require.Zero(t, code, errs)
	for _, name := range []string{"herd.svg", "lockstep.svg"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(got), "<?xml"))
	}
}

// The commands on a scenario's page print the page's table and draw its pictures.
func TestTheCommandsOfAScenarioMakeIt(t *testing.T) {
	o, err := Options{RPS: 500, Seeds: 1, Seed: 1}.withDefaults()
	require.NoError(t, err)
	bench := cli.Program{Name: "bench", Commands: []cli.Command{Command(), cli.Sim(articles.Models())}}
	for _, p := range []plan{queueingPlan(o), tiersPlan(o)} {
		for i, d := range p.figures {
			if p.id == "tiers" && i > 0 {
				break // an hour each
			}
			f, err := d(t.Context())
			require.NoError(t, err)
			dir := t.TempDir()
			run := func(command string) string {
				args, ok := strings.CutPrefix(command, "go run . ")
				require.True(t, ok, command)
				out, errs, code := bench.Try(t.Context(), strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)
				require.Zero(t, code, errs)
				return out
			}
			require.Len(t, f.Commands, 2, f.Title)
			if p.id == "queueing" {
				run(f.Commands[1])
				require.FileExists(t, filepath.Join(dir, f.Pictures[0].Name+".svg"))
			}
			out := run(f.Commands[0])
			if strings.HasSuffix(f.Commands[0], " -csv -") {
				requireRows(t, out, f.Tables[0])
				continue
			}
			var printed strings.Builder
			require.NoError(t, f.Tables[0].Print(&printed))
			require.Contains(t, out, printed.String(), f.Commands[0])
		}
	}
}

// requireRows finds the calls under way of each row of the table of Little's law in a CSV.
func requireRows(t *testing.T, text string, rows table.Table) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	column := slices.Index(lines[0], "under_way")
	for _, row := range rows[1:] {
		i := slices.IndexFunc(lines, func(line []string) bool { return line[1] == row[0] && line[4]+" s" == row[1] })
		require.Positive(t, i, row)
		calls, err := strconv.ParseFloat(lines[i][column], 64)
		require.NoError(t, err)
		require.Equal(t, row[2], decimal(calls, 0), row)
	}
}

func TestOnesOwnScenarioIsDrawnAlone(t *testing.T) {
	s, err := queueing.Find("retry_cb_or_budget_vs_exp_backoff")
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(s.File()), s.Name, "mine", 1)), 0o600))
	out, errs, code := bench("-out", dir, "-rps", "500", "-seeds", "1", "-scenario", file)
	require.Zero(t, code, errs)
	require.Equal(t, filepath.Join(dir, "report.html")+"\n", out)
	require.FileExists(t, filepath.Join(dir, "queueing_mine.svg"))
	require.Contains(t, html(t, dir), "go run . sim -scenario "+file+" -rps 500 -seeds 1 -seed 1 -bucket 20ms")
	require.NotContains(t, html(t, dir), "simple_retry_only")
}

func TestOnesOwnServicesInARowAreDrawnAlone(t *testing.T) {
	s, err := tiers.Find("two_tiers")
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.json")
	own := strings.Replace(strings.Replace(string(s.File()), s.Name, "mine", 1), `"rps": 40000`, `"rps": 500`, 1)
	require.NoError(t, os.WriteFile(file, []byte(own), 0o600))
	_, errs, code := bench("-out", dir, "-scenario", file)
	require.Zero(t, code, errs)
	require.FileExists(t, filepath.Join(dir, "tiers_mine.svg"))
	require.Contains(t, html(t, dir), "go run . sim -model tiers -scenario "+file+" -seed 1")
	require.NotContains(t, html(t, dir), "incident_shedding")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(own, `"capacity"`, `"capacty"`, 1)), 0o600))
	_, errs, code = bench("-out", dir, "-scenario", file)
	require.Equal(t, 2, code)
	require.Contains(t, errs, `there is no key "capacty" (is it "capacity"?)`)
}

func TestStrategiesOfOneFamilyLookDifferent(t *testing.T) {
	looks := map[string]bool{}
	for _, s := range stylesOf([]*queueing.Series{{Strategy: "retry once"}, {Strategy: "retry twice"}, {Strategy: "retry often"}, {Strategy: "retry always"}, {Strategy: "mine"}}) {
		looks[fmt.Sprint(s.Color, s.Dash, s.Width)] = true
	}
	require.Len(t, looks, 5)
}
