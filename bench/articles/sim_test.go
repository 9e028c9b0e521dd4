package articles

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestMistakesAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"nonsense", `bench: there is no command "nonsense": "bench help" lists them`},
		{"sim", "bench sim: want -scenario NAME or -scenario all: -list names them"},
		{"sim -scenario x", `bench sim: find scenario "x": there is none of that name: -list names them`},
		{"sim -scenario mfs -rps 0", "bench sim: simulate mfs: want 1 to 10000000 calls per second, not 0"},
		{"sim -scenario mfs -rps 2000000000000", "bench sim: simulate mfs: want 1 to 10000000 calls per second, not 2000000000000"},
		{"sim -scenario mfs -seeds 0", "bench sim: want at least one of -seeds, not 0"},
		{"sim -scenario mfs -bucket 1h", "bench sim: simulate mfs: want buckets of 1ms to 1.5s, not 1h0m0s"},
		{"sim -scenario mfs -strategy x", `bench sim: there is no strategy of mfs "x": there are retry-3x, retry-budget-grpc, retry-budget-aws, retry-budget-aws-2026, retry-budget-envoy`},
		{"sim -scenario mfs more", `bench sim: unexpected argument "more"`},
		{"sim -nonsense", `bench sim: flag provided but not defined: -nonsense; "bench sim -model queueing -h" lists the flags`},
		{"sim -model aws -n x", `bench sim: want numbers of clients as -n, not "x"`},
		{"sim -model aws -policy full:law=none", `bench sim: -policy full: there is no option "law": there are base, factor, cap`},
		{"sim -model tiers -scenario x", `bench sim: there is no scenario "x": there are two_tiers, incident, incident_shedding, incident_autoscaling, incident_autoscaling_to_eight_times`},
		{"sim -model tiers -scenario incident -strategy x", `bench sim: there is no strategy of incident "x": there are retry, retry+admission, no-retries, retry+budget, retry+budget+breaker, retry+nobody-presses-again`},
		{"sim -model tiers -presses -1", "bench sim: simulate incident: strategy retry, caller of orchestrator: want -presses of at least 0, -again of 0 to 1, and -pause-from before -pause-to"},
		{"sim -model tiers -scenario incident -every 0s", "bench sim: simulate incident: strategy retry+admission: admission needs time between its steps, and no negative share or step"},
		{"sim -model tiers -rps -1", "bench sim: simulate two_tiers: want 1 to 6666666 calls per second, not -1"},
		{"sim -model=letters -seconds 0", "bench sim: want 1 to 200 -seconds and at least one of -retries"},
	} {
		out, errs, code := bench(strings.Fields(w.args)...)
		require.Equal(t, cli.ExitUsage, code, w.args)
		require.Equal(t, w.want+"\n", errs, w.args)
		require.Empty(t, out, w.args)
	}
	_, errs, code := bench("sim", "-model", "nonsense")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `there is no model "nonsense": there are aws,`)
	require.Equal(t, 1, strings.Count(errs, "\n"))
	_, errs, code = bench("sim", "-model", "storm", "-stop", "soon")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "must be a time, such as 1.5s or 20, which is 20s")
	require.Equal(t, 1, strings.Count(errs, "\n"))
}

func TestHelpIsNoMistake(t *testing.T) {
	for args, want := range map[string]string{"": "  sim ", "help": "  sim ", "sim -h": "  queueing ", "sim -model queueing -h": "-scenario name", "sim -model storm -h": "-stop time"} {
		out, errs, code := bench(strings.Fields(args)...)
		require.Zero(t, code, args)
		require.Contains(t, out, want, args)
		require.Empty(t, errs, args)
	}
}

