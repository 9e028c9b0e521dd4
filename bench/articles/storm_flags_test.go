package articles

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/stretchr/testify/require"
)

// Both worlds name a mistake in the same words, by the flag.
func TestWrongStormFlagsAreNamedInBothWorlds(t *testing.T) {
	for args, want := range map[string]string{
		"-limit 0":              `invalid value "0" for flag -limit: must be a whole number, at least 1`,
		"-factor 0.9":           `invalid value "0.9" for flag -factor: must be a number, at least 1`,
		"-factor +Inf":          `invalid value "+Inf" for flag -factor: must be a number, at least 1`,
		"-delay 0":              `invalid value "0" for flag -delay: must be above 0`,
		"-clients -3":           `invalid value "-3" for flag -clients: must be a whole number, at least 1`,
		"-lambda 0s":            `invalid value "0s" for flag -lambda: must be above 0`,
		"-timeout never":        `invalid value "never" for flag -timeout: must be a time, such as 1.5s or 20, which is 20s`,
		"-stop -1s":             `invalid value "-1s" for flag -stop: must be a time, such as 1.5s or 20, which is 20s`,
		"-watch 0":              `invalid value "0" for flag -watch: must be above 0`,
		"-watch 5":              `-watch: it takes at least `,
		"-every 0":              `invalid value "0" for flag -every: must be a whole number, at least 1`,
		"-policy x":             `there is no -policy "x": there are redial, `,
		"-policy=":              `there is no -policy "": there are redial, `,
		"-policy coded,y":       `there is no -policy "y": there are redial, `,
		"-policy coded:base=1s": `-policy coded: there is no option "base": there are factor, cap, jitter`,
	} {
		for _, world := range []string{"sim -model storm", "storm"} {
			out, errs, code := bench(strings.Fields(world + " " + args)...)
			require.Equal(t, cli.ExitUsage, code, args)
			require.Contains(t, errs, want, args)
			require.Equal(t, 1, strings.Count(errs, "\n"), args)
			require.Empty(t, out, args)
		}
	}
	_, errs, code := bench(strings.Fields("sim -model storm -seeds 0")...)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `invalid value "0" for flag -seeds: must be a whole number, at least 1`)
}

func TestTheStormsFlagsChangeWhatIsSimulated(t *testing.T) {
	run := func(args string) string {
		out, errs, code := bench(strings.Fields("sim -model storm -watch 2m -policy " + args)...)
		require.Zero(t, code, errs)
		return out
	}
	require.Contains(t, run("simple"), "client=simple stop=10s watch=2m0s seed=1 recovered=false")
	for _, args := range []string{"simple -factor 1", "simple -limit 2500", "simple -before 0 -stop 1", "simple -timeout 1m", "simple -clients 100", "simple -lambda 100", "simple -stop 1"} {
		require.Contains(t, run(args), "recovered=true", args)
	}
	require.Contains(t, run("simple -stop 3"), "recovered=true")
	require.Contains(t, run("simple -stop 3 -delay 500ms"), "recovered=false")
	require.Contains(t, run("simple -stop 3 -every 5"), "recovered=false", "a server that is slower sooner")
	require.Contains(t, run("simple -stop 10 -every 500"), "recovered=true")
	for _, args := range []string{"", "-search "} {
		_, errs, code := bench(strings.Fields("sim -model storm -watch 20 " + args)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, "-watch: it takes at least 31s to see that a storm is over, not 20s")
	}
	require.Contains(t, run("described:base=1s,factor=5,jitter=0"), "client=described:base=1s,factor=5,jitter=0 ")
	require.Contains(t, run("simple:base=1s,coded"), "client=coded ")
}

func TestTheStormsFlagsReachRealSockets(t *testing.T) {
	t.Parallel()
	out, errs, code := bench(strings.Fields("storm -clients 20 -lambda 0.1 -timeout 0.2 -before 0 -stop 0 -watch 11 -delay 10 -policy simple:base=30")...)
	require.Zero(t, code, errs)
	require.Regexp(t, `\n +[\d.]+s +\d+ +1\d\.\d\ds +\d+ +0 +`, out, "a delay from 10 s on, and no success")
	require.Contains(t, out, "\nclient=simple:base=30s clients=20 ")
}

func TestAHalfOfAStormHasOnlyItsOwnFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-serve :0 -connect :1":                        `want -serve or -connect, not both`,
		"-serve :0 -stop 3":                            `-stop means nothing with -serve`,
		"-serve :0 -policy redial":                     `-policy means nothing with -serve`,
		"-serve 8070":                                  `-serve: want a host and a port, such as 127.0.0.1:8070, not "8070"`,
		"-connect 127.0.0.1:1 -limit 3":                `-limit means nothing with -connect`,
		"-connect 127.0.0.1:1 -policy simple,coded":    `want one -policy with -connect`,
		"-connect 127.0.0.1:1 -watch 3":                `-watch: it takes at least 11s to see that a storm is over, not 3s`,
		"-connect localhost":                           `-connect: want a host and a port, such as 127.0.0.1:8070, not "localhost"`,
		"-connect feed.example:80":                     `feed.example:80 is not this machine, and a storm can harm a server: add -i-own-this-server if it is yours`,
		"-connect 127.0.0.1.feed.example:80 -watch 1m": `127.0.0.1.feed.example:80 is not this machine`,
		"-i-own-this-server":                           `-i-own-this-server means nothing without -connect`,
	} {
		out, errs, code := bench(strings.Fields("storm " + args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, "bench storm: "+want, args)
		require.Equal(t, 1, strings.Count(errs, "\n"), args)
		require.Empty(t, out, args)
	}
}

func TestClientsOfAServerThatIsNotThereSaySo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	out, errs, code := bench("storm", "-connect", address)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "bench storm: there is no server of a storm at "+address+": ")
	require.Contains(t, errs, `; "bench storm -serve `+address+`" is one`)
	require.Empty(t, out)

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	_, errs, code = bench("storm", "-connect", other.Listener.Addr().String())
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "it answers 404 Not Found")
}

func TestTheCurveHasTheDelaysOfTheArticle(t *testing.T) {
	out, _, code := bench(strings.Fields("sim -model storm -curve")...)
	require.Zero(t, code)
	require.Contains(t, out, "requests=1040 delay=2.671444385s per_second=389.3\n")
	require.Contains(t, out, "requests=307 delay=246.20435ms per_second=1246.9 (the most per second)\n")
	require.Contains(t, out, "requests=952 delay=2.006483454s per_second=474.5 (from here on a request takes longer than 2s)\n")
	out, _, _ = bench(strings.Fields("sim -model storm -curve -delay 1s -factor 1")...)
	require.Contains(t, out, "requests=2231 delay=1s per_second=2231.0\n")
	require.NotContains(t, out, "from here on")
}
