package articles

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// defaultOf returns the default of a flag, as the help of a command shows it.
func defaultOf(t *testing.T, name, command string) string {
	t.Helper()
	help, _, _ := bench(strings.Fields(command + " -h")...)
	found := regexp.MustCompile(`(?s)\n  -` + name + ` .*?\(default\s+(.*?)\)\n`).FindStringSubmatch(help)
	require.NotNil(t, found, "%s of %s:\n%s", name, command, help)
	return found[1]
}

func TestTheStormIsTheSameSimulatedAndOnRealSockets(t *testing.T) {
	for _, name := range []string{"clients", "lambda", "timeout", "before", "stop", "limit", "factor", "every", "delay"} {
		require.Equal(t, defaultOf(t, name, "sim -model storm"), defaultOf(t, name, "storm"), name)
	}
	require.Equal(t, "15s", defaultOf(t, "before", "storm"))
}

func TestAStormIsPrintedSecondBySecond(t *testing.T) {
	t.Parallel()
	args := "storm -clients 20 -lambda 0.2 -timeout 1 -before 0 -stop 3.1 -watch 11"
	out, errs, code := bench(strings.Fields(args)...)
	require.Zero(t, code)
	require.Contains(t, errs,
		"storm: 20 clients, 1 run of 14.1s: 0s before, 3.1s stopped, then watched for up to 11s\n")
	require.Regexp(t, `\n +[\d.]+s +stopped +- +- +\d+ +\d+ +0 +\d+\n`, out)
	require.Regexp(t, `\nclient=simple clients=20 stop=3.1s watch=11s `+
		`recovered=(true back=\d+s|false back=not-within-11s) away=\d+ peak=\d+ cut=false\n`, out)
}
