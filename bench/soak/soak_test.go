package soak

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/internal/cli"
)

func TestMain(m *testing.M) {
	if IsServer() {
		os.Exit(ServerMain())
	}
	goleak.VerifyTestMain(m)
}

func run(t *testing.T, args ...string) (out, errs string, code int) {
	return cli.Program{Name: "soak", Commands: []cli.Command{Command()}}.Try(t.Context(), args...)
}

// Each question and each post of a short soak is accounted for.
func TestAShortSoakLosesNothing(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "soak.svg")
	out, errs, code := run(t, "-clients", "20", "-time", "6s", "-every", "500ms", "-svg", picture)
	require.Zero(t, code, errs)
	require.Regexp(t, `20 connections for 6s, \d+ faults of the server, \d+ seams. [1-9]\d* posts, each acknowledged once`, out)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(svg), "descriptors")
}

func TestASoakWithoutClientsIsAMistake(t *testing.T) {
	_, errs, code := run(t, "-clients", "0")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "soak: want at least one of -clients, not 0")
}

// steady is a soak in which nothing has happened that must not.
func steady() *soak {
	o := &soak{time: long}
	for i := range 40 {
		o.samples = append(o.samples, sample{after: time.Duration(i), heap: 5, goroutines: 10, descriptors: 10, ready: 1})
	}
	return o
}

// What has grown, is left or is missing is an error.
func TestASoakIsJudged(t *testing.T) {
	require.NoError(t, steady().judge())
	for want, spoil := range map[string]func(o *soak){
		"memory has grown by 20 %": func(o *soak) {
			for i := range o.samples[30:] {
				o.samples[30+i].heap = 6
			}
		},
		"2 goroutines are left, there were 0":                 func(o *soak) { o.after.goroutines = 2 },
		"1 descriptors are left, there were 0":                func(o *soak) { o.after.descriptors = 1 },
		"the server got 1 posts before which one was missing": func(o *soak) { o.server.Gaps = 1 },
		"1 posts were added, and 0 have an outcome":           func(o *soak) { o.n.added.Add(1) },
		"1 mistakes:\nc1: tick 3 of a, after 1":               func(o *soak) { o.n.mistake("c1: tick %d of a, after %d", 3, 1) },
	} {
		o := steady()
		spoil(o)
		require.EqualError(t, o.judge(), want)
	}
}
