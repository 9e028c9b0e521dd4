package herd

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/cli"
)

// patient is a context that Ctrl-C ends when it was asked so many times.
type patient struct {
	context.Context
	left atomic.Int64
}

func (p *patient) Err() error {
	if p.left.Add(-1) < 0 {
		return cli.ErrInterrupted
	}
	return nil
}

func TestAnInterruptedModelKeepsWhatIsDone(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that parts end before others begin
	for args, asked := range map[string]int64{
		"lone -seeds 1 -policy redial,fixed":                              40,
		"sim -model fleet -n 100 -seeds 1 -policy redial,fixed,full,grpc": 4,
		"sim -model drain -n 100 -seeds 1":                                40,
		"sim -model rotation -n 100":                                      1,
	} {
		whole, _, code := program.Try(t.Context(), strings.Fields(args)...)
		require.Zero(t, code)
		ctx := &patient{Context: t.Context()}
		ctx.left.Store(asked)
		out, errs, code := program.Try(ctx, strings.Fields(args)...)
		require.Equal(t, cli.ExitInterrupted, code, args)
		require.Contains(t, errs, "bench: interrupted; the results until then are kept\n", args)
		require.Greater(t, strings.Count(out, "\n"), 1, args)
		require.Less(t, strings.Count(out, "\n"), strings.Count(whole, "\n"), args)
	}
}

// Each row is 400 runs, and each run checks its context a few times.
func TestInterruptedDefaultsKeepTheirRows(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	args := strings.Fields("defaults -largest 10 -table aims-paced")
	whole, errs, code := program.Try(t.Context(), args...)
	require.Zero(t, code, errs)
	ctx := &patient{Context: t.Context()}
	ctx.left.Store(2500)
	out, errs, code := program.Try(ctx, args...)
	require.Equal(t, cli.ExitInterrupted, code)
	require.Contains(t, errs, "bench: interrupted; the results until then are kept\n")
	require.Contains(t, out, "## aims-paced, the rows until it ended\n")
	rows := strings.Split(whole, "\n")[2:]
	kept := strings.Split(strings.TrimSpace(out), "\n")[2:]
	require.Greater(t, len(kept), 2, out)
	require.Less(t, len(kept), len(rows), out)
	require.Equal(t, rows[:len(kept)], kept, "each as in a run that was not interrupted")

	file := filepath.Join(t.TempDir(), "DEFAULTS.md")
	const before = "text\n<!-- table aims-paced -->\nas it was\n<!-- end -->\n"
	require.NoError(t, os.WriteFile(file, []byte(before), 0o666))
	ctx.left.Store(2500)
	out, _, code = program.Try(ctx, append(args, "-o", file)...)
	require.Equal(t, cli.ExitInterrupted, code)
	require.Contains(t, out, "the rows until it ended")
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, string(written), "a partial table never replaces a complete one")
}
