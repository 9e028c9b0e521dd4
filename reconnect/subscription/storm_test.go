package subscription_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
	"github.com/redial-go/redial/reconnect/subscription/internal/venue"
)

// A session without its essential key is ended each time, but the dials are as rare as the
// requests for the key.
func TestABadEssentialKeyMakesNoLoopOfDials(t *testing.T) {
	inBubble(t, &venue.Options{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.Backoff = nil // at most a minute, with jitter
		s.so.Essential = func(k string) bool { return k == "bad" }
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionRedial }
		s.open("bad", "a", "b")
		time.Sleep(time.Hour)
		require.InDelta(t, 120, s.venue.Stats().Connections, 100)
		require.Less(t, s.venue.Stats().Requests, 3*s.venue.Stats().Connections)
		require.Equal(t, subscription.StateHeld, s.set.State("a"))
	})
}

func TestAVenueThatRefusesEverythingIsNotStormed(t *testing.T) {
	inBubble(t, &venue.Options{Most: 5, Per: time.Second, Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.so.Backoff = nil
		s.paced(4)
		s.ready(symbols(100)...)
		time.Sleep(time.Hour)
		require.Zero(t, s.venue.Stats().Policed)
		require.InDelta(t, 100*120, s.venue.Stats().Requests, 100*60, "each key about twice a minute")
		require.Equal(t, 1, s.venue.Stats().Connections)
	})
}

func TestAnEncodeThatAlwaysFailsIsCalledRarely(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		var calls atomic.Int64
		s.so.Backoff = nil
		s.so.Encode = func(*subscription.Request[string]) (conn.Message, error) {
			calls.Add(1)
			return conn.Message{}, errors.New("no")
		}
		s.ready("a", "b", "c")
		time.Sleep(time.Hour)
		require.InDelta(t, 3*120, calls.Load(), 3*60)
		require.Zero(t, s.venue.Stats().Requests)
	})
}

// Events that ends its goroutine has got one event. The others follow.
func TestAnEventIsNotLostWithTheGoroutine(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteEvents()
		var asked, told sync.Once
		note := s.so.Events
		s.so.Events = func(e subscription.Event[string]) { note(e); told.Do(runtime.Goexit) }
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision {
			asked.Do(func() { time.Sleep(3 * time.Second) }) // the other answer has come then
			return subscription.DecisionRetry
		}
		s.so.Batch = 1
		s.venue.Next(venue.Fault{Err: "not now", Slow: time.Second}, venue.Fault{Err: "not now", Slow: 2 * time.Second})
		s.ready("a", "b")
		time.Sleep(2 * time.Minute)
		s.synced("a", "b")
		require.Equal(t, uint64(2), s.conn.Status().Session)
		require.Equal(t, []string{"rejected 1 a subscribe: not now, retry", "rejected 1 b subscribe: not now, retry", "held 2 a", "held 2 b"}, s.noted())
	})
}

// Every function of the user may use the Set.
func TestTheFunctionsOfTheUserMayUseTheSet(t *testing.T) {
	inBubble(t, &venue.Options{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		use := func() {
			s.set.Add("x")
			s.set.Remove("x")
			s.set.Snapshot()
			s.set.Stats()
			s.set.State("a")
		}
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) { use(); return encode(r) }
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) { use(); return answer(m) }
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { use(); return subscription.DecisionDrop }
		s.so.Events = func(subscription.Event[string]) { use() }
		s.so.Essential = func(k string) bool {
			if k != "x" {
				use()
			}
			return k == "a"
		}
		s.ready("a", "bad", "c")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, s.set.Wait(ctx, "c"))
		synctest.Wait()
		s.holds("a", "c")
	})
}
