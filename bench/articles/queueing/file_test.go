package queueing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

func TestAWrongFigureInAScenarioIsNamed(t *testing.T) {
	s, err := queueing.Find("jitter_vs_no_jitter")
	require.NoError(t, err)
	for _, w := range []struct{ old, new, want string }{
		{`"from"`, `"form"`, `line 7: failure: there is no key "form" (is it "from"?): there are from, to, share, by_user, by_host`},
		{`"jitter": "full"`, `"jitter": "fall"`, `strategy retry-3x-with-exp-backoff+jitter: there is no jitter "fall" (is it "full"?): there are none, full, equal`},
		{`"share": 1`, `"share": 1.5`, "want 0 to 1 as the share that fails, not 1.5"},
		{`"capacity": 4`, `"capacity": 0`, "want a capacity of more than 0 to 1000, not 0, or a number of cpus"},
		{`"1.75s"`, `"2h"`, "want a length of 1ms to 1h, not 2h0m0s"},
		{`["100ms"]`, `[0]`, "want 1 to 255 timeouts above 0"},
		{`"to": "1s"`, `"to": "0s"`, "want a failure that ends after it begins, not from 500ms to 0s"},
		{`"limit": 0.1`, `"limit": -1`, "want 0 to 3600 s worth of calls as the limit, not -1"},
		{`"name": "retry-3x-with-exp-backoff"`, `"name": "retry-3x-with-exp-backoff+jitter"`, `strategy 2: want a name that no other has, not "retry-3x-with-exp-backoff+jitter"`},
		{`"name": "jitter_vs_no_jitter"`, `"name": ""`, "want a name"},
	} {
		text := strings.Replace(string(s.File()), w.old, w.new, 1)
		require.NotEqual(t, string(s.File()), text, w.old)
		_, err := queueing.Read([]byte(text))
		require.EqualError(t, err, w.want)
	}
}

func TestAFileOfTheUsersIsAScenario(t *testing.T) {
	s, err := queueing.Find("mfs")
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(name, s.File(), 0o600))
	mine, err := queueing.Find(name)
	require.NoError(t, err)
	require.Equal(t, s, mine)
	require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	_, err = queueing.Find(name)
	require.EqualError(t, err, name+": want a name")
	_, err = queueing.Find("none.json")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// CPUs that are given as a number are as good as a capacity of so many, and times that are twice as
// long need twice as many.
func TestOwnFiguresTakeThePlaceOfTheUsualOnes(t *testing.T) {
	s, err := queueing.Find("mfs")
	require.NoError(t, err)
	o := queueing.Setup{Scenario: s, Strategy: s.Strategies[0], RPS: 1000, Seed: 1}
	usual, err := queueing.Run(o)
	require.NoError(t, err)
	require.Equal(t, 20, usual.CPUs)
	o.Scenario.Processors, o.Scenario.Capacity = 20, 0
	o.Scenario.Latency, o.Scenario.Trip = 10*time.Millisecond, 5*time.Millisecond
	same, err := queueing.Run(o)
	require.NoError(t, err)
	require.Equal(t, usual.Buckets, same.Buckets)
	require.InEpsilon(t, 193.8, o.Scenario.Full(1000), 0.001)

	o.Scenario.Processors, o.Scenario.Capacity, o.Scenario.Latency = 0, 2, 20*time.Millisecond
	slow, err := queueing.Run(o)
	require.NoError(t, err)
	require.Equal(t, 41, slow.CPUs)
	require.InDelta(t, 10, (slow.Buckets[5].P50-usual.Buckets[5].P50).Seconds()*1000, 2, "a service of 20 ms instead of 10")
}
