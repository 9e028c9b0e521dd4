package herd

import (
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestRotateSaysWhatIsWrongWithItsFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-only x":      `bench rotate: -only: there is no "x": there are pauses, memory, layers`,
		"-rate 200000": "bench rotate: want at most 100000 messages per second",
		"-rounds 0":    `bench rotate: invalid value "0" for flag -rounds`,
	} {
		out, errs, code := bench(append([]string{"rotate"}, strings.Fields(args)...)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, want)
		require.Empty(t, out)
	}
}

func TestRotatePrintsARowForEachNumberOfLayers(t *testing.T) {
	out, errs, code := bench(strings.Fields("rotate -only layers -rounds 2 -messages 1000")...)
	require.Zero(t, code, errs)
	for _, row := range []string{`(?m)^ +0 +\d+ +1\.00 +- *$`, `(?m)^ +1 +\d+ +\d+\.\d\d +-?\d+\.\d *$`, `(?m)^ +10 `, `load average`} {
		require.Regexp(t, row, out)
	}
}
