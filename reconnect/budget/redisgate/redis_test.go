package redisgate_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// patient is hundred, for a machine that is busy.
func patient() redisgate.Options {
	o := hundred()
	o.Slack, o.Timeout = 500*time.Millisecond, 2*time.Second
	return o
}

// wait lets one dial begin, and fails the test if that takes a minute.
func wait(t *testing.T, l *redisgate.Limiter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, l.Wait(ctx))
}

func TestARealServerThatForgetsItsScriptsIsToldAgain(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t)
	l, c := newLimiter(t, s.client(t), patient()), s.client(t)
	for range 3 {
		wait(t, l)
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
	}
	require.EqualValues(t, 3, l.Status().Granted)
	require.Zero(t, l.Status().Shared)
}

func TestARealReplicaCountsAsAway(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t)
	l, c := newLimiter(t, s.client(t), patient()), s.client(t)
	wait(t, l)
	require.NoError(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	wait(t, l)
	require.True(t, l.Status().Away)
	require.ErrorContains(t, l.Status().Err, "READONLY")
	require.EqualValues(t, 1, l.Status().Shared)
	require.NoError(t, c.ReplicaOf(t.Context(), "NO", "ONE").Err())
	wait(t, l)
	require.Eventually(t, func() bool { wait(t, l); return !l.Status().Away }, time.Minute, 50*time.Millisecond)
}

// The server keeps the connections, accepts new ones, and answers none until the test has ended.
func TestHungRealServerCountsAsAway(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t)
	l := newLimiter(t, s.client(t), patient())
	wait(t, l)
	require.NoError(t, s.client(t).ClientPause(t.Context(), 10*time.Minute).Err())
	for range 3 {
		wait(t, l)
	}
	require.True(t, l.Status().Away)
	require.ErrorContains(t, l.Status().Err, "no answer in time")
	require.EqualValues(t, 3, l.Status().Shared)
}

// All keys are in one slot, so that a cluster accepts the script. Nothing is left but the state.
func TestAClusterAcceptsTheScript(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t, "--cluster-enabled", "yes")
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	lone := s.client(t)
	require.NoError(t, lone.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := lone.ClusterInfo(t.Context()).Result()
		return err == nil && len(info) > 16 && info[:16] == "cluster_state:ok"
	}, time.Minute, 20*time.Millisecond)
	o := patient()
	o.Slots = 5
	l := newLimiter(t, c, o)
	done, err := l.Acquire(t.Context())
	require.NoError(t, err)
	require.Zero(t, l.Status().Shared)
	keys := func() []string {
		keys, err := lone.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		return keys
	}
	require.ElementsMatch(t, []string{"redisgate:{venue}:state", "redisgate:{venue}:held", "redisgate:{venue}:lease"}, keys())
	done()
	require.Eventually(t, func() bool { return len(keys()) == 1 }, time.Minute, 20*time.Millisecond)
}

func TestNoErrorHasThePassword(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t, "--requirepass", "right-password")
	c, err := redis.ParseURL("redis://user:wrong-password@" + s.addr + "/0")
	require.NoError(t, err)
	c.ContextTimeoutEnabled = true
	client := redis.NewClient(c)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	told := make(chan error, 10) // one for each call, of which there are two at most
	o := patient()
	o.Timeout = 10 * time.Second // what fails is to be the password
	o.Away = func(err error) { told <- err }
	l := newLimiter(t, client, o)
	wait(t, l)
	require.True(t, l.Status().Away)
	for _, err := range []error{l.Status().Err, <-told} {
		require.ErrorContains(t, err, "WRONGPASS")
		require.NotContains(t, err.Error(), "password@")
		require.NotContains(t, err.Error(), "wrong-password")
	}
}
