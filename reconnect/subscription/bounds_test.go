package subscription_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/subscription"
)

// keysTo returns k keys.
func keysTo(k int) (keys []string) {
	for i := range k {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}

// Batch keys go by one request, and one more needs another one.
func TestBatchIsExact(t *testing.T) {
	for option, n := range map[int]int{4: 4, 0: 50} {
		for k := n - 1; k <= n+1; k++ {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.so.Batch = option
				s.noteRequests()
				s.ready(keysTo(k)...)
				s.synced(keysTo(k)...)
				require.Equal(t, k <= n, len(s.noted()) == 1, "%d of %d", k, n)
			})
		}
	}
}

// InFlight requests wait for their answers at a time, and no more.
func TestInFlightIsExact(t *testing.T) {
	for option, n := range map[int]int{3: 3, 0: 8} {
		for k := n - 1; k <= n+1; k++ {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.so.Batch, s.so.InFlight = 1, option
				s.noteRequests()
				s.ready()
				s.venue.Next(slices.Repeat([]venueFault{{Slow: time.Second}}, k)...)
				s.set.Add(keysTo(k)...)
				synctest.Wait()
				require.Len(t, s.noted(), min(k, n), "%d of %d", k, n)
				time.Sleep(time.Minute)
			})
		}
	}
}

// A key without an answer is asked for again after Timeout, and not a nanosecond before.
func TestTimeoutIsExact(t *testing.T) {
	for option, n := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, 0: 10 * time.Second} {
		for k := n - 1; k <= n+1; k++ {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.so.Timeout = option
				s.noteRequests()
				s.ready()
				s.venue.Next(venueFault{Lost: true})
				s.set.Add("a")
				synctest.Wait()
				require.Len(t, s.noted(), 1)
				time.Sleep(k)
				require.Equal(t, k >= n, len(s.noted()) == 1, "after %v of %v", k, n)
			})
		}
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[subscription.Options[string]]()}
	require.Empty(t, numeric.WithoutRow(options, []string{"Batch", "InFlight", "Timeout"}))
}

// Late answers to 64 requests of a session count, and the answer to an older one does not.
func TestLateRequestsAreBounded(t *testing.T) {
	ignored := func(r venueRequest) venueFault { // 65 of them
		n, err := strconv.Atoi(r.ID)
		return venueFault{Ignored: err == nil && n <= 65}
	}
	inBubble(t, &venueOptions{Fault: ignored}, func(t *testing.T, s *scene) {
		s.so.Batch, s.so.InFlight = 1, 65
		keys := keysTo(65)
		s.ready(keys...)
		time.Sleep(30 * time.Second) // the first is given up after 10 s, all others when they were passed
		s.synced(keys...)
		s.set.Remove(keys[:2]...)
		s.synced(keys[2:]...)
		before := s.venue.Stats().Requests
		require.True(t, s.receive(`{"op":"subscribe","id":"1","answer":true}`))
		s.synced(keys[2:]...)
		require.Equal(t, before, s.venue.Stats().Requests)
		require.True(t, s.receive(`{"op":"subscribe","id":"2","answer":true}`))
		s.synced(keys[2:]...)
		require.Equal(t, before+1, s.venue.Stats().Requests, "the key is removed")
	})
}
