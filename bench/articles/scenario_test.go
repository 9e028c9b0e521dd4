package articles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/cli"
)

// A scenario's file, printed and given back, is the scenario, in both models that have files.
func TestAScenarioCanBeBegunFromAFile(t *testing.T) {
	for _, w := range []struct{ list, run string }{
		{"sim -list -json", "sim -rps 500 -seeds 1 -csv - -scenario simple_retry_only"},
		{"sim -list -json -scenario mfs", "sim -rps 500 -seeds 1 -csv - -scenario mfs"},
		{"sim -model tiers -list -json", "sim -model tiers -rps 2 -csv - -scenario incident"},
	} {
		file, errs, code := bench(strings.Fields(w.list)...)
		require.Zero(t, code, errs)
		mine := filepath.Join(t.TempDir(), "mine.json")
		require.NoError(t, os.WriteFile(mine, []byte(file), 0o600))
		args := strings.Fields(w.run)
		want, _, code := bench(args...)
		require.Zero(t, code)
		args[len(args)-1] = mine
		got, errs, code := bench(args...)
		require.Zero(t, code, errs)
		require.Equal(t, want, got)

		require.NoError(t, os.WriteFile(mine, []byte(strings.Replace(file, `"length"`, `"lenght"`, 1)), 0o600))
		_, errs, code = bench(args...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, mine+`: line `)
		require.Contains(t, errs, `there is no key "lenght" (is it "length"?): there are name, `)
	}
	for args, want := range map[string]string{
		"sim -scenario incident":                   "incident is a scenario of services in a row: add -model tiers",
		"sim -model tiers -scenario mfs":           "mfs is a scenario of one server with a queue: leave -model tiers out",
		"sim -model tiers -scenario mfx -rps 2":    `there is no scenario "mfx"`,
		"sim -scenario /nowhere/mine.json -rps 50": "no such file",
	} {
		_, errs, code := bench(strings.Fields(args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, want)
	}
	_, errs, code := bench("sim", "-list", "-json", "-scenario", "x")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `find scenario "x": there is none of that name`)
}

// The flags make of one scenario another one of the article.
func TestFlagsAreOnesOwnFigures(t *testing.T) {
	numbers := func(args string) string { // the table's line, without the strategy's name
		out, errs, code := bench(strings.Fields("sim -rps 500 -seeds 1 " + args)...)
		require.Zero(t, code, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 3)
		_, line, _ := strings.Cut(lines[2], " % ")
		return line
	}
	for own, same := range map[string]string{
		"-scenario simple_retry_only -cpus 10":                                                                  "-scenario mfs",
		"-scenario simple_retry_only -base 100ms -cap 1s":                                                       "-scenario simple_retry_vs_backoff -strategy retry-3x-with-exp-backoff",
		"-scenario simple_retry_only -length 1.75s -limit 0.1 -base 100ms -jitter full":                         "-scenario jitter_vs_no_jitter -strategy retry-3x-with-exp-backoff+jitter",
		"-scenario simple_retry_only -cpus 11 -retries 2 -fail-share 0.3 -budget 10%":                           "-scenario retry_cb_or_budget_vs_exp_backoff_partial_failure -strategy retry-budget-10%",
		"-scenario mfs -cpus 11 -fail-to 1.5 -length 2.5 -timeout 100ms,200ms,300ms -retries 2":                 "-scenario any_retries_are_slowing_down_recovery -strategy retry-2x",
		"-scenario jitter_vs_no_jitter -strategy retry-3x-with-exp-backoff+jitter -base 0 -limit 0 -length 1.5": "-scenario simple_retry_only",
	} {
		require.Equal(t, numbers(same), numbers(own), own)
	}
	require.NotEqual(t, numbers("-scenario mfs"), numbers("-scenario mfs -latency 20ms"))
	require.NotEqual(t, numbers("-scenario mfs -base 100ms"), numbers("-scenario mfs -base 100ms -cap 150ms"))
	require.NotEqual(t, numbers("-scenario mfs"), numbers("-scenario mfs -fail-from 0.8"))

	out, _, code := bench(strings.Fields("sim -rps 500 -seeds 1 -scenario retry_cb_or_budget_vs_exp_backoff -timeout 0.2 -retries 1 -cap 150ms")...)
	require.Zero(t, code)
	require.Contains(t, out, "retry_cb_or_budget_vs_exp_backoff -timeout 200ms (500 calls/s", "a table says what was changed")
	require.Contains(t, out, " no-retries ")
	require.Contains(t, out, " retry-2x -retries 1 ")
	require.Contains(t, out, " retry-2x-with-exp-backoff+jitter -retries 1 -cap 150ms ")
}

func TestFiguresThatMakeNoSenseAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"-fail-to 0.1":        "bench sim: mfs -fail-to 100ms: want a failure that ends after it begins, not from 500ms to 100ms\n",
		"-budget 120%":        "bench sim: mfs: strategy retry-3x -budget 120%: budget: want a whole percentage from 1% to 100%, or one of grpc, aws, aws-2026, envoy, not \"120%\"\n",
		"-base 1s -jitter no": "bench sim: mfs: strategy retry-3x -base 1s -jitter no: there is no jitter \"no\": there are none, full, equal\n",
		"-json":               "bench sim: -json means nothing without -list\n",
		"-length 1h":          "bench sim: simulate mfs -length 1h0m0s: 100000 calls per second for 1h0m0s are more than 50000000\n",
	} {
		_, errs, code := bench(strings.Fields("sim -scenario mfs -rps 100000 " + args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Equal(t, want, errs)
	}
}
