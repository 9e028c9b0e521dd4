package herd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

func TestRotationsArePrintedWithAndWithoutTheDraw(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "rotation.svg")
	args := []string{"sim", "-model", "rotation", "-waves", "2", "-svg", picture}
	out, errs, code := bench(args...)
	require.Zero(t, code, errs)
	require.Equal(t, 1+4, len(strings.Split(strings.TrimSpace(out), "\n")), out)
	require.Regexp(t, `(?m)^ +no draw +1 +24\.00 +24\.00 +- +10000 +24\.00 *$`, out)
	require.Regexp(t, `(?m)^ +no draw +2 +48\.00 +48\.00 +- +10000 +48\.00 *$`, out)
	require.Regexp(t, `(?m)^ +drawn from \[0\.9, 1\) +1 +21\.60 +24\.00 +1\.16 +\d+ +2\d\.\d\d *$`, out)
	again, _, _ := bench(args...)
	require.Equal(t, out, again)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(svg), ">drawn from [0.9, 1)<")
	for args, want := range map[string]string{
		"-from 2":    "the age is drawn from a share above 0 and at most 1 of it, not 2",
		"-after 1ms": "want an age of 1s to 8760h0m0s, not 1ms",
		"-waves 101": "want 1 to 100 rotations of each client, not 101",
	} {
		_, errs, code := bench(append(strings.Fields("sim -model rotation"), strings.Fields(args)...)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, want)
	}
}
