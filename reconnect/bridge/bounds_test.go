package bridge_test

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect"
)

const n = 3

// bounds are the limits that options set to n, by the option.
var bounds = map[string]struct {
	o      options
	within func(t *testing.T, s *scene, k int) bool
}{
	"Messages": {options{Messages: n}, func(t *testing.T, s *scene, k int) bool {
		for i := range k {
			s.live("a", uint64(7+i))
		}
		return s.b.Stats().Dropped == 0
	}},
	"Bytes": {options{Bytes: n * len(`a "" 0 7`)}, func(t *testing.T, s *scene, k int) bool {
		for i := range k {
			s.live("a", uint64(7+i))
		}
		return s.b.Stats().Dropped == 0
	}},
	"Fetches": {options{Fetches: n}, func(t *testing.T, s *scene, k int) bool {
		for key := range k - 1 {
			s.live(fmt.Sprint(key), 5)
		}
		s.seam(reconnect.Seam{Lost: 1}) // of a, too
		return s.calls() == k
	}},
	"Streams": {options{Streams: n}, func(t *testing.T, s *scene, k int) bool {
		for key := range k - 1 {
			s.live(fmt.Sprint(key), 5)
		}
		return s.b.Stats().Streams == k
	}},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				o := b.o
				withStore(t, &store{last: 20, takes: time.Second}, &o, func(s *scene) {
					require.Equal(t, k <= n, b.within(t, s, k), "%d of %d", k, n)
				})
			}
		})
	}
}

// timeBounds have, by the option, whether something has happened after k. The option is limit, or if that is 0
// its default.
var timeBounds = map[string]func(t *testing.T, limit, k time.Duration) (happened bool){
	"Timeout": func(t *testing.T, limit, k time.Duration) (happened bool) {
		o := &options{Timeout: limit, OnRetry: func(string, error, time.Duration) { happened = true }}
		withStore(t, &store{last: 6, takes: time.Hour}, o, func(s *scene) {
			s.seam(reconnect.Seam{Lost: 1})
			time.Sleep(k)
			synctest.Wait()
		})
		return happened
	},
	"Patience": func(t *testing.T, limit, k time.Duration) (happened bool) {
		withStore(t, &store{last: 6}, &options{Patience: limit, Policy: oneSecond}, func(s *scene) {
			s.live("a", 9) // 7 and 8 are nowhere
			time.Sleep(k)
			synctest.Wait()
			s.set(func() { happened = len(s.lost) > 0 })
		})
		return happened
	},
}

// What happens after Timeout or Patience does not happen a nanosecond before.
func TestTimesAreExact(t *testing.T) {
	for name, happened := range timeBounds {
		const five, ten = 5 * time.Second, 10 * time.Second
		for limit, want := range map[time.Duration]time.Duration{five: five, 0: ten} {
			for k := want - 1; k <= want+1; k++ {
				require.Equal(t, k >= want, happened(t, limit, k), "%s, after %v of %v", name, k, want)
			}
		}
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[options]()}
	require.Empty(t, numeric.WithoutRow(options, bounds, timeBounds))
}
