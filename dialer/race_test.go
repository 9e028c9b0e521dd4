package dialer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/stretchr/testify/require"
)

// place is the address with a name of at most 16 bytes, and nameOf is its name.
func place(name string) netip.Addr {
	var b [16]byte
	copy(b[:], name)
	return netip.AddrFrom16(b)
}

func nameOf(a netip.Addr) string { return strings.TrimRight(string(a.AsSlice()), "\x00") }

// track is where a race is run: each address answers after its time, negative
// ones fail after it.
type track struct {
	candidates
	after map[string]time.Duration
	deaf  time.Duration // how long a dial goes on after the end of its context, and then answers
	leave func()        // called by the dial of "leaves"

	mu      sync.Mutex
	start   time.Time
	started map[string]time.Duration
	open    int
}

var errFell = errors.New("fell")

func (k *track) run(ctx context.Context, addresses ...string) (string, error) {
	k.start, k.started = time.Now(), map[string]time.Duration{}
	c := k.candidates
	for _, address := range addresses {
		c.known = append(c.known, place(address))
	}
	if c.avoid == nil {
		c.avoid = func(netip.Addr) bool { return false }
	}
	c.rand = backoff.Rand()
	nc, err := c.race(ctx, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		address := nameOf(a)
		k.mu.Lock()
		k.started[address] = time.Since(k.start)
		k.mu.Unlock()
		if address == "leaves" {
			k.leave()
		}
		after := k.after[address]
		select {
		case <-time.After(max(after, -after)):
		case <-ctx.Done():
			if k.deaf == 0 {
				return nil, ctx.Err()
			}
			time.Sleep(k.deaf)
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

// A race ends when every dial of it has ended, and one winner is open: with losers that
// answer at the same time as it, at once when they are cancelled, or later.
func TestARaceWaitsForItsLosersAndClosesThem(t *testing.T) {
	same := 500 * time.Millisecond
	for name, c := range map[string]struct {
		loser, deaf, want time.Duration
	}{
		"together":  {same, 0, same},
		"cancelled": {time.Hour, 0, same},
		"deaf":      {time.Hour, 3 * time.Second, same + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &track{after: map[string]time.Duration{"a": c.loser, "b": same - stagger}, deaf: c.deaf}
				_, err := k.run(t.Context(), "a", "b")
				require.NoError(t, err)
				require.Equal(t, c.want, time.Since(k.start))
				require.Equal(t, 1, k.open)
			})
		})
	}
}

func TestADialThatDoesNotReturnLosesTheRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"good": time.Second}, leave: runtime.Goexit}
		winner, err := k.run(t.Context(), "leaves", "good")
		require.NoError(t, err)
		require.Equal(t, "good", winner)
		require.Equal(t, time.Second, time.Since(k.start))
		_, err = k.run(t.Context(), "leaves")
		require.ErrorIs(t, err, errGoexit)
	})
}

func TestAPanicEndsTheRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"a": time.Hour}, leave: func() { panic("boom") }}
		_, err := k.run(t.Context(), "a", "leaves", "c")
		require.ErrorAs(t, err, new(*panicError))
		require.Equal(t, map[string]time.Duration{"a": 0, "leaves": stagger}, k.started, "no other is dialed")
		require.Zero(t, k.open)
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

func TestFamiliesTakeTurnsAndEachIsShuffled(t *testing.T) {
	given := addrs("::1", "127.0.0.1", "::2", "::ffff:127.0.0.1", "127.0.0.2", "::3")
	var seen [5]map[string]bool
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	for range 500 {
		order := interleave(given, backoff.Rand())
		require.Len(t, order, 5, "one of them is there twice")
		for i, a := range order {
			require.Equal(t, i == 1 || i == 3, a.Is4(), "%v", order)
			seen[i][a.String()] = true
		}
	}
	for i, addresses := range seen {
		require.Len(t, addresses, map[bool]int{true: 2, false: 3}[i == 1 || i == 3], "place %d", i)
	}
}

// The addresses to avoid are tried when no other is left.
func TestARaceGoesToAvoidedAddressesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"a": -1, "b": -1, "c": -time.Second, "late": -2 * time.Second}}
		k.avoid = func(a netip.Addr) bool { return nameOf(a) == "b" || nameOf(a) == "a" }
		k.more = k.later(500*time.Millisecond, "late", "b")
		_, err := k.run(t.Context(), "a", "b", "c")
		require.EqualError(t, err, "fell (the first of 4 addresses, none answered)")
		require.Equal(t, map[string]time.Duration{
			"c": 0, "late": 500 * time.Millisecond, "a": 2500 * time.Millisecond, "b": 2500*time.Millisecond + 1,
		}, k.started)
	})
}

// later yields addresses after some time.
func (k *track) later(after time.Duration, names ...string) <-chan found {
	more := make(chan found, 1)
	time.AfterFunc(after, func() {
		f := found{network: "ip6"}
		for _, name := range names {
			f.addrs = append(f.addrs, place(name))
		}
		if names == nil {
			f.err = errFell
		}
		more <- f
	})
	return more
}

// The address of one family is found when those of the other are being dialed, or have failed.
func TestAnAddressThatIsFoundLaterJoinsTheRace(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		known   time.Duration // when each of a and b answers
		after   time.Duration // when x is found
		started map[string]time.Duration
	}{
		"at once":    {time.Hour, ms, map[string]time.Duration{"a": 0, "x": 250 * ms}},
		"between":    {time.Hour, 300 * ms, map[string]time.Duration{"a": 0, "b": 250 * ms, "x": 500 * ms}},
		"all silent": {time.Hour, 5 * time.Second, map[string]time.Duration{"a": 0, "b": 250 * ms, "x": 5000 * ms}},
		"all fallen": {-ms, time.Second, map[string]time.Duration{"a": 0, "b": ms, "x": 1000 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &track{after: map[string]time.Duration{"a": c.known, "b": c.known, "x": ms}}
				k.more = k.later(c.after, "a", "x") // a is known already
				winner, err := k.run(t.Context(), "a", "b")
				require.NoError(t, err)
				require.Equal(t, "x", winner)
				require.Equal(t, c.started, k.started)
			})
		})
	}
}

// A name server that never answers for one family does not hold up for long that the other has failed.
func TestARaceHasLittlePatienceWhenAllHaveFallen(t *testing.T) {
	for name, c := range map[string]struct{ known, patience, more, want time.Duration }{
		"none is left":       {time.Second, 0, time.Hour, time.Second},
		"some is left":       {time.Second, 2 * time.Second, time.Hour, 2 * time.Second},
		"no address is late": {time.Second, 2 * time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &track{after: map[string]time.Duration{"a": -c.known}}
				k.patience, k.more = time.After(c.patience), k.later(c.more)
				_, err := k.run(t.Context(), "a")
				require.Equal(t, errFell, err)
				require.Equal(t, c.want, time.Since(k.start))
				time.Sleep(2 * time.Hour) // the lookup in this test knows no end
			})
		})
	}
}

func TestAPanicOfALaterLookupEndsTheRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &track{after: map[string]time.Duration{"a": time.Hour}}
		more := make(chan found, 1)
		more <- found{err: &panicError{}}
		k.more = more
		_, err := k.run(t.Context(), "a")
		require.ErrorAs(t, err, new(*panicError))
		require.Zero(t, time.Since(k.start))
	})
}
