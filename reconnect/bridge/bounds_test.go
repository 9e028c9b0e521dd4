package bridge_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	const n = 3
	for name, b := range map[string]struct {
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
	} {
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

// What happens after Timeout or Patience does not happen a nanosecond before.
func TestTimesAreExact(t *testing.T) {
	const n = 5 * time.Second
	for k := n - 1; k <= n+1; k++ {
		happened := false
		o := &options{Timeout: n, OnRetry: func(string, error, time.Duration) { happened = true }}
		withStore(t, &store{last: 6, takes: time.Hour}, o, func(s *scene) {
			s.seam(reconnect.Seam{Lost: 1})
			time.Sleep(k)
			synctest.Wait()
			require.Equal(t, k >= n, happened, "Timeout, after %v", k)
		})
		withStore(t, &store{last: 6}, &options{Patience: n, Policy: oneSecond}, func(s *scene) {
			s.live("a", 9) // 7 and 8 are nowhere
			time.Sleep(k)
			synctest.Wait()
			s.set(func() { happened = len(s.lost) > 0 })
			require.Equal(t, k >= n, happened, "Patience, after %v", k)
		})
	}
}
