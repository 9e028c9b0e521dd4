package subscription_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

// A session without its essential key is ended each time, but the dials are as rare as the
// requests for the key.
func TestABadEssentialKeyMakesNoLoopOfDials(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.Backoff = nil // at most a minute, with jitter
		s.so.Essential = func(k string) bool { return k == "bad" }
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionRedial }
		s.open("bad", "a", "b")
		time.Sleep(time.Hour)
		require.InDelta(t, 120, s.venue.Stats().Connections, 100)
		require.Less(t, s.venue.Stats().Requests, 3*s.venue.Stats().Connections)
		for range 120 { // the Conn may be waiting for its next dial
			if s.set.State("a") == subscription.StateHeld {
				break
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, subscription.StateHeld, s.set.State("a"))
	})
}

func TestAVenueThatRefusesEverythingIsNotStormed(t *testing.T) {
	inBubble(t, &venueOptions{Most: 5, Per: time.Second, Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.so.Backoff = nil
		s.paced(4)
		s.ready(symbols(100)...)
		time.Sleep(time.Hour)
		require.Zero(t, s.venue.Stats().Policed)
		require.InDelta(t, 1600, s.venue.Stats().Requests, 400)
		before := s.venue.Stats().Requests
		time.Sleep(3 * time.Hour)
		require.InDelta(t, 100*6, s.venue.Stats().Requests-before, 200, "each key twice an hour")
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
		require.InDelta(t, 80, calls.Load(), 40)
		require.Zero(t, s.venue.Stats().Requests)
	})
}

// OnReject that ends its goroutine costs the session, and the key is asked for again after a minute.
func TestAnOnRejectThatDoesNotReturnAsksAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision {
			runtime.Goexit()
			return subscription.DecisionDrop
		}
		s.venue.Next(venueFault{Err: "not now"})
		s.open("a")
		time.Sleep(time.Minute - 1)
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(time.Nanosecond)
		s.synced("a")
		require.Equal(t, uint64(2), s.conn.Status().Session)
	})
}

// Every function of the user may use the Set.
func TestTheFunctionsOfTheUserMayUseTheSet(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
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
