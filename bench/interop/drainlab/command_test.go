package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestDrainBenchSaysWhatIsWrongWithItsFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for args, want := range map[string]struct {
		text string
		code int
	}{
		"-way x":                 {`drainlab: there is no -way "x": there are cut, drain, notice, notice all`, cli.ExitUsage},
		"-policy x":              {`drainlab: there is no -policy "x": `, cli.ExitUsage},
		"-policy equal:bas=1s":   {`drainlab: -policy equal: there is no option "bas" (is it "base"?)`, cli.ExitUsage},
		"-policy equal,fixed":    {"drainlab: want one -policy, not 2", cli.ExitUsage},
		"-policy all":            {"drainlab: want one -policy, not ", cli.ExitUsage},
		"-n 60000":               {"drainlab: want 1 to 50000 clients, not 60000", cli.ExitUsage},
		"-rounds 0":              {`drainlab: invalid value "0" for flag -rounds`, cli.ExitUsage},
		"-rate -1":               {"drainlab: want above 0 and at most 1000 messages per second for each client, not -1", cli.ExitUsage},
		"-json - -markdown -":    {"drainlab: -json and -markdown cannot both go to standard output", cli.ExitUsage},
		"-from " + empty:         {"there are no runs in it", cli.ExitFailed},
		"-from /nowhere/at.json": {"no such file or directory", cli.ExitFailed},
	} {
		out, errs, code := program.Try(t.Context(), strings.Fields(args)...)
		require.Equal(t, want.code, code, args)
		require.Contains(t, errs, want.text)
		require.Empty(t, out)
	}
}

func TestDrainsAreReadFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drain.json")
	saved := drainFile{Clients: 9, Window: "10s", Lead: "1s", Rate: 2, Policy: "redial", Conditions: "a quiet machine"}
	for i := range 3 {
		saved.Runs = append(saved.Runs, &Result{Way: "drain", Peak: 10 * i, Away: float64(i), Sent: 5, Lost: uint64(i)})
	}
	saved.Runs = append(saved.Runs, &Result{Way: "notice", Twice: 7})
	text, err := json.Marshal(saved)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, errs, code := program.Try(t.Context(), "-from", file, "-markdown", "-")
	require.Zero(t, code, errs)
	lines := strings.Split(out, "\n")
	require.Equal(t, "| drain | 3 | 10 | 0 | 0 | 0.00 | 1.00 | 0.0 | 0.0 | 15 | 3 | 0 |", lines[2], "medians, and sums of messages")
	require.Equal(t, "| notice | 1 | 0 | 0 | 0 | 0.00 | 0.00 | 0.0 | 0.0 | 0 | 0 | 7 |", lines[3])
	out, _, _ = program.Try(t.Context(), "-from", file)
	require.Contains(t, out, "9 clients, window 10s, lead 1s, 2 messages/s each way and client, policy redial; a quiet machine\n")
}

func TestDrainsAreMeasuredAndKept(t *testing.T) {
	if _, err := FindHAProxy(); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "drain.json")
	out, errs, code := program.Try(t.Context(), "-n", "20", "-window", "1s", "-lead", "300ms", "-rounds", "1", "-way", "drain", "-policy", "equal:base=200ms,cap=2s", "-json", file)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^ +drain +1 +\d+ +\d+ +20 `, out)
	saved, err := readDrains(file)
	require.NoError(t, err)
	require.Len(t, saved.Runs, 1)
	require.Zero(t, saved.Runs[0].Lost)
	require.Equal(t, "equal:base=200ms,cap=2s", saved.Policy)
}

func TestTheHelpFitsOnAScreenAndHasAnExample(t *testing.T) {
	out, errs, code := program.Try(t.Context(), "-h")
	require.Zero(t, code, errs)
	require.LessOrEqual(t, strings.Count(out, "\n"), 40)
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(line), 101, line)
	}
	require.Contains(t, out, "\nexample: drainlab -")
}
