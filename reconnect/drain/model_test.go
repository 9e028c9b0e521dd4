package drain_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// A life of a Group in which everything happens at random, in virtual time.

// connection is a member that notes what is done to it.
type connection struct {
	member *drain.Member

	mu       sync.Mutex // guards what follows
	closed   int        // calls of its closer
	told     int        // calls of its notice
	by       time.Time
	early    bool // it was closed before the time that it was told, in no hurry
	finished bool // its closer has returned
}

func TestEachConnectionClosesOnceAtMost(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { live(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

// live plays one life, and checks what holds in the end.
func live(t *testing.T, r *rand.Rand) {
	g, err := drain.New(&drain.Options{
		Window: time.Duration(r.IntN(60)) * time.Second, Lead: time.Duration(r.IntN(20)) * time.Second,
		MaxAge:  time.Duration(r.IntN(2)*(20+r.IntN(100))) * time.Second,
		Closers: 1 + r.IntN(20), CloseTimeout: time.Duration(500+r.IntN(5000)) * time.Millisecond,
		Rand: rand.NewPCG(r.Uint64(), 0),
	})
	require.NoError(t, err)
	var all []*connection
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(200))*time.Second)
	defer cancel()
	drained := make(chan error, 1)
	time.AfterFunc(time.Duration(r.IntN(60))*time.Second, func() { drained <- g.Drain(ctx) })
	for range 500 {
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		synctest.Wait()
		if c := pick(r, all); c != nil && r.IntN(3) == 0 {
			c.member.Remove()
			continue
		}
		c := new(connection)
		all = append(all, c)
		c.join(ctx, g, r)
	}
	left := 0 // not closed, because too many others hang
	if e, ok := errors.AsType[*drain.Error](<-drained); ok {
		left = e.Left
	}
	time.Sleep(time.Hour) // for what was added late, and what hangs
	synctest.Wait()
	for _, c := range all {
		c.mu.Lock()
		require.True(t, c.closed == 1 && c.finished || c.closed == 0)
		require.LessOrEqual(t, c.told, 1)
		require.False(t, c.early)
		c.mu.Unlock()
	}
	s := g.Stats()
	require.Equal(t, len(all), s.Added)
	require.Equal(t, s.Added, s.Members+s.Left+s.Closed+s.Failed)
	require.LessOrEqual(t, s.Members, left, "all others were closed, or have left")
	require.Zero(t, s.Hung)
	for _, c := range all {
		c.member.Remove()
	}
	require.Zero(t, g.Stats().Members)
}

// pick returns one of all, or nil.
func pick(r *rand.Rand, all []*connection) *connection {
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

// join adds c, whose functions take a random time.
func (c *connection) join(ctx context.Context, g *drain.Group, r *rand.Rand) {
	closing, telling := time.Duration(r.IntN(3000))*time.Millisecond, time.Duration(r.IntN(3000))*time.Millisecond
	if r.IntN(20) == 0 {
		closing = time.Minute
	}
	var err error
	if r.IntN(5) == 0 {
		err = errEnough
	}
	closer := func(int, string) error {
		c.mu.Lock()
		c.closed++
		c.early = time.Now().Before(c.by) && ctx.Err() == nil
		c.mu.Unlock()
		time.Sleep(closing)
		c.mu.Lock()
		c.finished = true
		c.mu.Unlock()
		return err
	}
	if r.IntN(2) == 0 {
		c.member = g.Add(closer)
		return
	}
	c.member = g.AddNotice(closer, func(by time.Time) {
		c.mu.Lock()
		c.told++
		c.by = by
		c.mu.Unlock()
		time.Sleep(telling)
	})
}
