package articles

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/policy"
)

// waitsRows runs "bench waits" and returns its table and its picture.
func waitsRows(t *testing.T, args string) (rows [][]string, svg string) {
	t.Helper()
	picture := filepath.Join(t.TempDir(), "waits.svg")
	out, errs, code := bench(append(strings.Fields("waits -csv - -svg "+picture), strings.Fields(args)...)...)
	require.Zero(t, code, errs)
	r := csv.NewReader(strings.NewReader(out))
	rows, err := r.ReadAll()
	require.NoError(t, err)
	drawn, err := os.ReadFile(picture)
	require.NoError(t, err)
	return rows, string(drawn)
}

// rowOf is a row of cells that are separated by commas, after one that may have commas.
func rowOf(first, others string) []string {
	return append([]string{first}, strings.Split(others, ",")...)
}

func TestWaitsDrawsAnyPolicyByRetryAndByTime(t *testing.T) {
	rows, svg := waitsRows(t, "-policy exponential:base=500ms,cap=4s -policy full:cap=4s -outage refused,silent -connect 2s -retries 4 -until 10s -seeds 200")
	require.Contains(t, rows, rowOf("exponential:base=500ms,cap=4s", "refused,retry 4,4,4,4,4,100 %,7.5,7.5,7.5,7.5,200"))
	require.Contains(t, rows, rowOf("exponential:base=500ms,cap=4s", "silent,retry 4,4,4,4,4,100 %,13.5,13.5,13.5,13.5,200"), "three dials of 2 s")
	require.Contains(t, rows, rowOf("exponential:base=500ms,cap=4s", "refused,5s,4,4,4,4,100 %,3,3,3,3,200"))
	require.Len(t, rows, 1+4*(4+4), "for each, 4 retries and 4 ages")
	for _, want := range []string{">exponential:base=500ms,cap=4s<", ">full:cap=4s<", ">refused<", ">silent<", ">number of the retry<", ">time since the loss, s<", ">time since the loss, s, log scale<"} {
		require.Contains(t, svg, want)
	}
	require.Equal(t, 2, strings.Count(svg, ">number of the retry<")/2, "a linear one and a logarithmic one for each outage")
}

func TestWaitsCanDrawEveryPolicy(t *testing.T) {
	rows, svg := waitsRows(t, "-seeds 3 -retries 5 -until 2s -policy "+strings.Join(pick.Names(policy.Rules(), policy.NameOf), ","))
	for _, name := range pick.Names(policy.Rules(), policy.NameOf) {
		require.Contains(t, svg, ">"+name+"<")
		n := 0
		for _, row := range rows {
			if row[0] == name && strings.HasPrefix(row[2], "retry ") {
				n++
			}
		}
		require.Equal(t, 5, n, name)
	}
}

func TestWaitsHasTheClassicTables(t *testing.T) {
	rows, svg := waitsRows(t, "-mode users -retries 2 -users 4")
	require.Equal(t, "1,1s,2s,1.6s,2.4s", strings.Join(rows[1][:5], ","))
	require.Len(t, rows[2], 5+4)
	require.Contains(t, svg, ">user 4<")
	rows, _ = waitsRows(t, "-mode users -retries 2 -jitter 1.5")
	require.Equal(t, "1,1s,2s,0s,5s", strings.Join(rows[1][:5], ","))

	rows, svg = waitsRows(t, "-mode ethernet -seeds 100")
	require.Equal(t, "3,7,3.5", strings.Join(rows[3][:3], ","))
	require.Len(t, rows, 1+15)
	require.Contains(t, svg, ">Logarithmic<")

	rows, svg = waitsRows(t, "-mode normal -retries 10 -seeds 100")
	require.Equal(t, "100 ms, 2.7, 10 min;2;0.27;0.27", strings.Join(rows[2][:4], ";"))
	require.Equal(t, "1 s, 1.5, 5 min;2;1.5;1.5", strings.Join(rows[12][:4], ";"))
	require.Contains(t, svg, ">1 s, 1.5, 5 min<")
}

func TestWrongWaitsFlagsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"-seeds 0":                       `invalid value "0" for flag -seeds: must be a whole number, at least 1; "bench waits -h" lists the flags`,
		"-policy fixed:share=1":          `-policy fixed: there is no option "share": there are base`,
		"-policy fixed -policy fixed":    `-policy fixed is given twice`,
		"-policy x":                      `there is no -policy "x": there are redial, paced, `,
		"-policy=":                       `there is no -policy "": there are redial, paced, `,
		"-outage=":                       `there is no -outage "": there are refused, 503, silent`,
		"-outage moon":                   `there is no -outage "moon": there are refused, 503, silent`,
		"-mode x":                        `there is no -mode "x": there are policy, users, ethernet, normal`,
		"-mode ethernet -policy redial":  `-policy means nothing with -mode ethernet`,
		"-users 4":                       `-users means nothing without -mode users`,
		"-jitter 0.1":                    `-jitter means nothing without -mode users`,
		"-mode users -jitter -1":         `want a jitter from 0 to 1000, not -1`,
		"-csv - -svg -":                  `-csv and -svg cannot both go to standard output`,
		"-retries 5000 -seeds 10000":     `want at most 20000000 waits in all`,
		"-retries 5001":                  `want times and numbers from 0 on, and at most 5000 retries`,
		"-policy jpillora -x":            `flag provided but not defined: -x`,
		"-policy normal -until tomorrow": `must be a time, such as 1.5s or 20, which is 20s`,
	} {
		out, errs, code := bench(append([]string{"waits"}, strings.Fields(args)...)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.True(t, strings.HasPrefix(errs, "bench waits: "), args)
		require.Contains(t, errs, want, args)
		require.Equal(t, 1, strings.Count(errs, "\n"), args)
		require.Empty(t, out, args)
	}
}

func TestNoJitterIsNotTheUsualJitter(t *testing.T) {
	rows, _ := waitsRows(t, "-policy normal:jitter=0 -retries 3 -seeds 50")
	require.Contains(t, rows, strings.Split("normal:jitter=0,refused,retry 3,0.4,0.4,0.4,0.4,100 %,0.7,0.7,0.7,0.7,50", ","))
}
