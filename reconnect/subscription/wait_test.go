package subscription_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// syncing begins a Synced, whose error the function returns when it has one in time.
func (s *scene) syncing() (result func() error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	got := make(chan error, 1)
	go func() { got <- s.set.Synced(ctx) }() // the result waits for it
	synctest.Wait()
	return func() error {
		defer cancel()
		return <-got
	}
}

// The last thing that was to be done is not done, because its request was taken back.
func TestSyncedReturnsWhenARequestIsTakenBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.ready("a") // takes the window
		s.set.Add("b")
		synctest.Wait()
		result := s.syncing()
		s.set.Remove("b")
		require.NoError(t, result())
		require.Equal(t, 1, s.venue.Stats().Requests)
		s.synced("a")
	})
}

// A request of a session that was replaced is not answered, and need not be any more.
func TestSyncedReturnsWhenARequestIsGivenUp(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Rotate = reconnect.Rotation{Drain: time.Hour}
		s.ready("a")
		s.venue.Next(venueFault{Ignored: true})
		s.set.Add("b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Second)
		require.Equal(t, uint64(2), s.conn.Status().Session)
		require.NoError(t, s.syncing()())
		require.Equal(t, 10*time.Second, s.now())
	})
}

// The last rejection is no news while OnReject decides about the next.
func TestWaitReturnsWhenOnRejectHasDecided(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.so.Backoff = &backoff.Exponential{Base: 10 * time.Second, Cap: 10 * time.Second, Jitter: backoff.JitterNone}
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			if r.Tries > 1 {
				time.Sleep(5 * time.Second)
			}
			return subscription.DecisionRetry
		}
		s.ready("bad")
		time.Sleep(12 * time.Second) // it was asked for again after 10 s
		require.EqualError(t, s.set.Wait(t.Context(), "bad"), "subscription: rejected in session 1: unknown key")
		require.Equal(t, 15*time.Second, s.now())
	})
}

// If OnReject took longer than the wait, the key was asked for again before Wait could see that the key was refused.
func TestTheWaitForTheNextTryBeginsWhenOnRejectHasDecided(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.so.Backoff = &backoff.Exponential{Base: time.Second, Jitter: backoff.JitterNone}
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision {
			time.Sleep(5 * time.Second)
			return subscription.DecisionRetry
		}
		s.ready("bad")
		var want *subscription.RejectedError
		require.ErrorAs(t, s.set.Wait(t.Context(), "bad"), &want)
		require.Equal(t, 5*time.Second, s.now())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

func TestSyncedReturnsWhenSessionIsReadyWithoutKeys(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.net.Fault(addr, conntest.Fault{AcceptDelay: time.Second})
		s.open()
		require.NoError(t, s.syncing()())
		require.Equal(t, time.Second, s.now())
	})
}

// The next session of a rotation has no keys yet.
func TestSyncedAsksOnlySessionsThatAreReady(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a")
		s.venue.Next(venueFault{Slow: 5 * time.Second})
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Second)
		require.NoError(t, s.syncing()())
		require.Equal(t, time.Second, s.now())
		require.Equal(t, [][]string{{"a"}, {}}, s.venue.Held())
	})
}

// Of ten keys nine were given up in the first session, and one is rejected in the second.
func TestSyncedReturnsTheLastRejection(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k != "good" }}, func(t *testing.T, s *scene) {
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			if r.Session == 2 {
				return subscription.DecisionRetry
			}
			return subscription.DecisionDrop
		}
		s.ready(append(symbols(9), "good")...)
		s.lose()
		s.set.Add("late")
		synctest.Wait()
		for range 20 { // because the order of a map is random
			require.EqualError(t, s.syncing()(), "subscription: 10 keys rejected, one in session 2: unknown key")
		}
	})
}

func TestSyncedReturnsWhenConnEndsWithoutKeys(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.net.Fault(addr, conntest.Fault{AcceptDelay: time.Hour})
		s.open()
		result := s.syncing()
		s.conn.Close()
		require.ErrorIs(t, result(), net.ErrClosed)
		require.Zero(t, s.now())
	})
}

func TestKeyIsAskedForOnceItsRequestIsEncoded(t *testing.T) {
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			s.note("%v", s.set.State(r.Keys[0]))
			return encode(r)
		}
		s.ready("a")
		require.Equal(t, []string{"waiting"}, s.noted())
		require.Equal(t, subscription.StateAsked, s.set.State("a"))
	})
}

func TestSyncedSaysHowManyKeysAreMissing(t *testing.T) {
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.ready("a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.EqualError(t, s.set.Synced(ctx), "subscription: 2 keys are not settled: context deadline exceeded")
	})
}
