package rotation_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd/rotation"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clients = 10_000
	day     = 24 * time.Hour
)

func run(t *testing.T, o rotation.Options) []rotation.Wave {
	t.Helper()
	waves, err := rotation.Run(o)
	require.NoError(t, err)
	return waves
}

func TestWithoutTheDrawAllRotateAtOnce(t *testing.T) {
	for i, w := range run(t, rotation.Options{From: 1, Waves: 3}) {
		most, at := w.Peak()
		require.Equal(t, clients, most)
		require.Equal(t, time.Duration(i+1)*day, at)
		require.Zero(t, w.Span())
	}
}

// 10,000 dials within 2.4 h are 1.16 per second. A Poisson process of that rate has 8 to 10 in
// the worst of 8,640 seconds.
func TestTheDrawSpreadsTheRotationsOverATenthOfTheAge(t *testing.T) {
	for seed := range uint64(5) {
		spreads(t, run(t, rotation.Options{Seed: seed})[0])
	}
}

// spreads checks what the first rotation of the clients must look like.
func spreads(t *testing.T, w rotation.Wave) {
	t.Helper()
	require.Len(t, w.Dials, clients)
	require.GreaterOrEqual(t, w.Dials[0], day/10*9)
	require.Less(t, w.Dials[clients-1], day)
	rate := clients / w.Span().Seconds()
	require.InDelta(t, 1.157, rate, 0.002)
	most, _ := w.Peak()
	require.GreaterOrEqual(t, most, 6)
	require.LessOrEqual(t, most, 11)
	for tenth := range 10 { // even
		from := day/10*9 + time.Duration(tenth)*day/100
		first, _ := slices.BinarySearch(w.Dials, from)
		end, _ := slices.BinarySearch(w.Dials, from+day/100)
		require.InDelta(t, clients/10, end-first, 120, "four standard deviations")
	}
}

// With each day the clients are further apart.
func TestEachRotationIsSpreadFurther(t *testing.T) {
	waves := run(t, rotation.Options{Waves: 4})
	for i, w := range waves {
		require.Equal(t, i+1, w.N)
		require.Len(t, w.Dials, clients)
		if i > 0 {
			require.Greater(t, w.Span(), waves[i-1].Span())
		}
	}
	require.Equal(t, waves, run(t, rotation.Options{Waves: 4}), "the same seed")
	require.NotEqual(t, waves, run(t, rotation.Options{Waves: 4, Seed: 1}))
}

// 10,000 real Conns that are started together, in virtual time.
func TestRealConnsAreSpreadLikeTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex // guards dials
		var dials []time.Duration
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dials = append(dials, time.Since(start))
			return conntest.NewFake(nil).Conn(), nil
		})
		all := make([]*reconnect.Conn, clients)
		for i := range all {
			var err error
			all[i], err = reconnect.New(dial, &reconnect.Options{
				Rotate: reconnect.Rotation{After: day}, Run: reconnect.RunOptions{Rand: rand.NewPCG(24, uint64(i))},
			})
			require.NoError(t, err)
		}
		time.Sleep(day)
		synctest.Wait()
		for _, c := range all {
			require.Equal(t, uint64(2), c.Stats().Dials)
			c.Close()
			<-c.Done()
		}
		require.Len(t, dials, 2*clients)
		spreads(t, rotation.Wave{N: 1, Dials: dials[clients:]})
	})
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for want, o := range map[string]rotation.Options{
		"simulate rotations: want 1 to 1000000 clients, not -1":                                  {Clients: -1},
		"simulate rotations: want an age of 1s to 8760h0m0s, not -1ns":                           {After: -1},
		"simulate rotations: the age is drawn from a share above 0 and at most 1 of it, not 1.5": {From: 1.5},
		"simulate rotations: want 1 to 100 rotations of each client, not 101":                    {Waves: 101},
		"simulate rotations: that are more than 10 million dials":                                {Clients: 1_000_000, Waves: 11},
	} {
		_, err := rotation.Run(o)
		require.EqualError(t, err, want)
	}
}
