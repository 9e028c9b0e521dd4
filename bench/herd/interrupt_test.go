package herd

import (
	"context"
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
