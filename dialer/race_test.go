package dialer

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// track is where a race is run: each address answers after its time, negative
// ones fail after it.
type track struct {
	after map[string]time.Duration

	mu      sync.Mutex
	start   time.Time
	started map[string]time.Duration
	open    int
}

var errFell = errors.New("fell")

func (k *track) run(ctx context.Context, addresses ...string) (string, error) {
	k.start, k.started = time.Now(), map[string]time.Duration{}
	nc, err := race(ctx, addresses, func(ctx context.Context, address string) (net.Conn, error) {
		k.mu.Lock()
		k.started[address] = time.Since(k.start)
		k.mu.Unlock()
		after := k.after[address]
		select {
		case <-time.After(max(after, -after)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if after < 0 {
			return nil, errFell
		}
		k.count(1)
		return &runner{track: k, address: address}, nil
	})
	if err != nil {
		return "", err
	}
	return nc.(*runner).address, nil
}

func (k *track) count(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open += n
}

type runner struct {
	net.Conn
	track   *track
	address string
}

func (r *runner) Close() error { r.track.count(-1); return nil }

// Fact 12.
func TestABlackHoleCostsOneStagger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"hole": time.Hour, "good": time.Millisecond}}
		winner, err := k.run(t.Context(), "hole", "good")
		require.NoError(t, err)
		require.Equal(t, "good", winner)
		require.Equal(t, 251*time.Millisecond, time.Since(k.start))
	})
}

func TestAFailureStartsTheNextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"bad": -time.Millisecond, "good": time.Second, "spare": time.Hour}}
		winner, err := k.run(t.Context(), "bad", "good", "spare")
		require.NoError(t, err)
		require.Equal(t, "good", winner)
		require.Equal(t, map[string]time.Duration{"bad": 0, "good": time.Millisecond, "spare": 251 * time.Millisecond}, k.started)
	})
}

func TestLosersOfARaceAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := 500 * time.Millisecond
		k := &track{after: map[string]time.Duration{"a": same, "b": same - stagger}} // answer together
		_, err := k.run(t.Context(), "a", "b")
		require.NoError(t, err)
		require.Equal(t, 1, k.open)
	})
}

func TestARaceWithoutWinnerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"a": -1, "b": -1}}
		_, err := k.run(t.Context(), "a", "b")
		require.ErrorIs(t, err, errFell)
		require.EqualError(t, err, "fell (the first of 2 addresses, none answered)")
		_, err = k.run(t.Context(), "a")
		require.Equal(t, errFell, err)
	})
}

func TestARaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errFell)
		defer cancel()
		k := &track{after: map[string]time.Duration{"a": time.Hour, "b": time.Hour}}
		_, err := k.run(ctx, "a", "b")
		require.Equal(t, errFell, err)
		require.Equal(t, time.Second, time.Since(k.start))
		require.Zero(t, k.open)
	})
}