func TestTheCSVGoesWhereItIsWanted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.csv")
	args := strings.Fields("sim -scenario mfs -rps 1000 -seeds 2 -bucket 20ms -csv")
	table, _, code := bench(append(args, file)...)
	require.Zero(t, code)
	require.Contains(t, table, "mfs (1000 calls/s, 20 CPUs, 2 seeds)")
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	out, errs, code := bench(append(args, "-")...)
	require.Zero(t, code)
	require.Equal(t, string(written), out, "the same to the byte")
	require.Equal(t, table, errs)
	require.Equal(t, 1+75, strings.Count(out, "\n"))
	out, errs, code = bench(append(args, filepath.Join(file, "x"))...)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "not a directory")
	require.Empty(t, out, "it was said before anything was simulated")
}

func TestAllScenariosCanBeListed(t *testing.T) {
	out, _, code := bench("sim", "-list")
	require.Zero(t, code)
	require.Contains(t, out, "\nmfs\n    retry-3x\n")
	require.Equal(t, 17+1+6, strings.Count(out, "\n")-strings.Count(out, "\n    ")) // the article's 17, one that is part of another, and more
}

func TestEachModelPrintsALineForARun(t *testing.T) {
	out, _, code := bench(strings.Fields("sim -model storm -stop 10 -policy simple,coded -watch 1m")...)
	require.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	require.Regexp(t, `^client=simple stop=10s watch=1m0s seed=1 recovered=false back=not-within-1m0s everyone=not-within-1m0s backlog=\d+ `, lines[0])
	require.Regexp(t, `^client=coded stop=10s watch=1m0s seed=1 recovered=true back=[\d.]+s `, lines[1])

	out, _, code = bench(strings.Fields("sim -model storm -search -policy simple -step 1s -longest 8s -watch 5m")...)
	require.Zero(t, code)
	require.Regexp(t, `^client=simple recovers_up_to=[345]s not_from=[456]s watch=5m0s seeds=1 cut=false\n$`, out)

	out, _, code = bench(strings.Fields("sim --model aws -n 10,20 -policy full:base=10ms,cap=2s -reps 3")...)
	require.Zero(t, code)
	require.Regexp(t, `^n=10 policy=full:base=10ms,cap=2s time_ms=\d+ calls=[\d.]+ gave_up=0.0 reps=3\nn=20 .*\n$`, out)

	out, _, code = bench(strings.Fields("sim -model aws -policy ethernet -reps 3")...)
	require.Zero(t, code)
	require.Regexp(t, `^n=100 policy=ethernet time_ms=- calls=[\d.]+ gave_up=[1-9][\d.]+ reps=3\n$`, out, "it was never all done")

	out, _, code = bench(strings.Fields("sim -model tiers -scenario two_tiers -rps 5000 -strategy both-retry,both-retry+both-budgets -csv -")...)
	require.Zero(t, code)
	require.Equal(t, 1+2*2*150, strings.Count(out, "\n"), "a line for each run, tier and bucket")
	out, _, code = bench(strings.Fields("sim -model tiers -scenario incident -rps 5 -presses 0 -strategy retry,retry+nobody-presses-again")...)
	require.Zero(t, code)
	lines = strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, strings.Fields(lines[2])[1:], strings.Fields(lines[3])[1:], "the flag is that strategy")
	out, _, code = bench(strings.Fields("sim -model tiers -list")...)
	require.Zero(t, code)
	require.Contains(t, out, "incident (50 calls/s, 1h15m0s)\n    retry\n")

	out, _, code = bench("sim", "-model", "letters")
	require.Zero(t, code)
	require.Equal(t, 2, strings.Count(out, "load"))
}

func TestAnInterruptedRunKeepsWhatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	time.AfterFunc(2*time.Second, func() { cancel(cli.ErrInterrupted) })
	out, errs, code := program.Try(ctx, strings.Fields("sim -scenario mfs -seeds 100000 -csv -")...)
	require.Equal(t, cli.ExitInterrupted, code)
	require.Contains(t, errs, "bench: interrupted; the results until then are kept\n")
	require.Contains(t, out, "mfs,retry-3x,10000,", "the mean of the seeds that were done")
}
