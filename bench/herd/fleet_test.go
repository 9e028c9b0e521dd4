package herd

import (
	"encoding/csv"
	"math"
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

// The limit of a policy that has none of its own is not chosen to its disadvantage: with no other one is its herd back
// sooner.
func TestFleetGivesOthersTheirBestLimit(t *testing.T) {
	for _, queue := range []string{"drop", "unbounded", "503"} {
		shown, note := fleetRows(t, queue, "redial,full,fixed:base=3s,grpc,full:limit=2s")
		require.Len(t, shown, 5)
		unchanged := []string{shown[0][0], shown[3][0], shown[4][0]}
		require.Equal(t, []string{"redial", "grpc", "full:limit=2s"}, unchanged, "these have limits")
		require.Contains(t, note, "No limit of their own on a dial: full, fixed:base=3s. "+
			"Of 2s, 5s, 10s, 20s, 30s, 45s, 2m7s each has the one")
		for i, prefix := range []string{"full:", "fixed:base=3s,"} {
			best := shown[1+i]
			var every []string
			for _, limit := range fleet.LentLimits {
				every = append(every, prefix+"limit="+limit.String())
			}
			all, note := fleetRows(t, queue, strings.Join(every, ","))
			require.NotContains(t, note, "No limit of their own")
			require.Contains(t, all, best, "the name says how to get the row")
			for _, other := range all {
				require.LessOrEqual(t, seconds(t, best[4]), seconds(t, other[4]), "t99 of %s, %s", other[0], queue)
			}
		}
	}
}

// fleetRows returns the rows of a small herd with these policies, and what is printed below them.
func fleetRows(t *testing.T, queue, policies string) (rows [][]string, note string) {
	args := strings.Fields("sim -model fleet -n 500 -capacity 25 -seeds 2 -csv -")
	out, errs, code := bench(append(args, "-queue", queue, "-policy", policies)...)
	require.Zero(t, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	return rows[1:], errs
}

// seconds returns a time of a table, or infinity if it was not reached.
func seconds(t *testing.T, cell string) float64 {
	if strings.HasPrefix(cell, "not within") {
		return math.Inf(1)
	}
	x, err := strconv.ParseFloat(cell, 64)
	require.NoError(t, err)
	return x
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
		name, _, _ := strings.Cut(row[0], "limit=") // which limit is the best does not matter here
		name = strings.TrimRight(name, ":,")
		dials, err := strconv.Atoi(row[2])
		require.NoError(t, err)
		peak[name] = max(peak[name], dials)
		if dials == 0 {
			silent[name]++
			continue
		}
		at[name] = append(at[name], row[1]+" "+row[2])
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
	args := strings.Fields("sim -model fleet -n 1200 -capacity 20 -seeds 1 -policy fixed:limit=2s,redial")
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^ +fixed:limit=2s +0/1 +60.00( +not within 22m0s){4} `, out)
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
