package subscription_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// decideSlowly lets OnReject note what it gets and return a decision a minute later.
func (s *scene) decideSlowly(d subscription.Decision) {
	s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
		s.note("%d %v %s %d", r.Session, r.Op, r.Key, r.Tries)
		time.Sleep(time.Minute)
		return d
	}
}

// The next rejection of the key is the first in a row.
func TestDecisionOnRemovalIsVoidOnceKeyIsAdded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.decideSlowly(subscription.DecisionRetry)
		s.ready("a")
		s.venue.Next(venueFault{Err: "no"})
		s.set.Remove("a")
		synctest.Wait()
		s.set.Add("a")
		time.Sleep(2 * time.Minute)
		s.synced("a")
		s.venue.End("a", "over")
		require.Equal(t, []string{"1 unsubscribe a 1", "1 subscribe a 1"}, s.noted())
	})
}

// A key that is removed and added while OnReject decides is asked for after the decision.
func TestKeyIsNotAskedForDuringDecision(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.decideSlowly(subscription.DecisionRetry)
		s.venue.Next(venueFault{Err: "no"})
		s.ready("a")
		s.set.Remove("a")
		s.set.Add("a")
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(2 * time.Second)
		s.synced("a")
	})
}

// OnReject decides on the removal of a key that was given up when the key is added again.
func TestKeyAddedDuringDecisionIsNotGivenUp(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.decideSlowly(subscription.DecisionDrop)
		s.venue.Next(venueFault{Ignored: true}, venueFault{Ignored: true}, venueFault{Err: "no"})
		s.ready("a")
		time.Sleep(30*time.Second + time.Minute + time.Second)
		require.Equal(t, []string{"1 subscribe a 1", "1 unsubscribe a 1"}, s.noted())
		s.set.Add("a")
		time.Sleep(2 * time.Minute)
		s.synced("a")
	})
}

// Only the session that has rejected the key knows of the rejection, and its worker ends.
func TestNextSessionRetriesKeyThatLastOneDecidedOn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Rotate.Drain = time.Hour
		s.decideSlowly(subscription.DecisionRetry)
		s.ready("a")
		s.venue.Next(venueFault{Err: "no"})
		s.set.Add("b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(2 * time.Minute)
		require.Equal(t, [][]string{{"a"}, {"a", "b"}}, s.venue.Held())
		require.Equal(t, []string{"1 subscribe b 1"}, s.noted())
	})
}

// DecisionRedial does not end a session that was replaced. The decisions on its other keys follow.
func TestReplacedSessionDecidesOnOtherKeysAfterRedial(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Rotate.Drain = time.Hour
		s.so.Batch = 1
		s.decideSlowly(subscription.DecisionRedial)
		s.ready("a")
		s.venue.Next(venueFault{Err: "no", Slow: time.Second}, venueFault{Err: "no", Slow: time.Second + 1})
		s.set.Add("b", "c")
		time.Sleep(2 * time.Second) // both are rejected by the session, the second while OnReject decides on the first
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(5 * time.Minute)
		require.Equal(t, [][]string{{"a"}, {"a", "b", "c"}}, s.venue.Held())
		require.Equal(t, []string{"1 subscribe b 1", "1 subscribe c 1"}, s.noted())
	})
}

// OnReject decides on another key when the session ends, and the next session is rejected, too.
func TestEndedSessionDecidesOnNoOtherKey(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.decideSlowly(subscription.DecisionDrop)
		s.ready("a", "b")
		time.Sleep(time.Second)
		s.lose()
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"1 subscribe a 1", "2 subscribe b 1"}, s.noted())
	})
}

// The replaced session ends while a rejection waits for OnReject, and the next session holds the key.
func TestEndedSessionForgetsRejectionOfHeldKey(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.decideSlowly(subscription.DecisionDrop)
		s.ready()
		s.venue.Next(
			venueFault{Err: "no", Slow: time.Second}, venueFault{Err: "no", Slow: time.Second + 1},
			venueFault{Slow: time.Second + 2}, venueFault{Slow: time.Second + 2}, // by the next session
		)
		s.set.Add("a", "b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(5 * time.Minute)
		s.synced("a", "b")
		require.Equal(t, []string{"1 subscribe a 1"}, s.noted())
	})
}

