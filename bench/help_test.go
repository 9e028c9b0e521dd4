package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles"
	"github.com/redial-go/redial/bench/herd"
	"github.com/redial-go/redial/bench/internal/cli"
)

// helps are the arguments that ask for each help.
func helps() (all []string) {
	all = []string{"-h", "sim -h"}
	for _, c := range bench().Commands {
		if c.Name != "sim" {
			all = append(all, c.Name+" -h")
		}
	}
	for _, m := range append(articles.Models(), herd.Models()...) {
		all = append(all, "sim -model "+m.Name+" -h")
	}
	return all
}

func TestEachHelpFitsOnAScreen(t *testing.T) {
	require.Len(t, helps(), 2+7+9)
	for _, args := range helps() {
		out, errs, code := bench().Try(t.Context(), strings.Fields(args)...)
		require.Zero(t, code, errs)
		require.LessOrEqual(t, strings.Count(out, "\n"), 40, "%s:\n%s", args, out)
		for line := range strings.Lines(out) {
			require.LessOrEqual(t, len(line), 101, "%s: %s", args, line)
		}
	}
}

// Each help of a command has an example, which runs: here in a short form.
func TestEachHelpHasAnExample(t *testing.T) {
	example := regexp.MustCompile(`\nexample: bench (.*)\n`)
	for _, args := range helps()[2:] {
		out, _, _ := bench().Try(t.Context(), strings.Fields(args)...)
		found := example.FindStringSubmatch(out)
		require.NotNil(t, found, "%s:\n%s", args, out)
		if !testing.Short() {
			t.Run(found[1], func(t *testing.T) {
				if !strings.HasPrefix(found[1], "soak ") { // which counts the goroutines of the process
					t.Parallel()
				}
				runShort(t, found[1])
			})
		}
	}
}

// A program of another module is listed, and named if it is called as a command.
func TestOtherProgramIsNamed(t *testing.T) {
	const line = "go -C interop run ./dial"
	out, _, code := bench().Try(t.Context())
	require.Zero(t, code)
	require.Contains(t, out, line)
	_, errs, code := bench().Try(t.Context(), "dial", "-runs", "1")
	require.Equal(t, cli.ExitUsage, code)
	require.Equal(t, "bench: dial is another program: "+line+"\n", errs)
}
