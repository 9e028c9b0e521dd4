//go:build linux

package clients_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/interop/clients"
	"github.com/redial-go/redial/bench/interop/internal/server"
)

func TestWithoutTheDialerARedisCallFailsWhileTheServerIsAway(t *testing.T) {
	s := server.Redis(t)
	c := redis.NewClient(&redis.Options{Addr: s.Address})
	defer c.Close()
	require.NoError(t, c.Set(t.Context(), "k", 1, 0).Err())
	s.Kill()
	require.ErrorContains(t, c.Set(t.Context(), "k", 2, 0).Err(), "connection refused")
}

func TestARedisCallMadeWhileTheServerIsAwaySucceedsOnceItIsBack(t *testing.T) {
	s := server.Redis(t)
	d, tries := retrying()
	c := clients.Redis(s.Address, d, outage)
	defer c.Close()
	require.NoError(t, c.Set(t.Context(), "before", 1, 0).Err())
	bridge(t, s, tries, func(ctx context.Context) error { return c.Set(ctx, "while", 2, 0).Err() })
	values, err := c.MGet(t.Context(), "before", "while").Result()
	require.NoError(t, err)
	require.Equal(t, []any{"1", "2"}, values)
}

func TestARedisCallEndsWithItsContextAndItsDialWhenTheServerIsBack(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := server.Redis(t)
	d, _ := retrying()
	c := clients.Redis(s.Address, d, outage)
	impatient(t, s, func(ctx context.Context) error { return c.Ping(ctx).Err() })
	s.Start()
	require.NoError(t, c.Ping(t.Context()).Err())
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return goleak.Find(before) == nil }, time.Minute, 100*time.Millisecond)
}

func TestRedisIsKilledTwiceAndEveryCallSucceeds(t *testing.T) {
	s := server.Redis(t)
	d, _ := retrying()
	c := clients.Redis(s.Address, d, outage)
	defer c.Close()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writers sync.WaitGroup
	var counts [4]int
	for w := range counts {
		writers.Go(func() {
			for ; ctx.Err() == nil; counts[w]++ {
				// Set may be sent twice, and go-redis does that when a connection breaks.
				if err := c.Set(context.Background(), fmt.Sprint(w, ":", counts[w]), counts[w], 0).Err(); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		s.Kill()
		time.Sleep(time.Second)
		s.Start()
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	writers.Wait()
	for w, n := range counts {
		require.Greater(t, n, 10)
		for i := range n {
			require.Equal(t, fmt.Sprint(i), c.Get(t.Context(), fmt.Sprint(w, ":", i)).Val())
		}
	}
	requireNoMoreRedisClients(t, c)
}

// requireNoMoreRedisClients compares what the pool says with what the server sees.
func requireNoMoreRedisClients(t *testing.T, c *redis.Client) {
	list, err := c.ClientList(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, int(c.PoolStats().TotalConns), strings.Count(list, "\n"))
}
