package herd

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
)

func TestFleetPrintsOneLineForEachClient(t *testing.T) {
	out, _, code := bench("sim", "-model", "fleet", "-n", "200", "-seeds", "1", "-policy", "redial,grpc:limit=2s", "-csv", "-")
	require.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "client,recovered,ideal_s,t50_s,t99_s,t100_s,t99_over_ideal,peak_per_100ms,dials_per_client,syns_per_client,refused_per_client,wasted_per_client,up_at_end", lines[0])
	require.True(t, strings.HasPrefix(lines[1], "redial,1/1,0.40,"), lines[1])
	require.True(t, strings.HasPrefix(lines[2], `grpc:limit=2s,1/1,0.40,`), lines[2])
	again, _, _ := bench("sim", "-model", "fleet", "-n", "200", "-seeds", "1", "-policy", "redial,grpc:limit=2s", "-csv", "-")
	require.Equal(t, out, again)
}

func TestFleetKnowsProcesses(t *testing.T) {
	out, errs, code := bench("sim", "-model", "fleet", "-n", "2000", "-processes", "1", "-outage", "0", "-seeds", "1", "-csv", "-")
	require.Zero(t, code, errs)
	cells := strings.Split(strings.Split(out, "\n")[1], ",")
	require.Equal(t, []string{"redial", "1/1", "4.00"}, cells[:3])
	peak, err := strconv.Atoi(cells[7])
	require.NoError(t, err)
	require.LessOrEqual(t, peak, 60, "a burst of 10, and then 500 per second; without a gate twice as many")
}

// The jitter article's figures: with a fixed pause all clients come in the same instants, and with
// exponential backoff too, in fewer of them. Between them there is nothing.
func TestAHerdWithoutJitterComesInPulses(t *testing.T) {
	out, errs, code := bench(strings.Fields("sim -model fleet -n 5000 -outage 20 -capacity 1e6 -watch 20 -seeds 1 -policy fixed,exponential,full:base=1s,equal,proportional:base=2s -series -")...)
	require.Zero(t, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"client", "from_s", "dials", "up"}, rows[0])
	at, peak, silent := map[string][]string{}, map[string]int{}, map[string]int{}
	for _, row := range rows[1:] {
		dials, err := strconv.Atoi(row[2])
		require.NoError(t, err)
		peak[row[0]] = max(peak[row[0]], dials)
		if dials == 0 {
			silent[row[0]]++
			continue
		}
		at[row[0]] = append(at[row[0]], row[1]+" "+row[2])
	}
	require.Equal(t, []string{"1.0 5000", "2.0 5000", "3.0 5000"}, at["fixed"][:3])
	require.Len(t, at["fixed"], 19)
	require.Equal(t, []string{"1.0 5000", "3.0 5000", "7.0 5000", "15.0 5000"}, at["exponential"])
	require.Zero(t, silent["full:base=1s"], "full jitter leaves no gap")
	for name, most := range map[string]int{"full:base=1s": 1000, "equal": 1150, "proportional:base=2s": 750} {
		require.LessOrEqual(t, peak[name], most, name)
	}
	require.Greater(t, silent["proportional:base=2s"], silent["equal"], "20 % leave more gaps than half")
	require.Positive(t, silent["equal"])
}

// The command that draws it again is in ARTICLES.md.
func TestThePictureOfPulsesIsThatOfTheSimulator(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("it simulates six herds of 100,000")
	}
	out, errs, code := bench(strings.Fields("sim -model fleet -n 100000 -capacity 10000 -outage 20s -seeds 1 -policy fixed,exponential,full:base=1s,equal,proportional:base=2s,redial -svg -")...)
	require.Zero(t, code, errs)
	svg, err := os.ReadFile("../pulses.svg")
	require.NoError(t, err)
	require.True(t, out == string(svg), "pulses.svg is not what the simulator draws now")
}

func TestFleetSaysForHowLongItWatchedAHerdThatIsNotBack(t *testing.T) {
	args := []string{"sim", "-model", "fleet", "-n", "1200", "-capacity", "20", "-seeds", "1", "-policy", "fixed,redial"}
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^ +fixed +0/1 +60.00 +not within 22m0s +not within 22m0s +not within 22m0s +not within 22m0s `, out)
	require.Regexp(t, `(?m)^ +redial +1/1 +60.00( +\d+\.\d\d){4} `, out)
	require.Contains(t, out, "\nTimes count from the server's return, \"not within\" from the loss")
	out, _, _ = bench(append(args, "-watch", "3m")...)
	require.Contains(t, out, "not within 3m0s")
	out, _, _ = bench("sim", "-model", "fleet", "-n", "10", "-seeds", "1")
	require.NotContains(t, out, "not within")
}

func TestWrongFleetFlagsGiveOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		`there is no -policy "x": there are redial, `:                            {"-policy", "x"},
		`there is no -queue "x": there are unbounded, reject, drop, 503, random`: {"-queue", "x"},
		`fleet: want at least 1 connection, not 0`:                               {"-n", "0"},
		`invalid value "0" for flag -seeds: must be a whole number, at least 1`:  {"-seeds", "0"},
		`fleet: 10 connections cannot be spread over 11 processes`:               {"-n", "10", "-processes", "11"},
		`fleet: 10 connections cannot be spread over -1 processes`:               {"-n", "10", "-processes", "-1"},
	} {
		out, errs, code := bench(append([]string{"sim", "-model", "fleet"}, args...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, "bench sim: "+want)
		require.Empty(t, out)
	}
}

func TestATableReplacesTheOneBetweenItsMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.md")
	require.NoError(t, os.WriteFile(file, []byte("a\n<!-- table x -->\nold\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n"), 0o600))
	require.NoError(t, putTable(file, "x", table.Table{{"p", "q"}, {"1", "2"}}.Markdown()))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- table x -->\n| p | q |\n|---|---|\n| 1 | 2 |\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n", string(text))
	require.ErrorContains(t, putTable(file, "z", ""), "has no marks for it")
}

// DEFAULTS.md has a place for each table that "bench defaults" makes.
func TestEveryTableHasItsPlace(t *testing.T) {
	text, err := os.ReadFile("../DEFAULTS.md")
	require.NoError(t, err)
	for _, name := range pick.Names(defaultTables, nameOfTable) {
		require.Equal(t, 1, strings.Count(string(text), "<!-- table "+name+" -->\n"), name)
	}
}

func TestATableOfHerdsThatAreTooLargeHasNoFigures(t *testing.T) {
	out, errs, code := bench("defaults", "-table", "troubles", "-largest", "100")
	require.Zero(t, code, errs)
	require.Equal(t, 1+len(fleet.Clients()), strings.Count(out, "\n| "), "the head, and a row for each client")
	require.NotContains(t, out, "never")
	require.Contains(t, out, "| redial | - | - |")
}
