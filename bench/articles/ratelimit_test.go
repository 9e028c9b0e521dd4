package articles

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

// The closed forms: of 1,000 clients in step 100 succeed with each try, so there are 5.5 calls
// for each; the last try of fixed begins at 9 s, that of exponential at 151 s.
func TestALimitedAPIPrintsARowForEachPolicyAndAnswer(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "limit.svg")
	args := []string{"sim", "-model", "ratelimit", "-seeds", "2", "-csv", "-", "-svg", picture}
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+3*6)
	require.Contains(t, rows, strings.Split("nothing,fixed,4.0,9.0,9.0,1.00,5.50,4.50,1000,0", ","))
	require.Contains(t, rows, strings.Split("nothing,exponential,15.0,151.0,151.0,16.78,5.50,4.50,1000,0", ","))
	require.Contains(t, rows, strings.Split("booked,full:base=1s,4.0,9.0,9.0,1.00,1.90,0.90,1000,0", ","))
	again, _, _ := bench(args...)
	require.Equal(t, out, again)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	for _, want := range []string{">No Retry-After<", ">Retry-After, booked for each<", ">decorrelated<", ">redial<"} {
		require.Contains(t, string(svg), want)
	}
}

func TestALimitedAPITakesItsParameters(t *testing.T) {
	for args, want := range map[string]string{
		"-policy fixed:base=2s":                 "nothing,fixed:base=2s,8.0,18.0,18.0,2.00,5.50,4.50,1000,0",
		"-policy fixed:base=2s -window 2s":      "nothing,fixed:base=2s,4.0,8.0,8.0,1.00,3.00,2.00,1000,0",
		"-policy fixed -rate 1000":              "nothing,fixed,0.0,0.0,0.0,-,1.00,0.00,1000,0",
		"-policy fixed -n 5 -bucket -rate 1":    "nothing,fixed,2.0,4.0,4.0,1.00,3.00,2.00,5,0",
		"-policy fixed -n 5 -bucket -burst 5":   "nothing,fixed,0.0,0.0,0.0,-,1.00,0.00,5,0",
		"-policy fixed -watch 5s":               "nothing,fixed,4.0,not within 5s,not within 5s,-,4.00,3.50,1000,0",
		"-policy fixed -tell booked -heed not":  "booked,fixed,4.0,9.0,9.0,1.00,5.50,4.50,1000,0",
		"-policy fixed -tell same -heed add":    "same,fixed,8.0,18.0,18.0,2.00,5.50,4.50,1000,0",
		"-policy connect-retry:cap=4s -n 500":   "nothing,connect-retry:cap=4s,3.0,not within 1h0m0s,not within 1h0m0s,-,2.40,1.80,500,200",
		"-policy exponential:cap=5s -tell same": "same,exponential:cap=5s,12.0,37.0,37.0,4.11,5.50,4.50,1000,0",
		"-policy exponential:factor=3 -n 300":   "nothing,exponential:factor=3,1.0,4.0,4.0,2.00,2.00,1.00,300,0",
	} {
		out, errs, code := bench(append(strings.Fields("sim -model ratelimit -seeds 1 -csv - -tell nothing"), strings.Fields(args)...)...)
		require.Zero(t, code, errs)
		require.Contains(t, out, want+"\n", args)
	}
}

func TestWrongFlagsOfALimitedAPIAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":                    `invalid value "0" for flag -n: must be a whole number, at least 1`,
		"-rate 0":                 `invalid value "0" for flag -rate: must be above 0`,
		"-rate 2e6":               `the rate must be above 0 and at most 1000000 calls per second, not 2e+06`,
		"-rate 1 -window 100ms":   `a window of 100ms with 1 calls per second allows no call`,
		"-window 0":               `invalid value "0" for flag -window: must be above 0`,
		"-burst 5":                `-burst means nothing without -bucket`,
		"-bucket -window 2s":      `want -bucket or -window, not both`,
		"-tell x":                 `there is no -tell "x": there are nothing, same, booked`,
		"-heed all":               `there is no -heed "all": there are add, longer, not`,
		"-policy x":               `there is no -policy "x": there are redial, `,
		"-policy fixed:share=0.1": `-policy fixed: there is no option "share": there are base`,
		"-watch 25h":              `the watch must be at most 24h0m0s, not 25h0m0s`,
		"-csv - -svg -":           `-csv and -svg cannot both go to standard output`,
	} {
		out, errs, code := bench(append(strings.Fields("sim -model ratelimit"), strings.Fields(args)...)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, want, args)
		require.Equal(t, 1, strings.Count(errs, "\n"), args)
		require.Empty(t, out, args)
	}
}