// Both sessions of a rotation are refused the removal, one after the other.
func TestRemovalGivenUpByOneSessionIsFirstTryOfOther(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Rotate.Drain = time.Hour
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			s.note("try %d", r.Tries)
			return subscription.DecisionDrop
		}
		s.ready("a")
		s.conn.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.venue.Next(venueFault{Err: "no"}, venueFault{Err: "no", Slow: time.Second})
		s.set.Remove("a")
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"try 1", "try 1"}, s.noted())
		require.Empty(t, s.set.Snapshot())
	})
}

// Time passes while OnReject decides on another key. The policy is not asked about a key that is dropped.
func TestBackoffOfKeyCountsTimeOfOtherDecisions(t *testing.T) {
	why := map[string]string{"a": "no", "b": "never", "dropped": "no"} // else a and b rest together
	refuse := func(r venueRequest) venueFault { return venueFault{Err: why[r.Keys[0]]} }
	inBubble(t, &venueOptions{Fault: refuse}, func(t *testing.T, s *scene) {
		var got histories
		s.so.Backoff = &got
		s.so.Batch = 1
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			if r.Key == "dropped" {
				return subscription.DecisionDrop
			}
			time.Sleep(time.Second)
			return subscription.DecisionRetry
		}
		s.ready("a", "b", "dropped")
		time.Sleep(11 * time.Second) // a is decided on at 1 s and 9 s, b at 2 s and 10 s
		synctest.Wait()
		retry := backoff.Verdict{Class: backoff.ClassRetry}
		require.Equal(t, histories{
			{Verdict: retry},
			{Verdict: retry},
			{N: 1, Prev: 7 * time.Second, Elapsed: 8 * time.Second, Verdict: retry},
			{N: 1, Prev: 7 * time.Second, Elapsed: 8 * time.Second, Verdict: retry},
		}, got)
	})
}

// The waits that a venue asks for by two refused batches run at the same time.
func TestShorterWaitOfRefusedBatchKeepsLongerOne(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			if a.Err != nil {
				wait, err := time.ParseDuration(a.Err.Error())
				require.NoError(t, err)
				a.Err = backoff.RetryAfter(a.Err, wait)
			}
			return a, ok
		}
		s.so.Batch = 2
		s.venue.Next(venueFault{Err: "20s", Slow: time.Second}, venueFault{Err: "10s", Slow: 2 * time.Second})
		s.ready("a", "b", "c", "d")
		time.Sleep(21*time.Second - 1)
		require.Equal(t, 2, s.venue.Stats().Requests)
		time.Sleep(time.Nanosecond)
		s.synced("a", "b", "c", "d")
	})
}

func TestKeysRefusedByNameAreProbedTogether(t *testing.T) {
	inBubble(t, &venueOptions{KeyByKey: true, Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.ready("a", "b")
		require.Equal(t, []string{"subscribe a,b"}, s.noted())
		time.Sleep(time.Second)
		require.Equal(t, []string{"subscribe a,b"}, s.noted())
	})
}

// OnReject decides on another key when the replaced session ends, and the next session has nothing else to do.
func TestNextSessionAsksForKeyWhenLastOneEnds(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.decideSlowly(subscription.DecisionDrop)
		s.ready()
		s.venue.Next(venueFault{Err: "no", Slow: time.Second}, venueFault{Err: "no", Slow: time.Second + 1})
		s.set.Add("a", "b")
		time.Sleep(2 * time.Second) // both are rejected by the session, the second while OnReject decides on the first
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(10 * time.Second)
		s.holds("b")
	})
}

// The wait for an answer ends long before that of another key.
func TestUnansweredKeyIsAskedForAgainBesideLongWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.Backoff = &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone}
		s.venue.Next(venueFault{Err: "no"}, venueFault{Lost: true})
		s.ready("a", "b")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, subscription.StateHeld, s.set.State("b"))
	})
}
