package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// Random histories of all files of the Bridge at once. REDIAL_SEEDS sets the number of seeds;
// -run 'Once/^17$' runs one again.

// For each seed there are two virtual minutes of losses, lost and repeated messages, capped and
// late pages, fetches that fail or hang, forgotten numbers, new epochs, and a hold that is too
// small. Each number comes once and in order, or a reset or a loss is reported, and in the end
// nothing is missing.
func TestEachNumberComesOnce(t *testing.T) {
	seeds := 100
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, uint64(seed)) })
		})
	}
}

// modelReader checks what a reader gets.
type modelReader struct {
	t    *testing.T
	keys []modelPlace

	mu     sync.Mutex // guards what follows
	seams  int
	resets int
	lost   int
	healed int
}

// modelPlace is how far a stream is.
type modelPlace struct {
	begun, stale bool
	turned       bool // a new epoch has begun, whose name is not known
	at           bridge.Cursor
}

// event checks an event.
func (r *modelReader) event(e bridge.Event[int, string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == bridge.EventOther {
		_, seam := errors.AsType[*reconnect.Seam](e.Err)
		require.True(r.t, seam, "%+v", e)
		r.seams++
		return
	}
	p := &r.keys[e.Key]
	due := p.at.Offset + 1
	switch e.Kind {
	case bridge.EventLive, bridge.EventPast:
		require.Equal(r.t, name(e.Key, e.Epoch, e.Last), e.Value)
		if p.begun {
			first := max(e.First, 1)
			if e.First == 0 {
				first = e.Last
			}
			require.True(r.t, p.at.Epoch == e.Epoch || p.turned, "%+v", e)
			require.True(r.t, first <= due && due <= e.Last, "%v is due: %+v", due, e)
		}
	case bridge.EventSnapshot:
		r.resets++
		require.Equal(r.t, name(e.Key, e.Epoch, e.Last), e.Value)
	case bridge.EventLost:
		r.lost++
		if errors.Is(e.Err, bridge.ErrNewEpoch) { // the next number tells the epoch
			p.at, p.turned = bridge.Cursor{}, true
			return
		}
		require.Equal(r.t, due, e.First, "%+v", e)
	case bridge.EventStale:
		require.False(r.t, p.stale, "stale already: %+v", e)
		p.stale = true
	case bridge.EventHealed:
		r.healed++
		require.True(r.t, p.stale, "%+v", e)
		require.False(r.t, p.begun && p.at != bridge.Cursor{Epoch: e.Epoch, Offset: e.Last}, "%+v after %v", e, p.at)
		p.stale = false
	}
	if c, ok := e.Cursor(); ok {
		p.begun, p.turned, p.at = true, false, c
	}
}

// seeded is a Policy that is random in the same way each time.
type seeded struct {
	backoff.Policy
	r *rand.Rand
}

func (s seeded) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	return s.Policy.Next(h, s.r)
}

// modelOptions draws other options for each seed.
func modelOptions(r *rand.Rand, s *modelServer) *bridge.Options[int, string] {
	o := &bridge.Options[int, string]{
		Parse: parse, Messages: 1 + r.IntN(60), Fetches: 1 + r.IntN(4), Policy: seeded{backoff.Default(), rand.New(rand.NewPCG(r.Uint64(), 1))},
		AwaitSubscribed: r.IntN(4) == 0,
	}
	if r.IntN(3) == 0 {
		o.Bytes = 1 + r.IntN(500)
	}
	switch r.IntN(5) {
	case 0:
		o.Past = s.past
	case 1, 2:
		o.Past, o.Snapshot = s.past, s.snapshot
	case 3:
		o.Snapshot = s.snapshot
	case 4:
		o.Ask, s.asked = s.ask, true
	}
	if r.IntN(2) == 0 {
		s.forgets = uint64(20 + r.IntN(50))
	}
	s.turns = r.IntN(2) == 0
	return o
}

func runModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := newModelServer(rand.New(rand.NewPCG(seed, 8)), 1+r.IntN(4))
	o := modelOptions(r, s)
	b, err := bridge.New(o)
	require.NoError(t, err)
	c, err := reconnect.New(reconnect.DialFunc(s.dial), &reconnect.Options{Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}}})
	require.NoError(t, err)
	reader := &modelReader{t: t, keys: make([]modelPlace, s.keys)}
	if r.IntN(2) == 0 {
		for key := range s.keys {
			require.NoError(t, b.Follow(key, bridge.Cursor{}))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { readModel(ctx, b, c, reader, rand.New(rand.NewPCG(seed, 9))) })
	for range 1200 {
		time.Sleep(100 * time.Millisecond)
		s.tick()
		if o.AwaitSubscribed && r.IntN(20) == 0 {
			b.Refetch(r.IntN(s.keys), 0)
		}
	}
	s.settle()
	time.Sleep(10 * time.Minute)
	require.NoError(t, c.AwaitReady(t.Context()))
	s.growAll() // which shows what was missing before
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	checkModel(t, s, o, b, reader)
	stop()
	work.Wait()
	c.Close()
	<-c.Done()
}

// readModel reads slowly now and then, and begins the loop anew.
func readModel(ctx context.Context, b *bridge.Bridge[int, string], c *reconnect.Conn, reader *modelReader, r *rand.Rand) {
	for ctx.Err() == nil {
		for e, err := range b.Events(ctx, c) {
			if err != nil {
				return
			}
			reader.event(e)
			switch r.IntN(50) {
			case 0:
				time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			case 1:
				goto again
			}
		}
	again:
	}
}

// checkModel looks at a model that is at rest.
func checkModel(t *testing.T, s *modelServer, o *bridge.Options[int, string], b *bridge.Bridge[int, string], reader *modelReader) {
	reader.mu.Lock()
	defer reader.mu.Unlock()
	stats := b.Stats()
	for key, p := range reader.keys {
		require.False(t, p.stale, "stream %d at %v of %v: %+v", key, p.at, s.end(key), stats)
		require.Equal(t, s.end(key), p.at, "stream %d: %+v", key, stats)
	}
	require.Zero(t, stats.Held)
	require.Zero(t, stats.Stale)
	require.Equal(t, s.kills, reader.seams, "a fetch costs no connection")
	if !s.turns && s.forgets == 0 && o.Past != nil && o.Snapshot == nil && !s.newest {
		require.Zero(t, reader.lost, "nothing was lost for good")
		require.Zero(t, reader.resets)
	}
	if o.Snapshot != nil || o.Ask != nil {
		require.Zero(t, reader.lost, "a snapshot takes its place")
	}
	require.NotZero(t, reader.healed)
}
