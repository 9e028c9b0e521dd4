package subscription_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/subscription"
)

// A key that was not answered may be held by the venue, so a removal follows when it is given up.
// Whatever becomes of that removal, the key stays given up for the same reason, until it is added
// again.
func TestAKeyThatWasGivenUpWithoutAnAnswerStaysGivenUp(t *testing.T) {
	for what, test := range map[string]struct {
		removal  venueFault
		takes    time.Duration // until the removal is rejected
		requests int           // two to subscribe, and one or two to unsubscribe
		rejected []string
	}{
		"the removal is agreed to":    {venueFault{}, 0, 3, []string{"subscribe 1"}},
		"the removal is not answered": {venueFault{Ignored: true}, (40 + 80) * time.Second, 4, []string{"subscribe 1", "unsubscribe 1"}},
		"the removal is refused":      {venueFault{Err: "no"}, 0, 3, []string{"subscribe 1", "unsubscribe 1"}},
	} {
		t.Run(what, func(t *testing.T) {
			var known atomic.Bool
			fault := func(r venueRequest) venueFault {
				switch {
				case known.Load():
					return venueFault{}
				case r.Op == "subscribe":
					return venueFault{Ignored: true}
				}
				return test.removal
			}
			const why = "subscription: rejected in session 1: no answer"
			inBubble(t, &venueOptions{Fault: fault}, func(t *testing.T, s *scene) {
				s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
					s.note("%v %d", r.Op, r.Tries)
					time.Sleep(time.Minute)
					return subscription.DecisionDrop
				}
				s.ready("a")
				time.Sleep(30*time.Second + time.Minute + test.takes + time.Second) // a removal is judged now
				require.Equal(t, test.rejected, s.noted())
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				defer cancel()
				require.EqualError(t, s.set.Wait(ctx, "a"), why, "immediately")
				time.Sleep(time.Hour)
				require.Equal(t, subscription.StateDropped, s.set.State("a"))
				require.Equal(t, test.requests, s.venue.Stats().Requests)
				require.EqualError(t, s.set.Wait(t.Context(), "a"), why)
				require.EqualError(t, s.set.Synced(t.Context()), why)
				require.Equal(t, subscription.ErrNoAnswer, s.set.Snapshot()[0].Err)
				s.lose()
				require.Equal(t, subscription.StateDropped, s.set.State("a"))
				require.Equal(t, test.requests, s.venue.Stats().Requests)
				known.Store(true)
				s.set.Add("a")
				s.synced("a")
			})
		})
	}
}

// To want the same again is nothing new.
func TestReplaceDoesNotAskForAKeyThatWasGivenUp(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
		s.ready("a", "bad")
		s.set.Replace("a", "bad")
		time.Sleep(time.Minute)
		require.Equal(t, subscription.StateDropped, s.set.State("bad"))
		require.Equal(t, 2, s.venue.Stats().Requests)
		s.set.Replace("a")
		s.set.Replace("a", "bad")
		time.Sleep(time.Minute)
		require.Equal(t, 3, s.venue.Stats().Requests, "it was not wanted meanwhile")
		s.set.Add("bad")
		time.Sleep(time.Minute)
		require.Equal(t, 4, s.venue.Stats().Requests)
	})
}
