package herd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestMistakesWithAHerdAreOneClearLineAndCodeTwo(t *testing.T) {
	for _, w := range []struct{ args, want string }{
		{"herd -n 0", "bench herd: want at least 1 connection, not 0"},
		{"herd -n 2000000000 -capacity 500", "needs 2000000200 open files in one process, and "},
		{"herd -capacity 0", "bench herd: the capacity must be above 0 and at most 1000000 handshakes per second, not 0"},
		{"herd -rounds 0", "bench herd: want at least one of -rounds, not 0"},
		{"herd -queue -reject", "bench herd: want -queue or -reject, not both"},
		{"herd -csv - -series -", "bench herd: -csv and -series cannot both go to standard output"},
		{"herd -csv /nonexistent/runs.csv", "bench herd: open /nonexistent/runs.csv: no such file or directory"},
		{"herd -scene nonsense", `bench herd: there is no -scene "nonsense": there are restart, hang, flap, rolling, half`},
		{"herd -scene rolling -outage 5s -every 1s", "bench herd: servers that are away for 5s cannot be restarted 1s apart"},
		{"herd -simulate -known", "bench herd: -simulate knows neither -url nor -known"},
		{"herd -policy nonsense", `bench herd: there is no -policy "nonsense": there are redial, `},
		{"herd -outage soon", "must be a time, such as 1.5s or 20, which is 20s"},
		{"herd -i-own-this-server", "bench herd: -i-own-this-server needs -url"},
		{"herd -url http://localhost/", "bench herd: -url must be the address of a WebSocket, such as ws://localhost:8080/feed"},
		{"herd -url wss://u:secret@feed.example/?t=secret", "bench herd: feed.example is not this machine, and a herd can harm a server: add -i-own-this-server if it is yours"},
		{"herd -url ws://127.0.0.1.feed.example/", "bench herd: 127.0.0.1.feed.example is not this machine"},
	} {
		out, errs, code := bench(strings.Fields(w.args)...)
		require.Equal(t, cli.ExitUsage, code, w.args)
		require.Contains(t, errs, w.want, w.args)
		require.NotContains(t, errs, "secret")
		require.Equal(t, 1, strings.Count(errs, "\n"), w.args)
		require.Empty(t, out, w.args)
	}
}

func TestAHostIsThisMachineByItsAddressOnly(t *testing.T) {
	for _, url := range []string{"ws://localhost:80/", "ws://127.0.0.1:80", "wss://127.9.9.9/x", "ws://[::1]:80/"} {
		require.NoError(t, mayVisit(url, false), url)
	}
	for _, url := range []string{"ws://localhost.example/", "ws://10.0.0.1/", "ws://[::2]/", "ws://example.com/"} {
		require.Error(t, mayVisit(url, false), url)
		require.NoError(t, mayVisit(url, true), url)
	}
}

func TestASmallHerdIsMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs, series := filepath.Join(dir, "runs.csv"), filepath.Join(dir, "series.csv")
	out, errs, code := bench("herd", "-n", "50", "-capacity", "200", "-outage", "0.3", "-policy", "full,fixed", "-rounds", "2", "-csv", runs, "-series", series)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "herd: 50 connections, outage 300ms, then 200 handshakes/s and the others wait in the kernel's backlog; 4 runs of at least ")
	require.Regexp(t, `\n +full .* 2 of 2 +0\n +fixed .* 2 of 2 +0\n`+
		`no limit of their own on a dial, and 20s here: full, fixed\n$`, out)
	written, err := os.ReadFile(runs)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	require.Len(t, lines, 5)
	for i, want := range []string{"policy,round,", "full,1,50,", "full,2,50,", "fixed,1,50,", "fixed,2,50,"} {
		require.True(t, strings.HasPrefix(lines[i], want), lines[i])
	}
	written, err = os.ReadFile(series)
	require.NoError(t, err)
	require.Contains(t, string(written), "\nfixed,2,0.0,")
}

func TestAnInterruptedHerdKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	time.AfterFunc(8*time.Second, func() { cancel(cli.ErrInterrupted) })
	out, errs, code := program.Try(ctx, strings.Fields("herd -n 20 -outage 1m -rounds 3")...)
	require.Equal(t, cli.ExitInterrupted, code)
	require.Contains(t, errs, "bench: interrupted; the results until then are kept\n")
	require.Contains(t, out, "redial, cut after 0s: 0 of 20 up, t50 not reached, t99 not reached, ")
}

func TestASceneIsSimulatedWithTheFlagsOfTheMeasurement(t *testing.T) {
	args := strings.Fields("herd -simulate -scene flap -flaps 3 -outage 3s -n 100 -capacity 100 -rounds 2 -policy redial,full -csv -")
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, rows, 1+2*2)
	require.True(t, strings.HasPrefix(rows[1], "redial,1,100,1.000,15.000,"), rows[1])
	require.Regexp(t, `,flap,0\.(2[5-9]|3\d)\d,`, rows[1], "the server is up for two fifths of the time")
	require.Contains(t, errs, "up until the")
	require.Contains(t, errs, "\nno limit of their own on a dial, and 20s here: full\n")
	again, _, _ := bench(args...)
	require.Equal(t, out, again)
}

func TestSimulatedHerdNeedsNoOpenFiles(t *testing.T) {
	o := realHerd{Herd: lab.Herd{N: 2_000_000_000, Capacity: 500}, rounds: 1}
	require.ErrorContains(t, o.choose(), "open files")
	o.simulate = true
	require.NoError(t, o.choose())

	args := strings.Fields("herd -simulate -n 30000 -capacity 30000 -outage 1 -policy redial -csv -")
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "\nredial,1,30000,")
}
