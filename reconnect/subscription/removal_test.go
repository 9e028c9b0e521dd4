package subscription_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// The venue may hold the key although it has not answered.
func TestRemovalDoesNotWaitForNextTryOfKey(t *testing.T) {
	lost := func(r venueRequest) venueFault { return venueFault{Lost: r.Op == "subscribe"} }
	inBubble(t, &venueOptions{Fault: lost}, func(t *testing.T, s *scene) {
		s.so.Backoff = &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone}
		s.ready("a")
		time.Sleep(time.Minute)
		s.holds("a")
		require.Equal(t, subscription.StateRejected, s.set.State("a"))
		s.set.Remove("a")
		s.synced()
	})
}

// A key that is not wanted any more is none of those that Replace removes.
func TestReplaceDoesNotHurryRemoval(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Backoff = &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone}
		s.ready("a")
		s.venue.Next(venueFault{Err: "no"})
		s.set.Remove("a")
		synctest.Wait()
		s.set.Replace("b")
		time.Sleep(time.Minute)
		s.holds("a", "b")
		time.Sleep(time.Hour)
		s.synced("b")
	})
}

// A rotation has a session that only removes keys. The venue refuses the removal once, by one of the two sessions.
func TestRefusedRemovalIsRetriedByBothSessions(t *testing.T) {
	// The other session is answered before the next try, or after it.
	for _, slow := range []time.Duration{0, time.Second / 2} {
		for _, id := range []string{"3", "4"} {
			once := func(r venueRequest) venueFault {
				switch {
				case r.ID == id:
					return venueFault{Err: "no"}
				case r.Op == "unsubscribe":
					return venueFault{Slow: slow}
				}
				return venueFault{}
			}
			inBubble(t, &venueOptions{Fault: once}, func(t *testing.T, s *scene) {
				s.co.Rotate.Drain = time.Hour
				s.ready("a")
				s.conn.Rotate(1, reconnect.Advice{})
				synctest.Wait()
				s.set.Remove("a")
				time.Sleep(3 * time.Second)
				require.Equal(t, [][]string{{}, {}}, s.venue.Held())
				require.Equal(t, subscription.StateNone, s.set.State("a"))
				require.NoError(t, s.syncing()())
			})
		}
	}
}

// A request that was not answered, and whose key was removed meanwhile, is no try of the removal.
func TestUnansweredRemovalIsRejectedAfterTwoRequests(t *testing.T) {
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.ready("a")
		s.set.Remove("a")
		time.Sleep((10+20+40)*time.Second - 1)
		require.Empty(t, s.noted())
		time.Sleep(time.Nanosecond)
		require.Equal(t, []string{"rejected 1 a unsubscribe: no answer"}, s.noted())
	})
}

// Requests wait while another one waits for its answer.
func TestRemovalComesAfterEssentialKeysAndBeforeOthers(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.InFlight = 1
		s.so.Essential = func(k string) bool { return k == "essential" }
		s.noteRequests()
		s.ready("a", "b", "essential")
		s.noted()
		s.venue.Next(venueFault{Late: 5 * time.Second})
		s.set.Add("c")
		s.venue.End("a", "over")
		s.venue.End("essential", "closed") // for another reason, else the two rest together
		synctest.Wait()
		s.set.Remove("b")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"subscribe c", "subscribe essential", "unsubscribe b", "subscribe a"}, s.noted())
	})
}

// A venue may give one name twice, and none when it is asked again.
func TestTagOfKeyIsTheLastOneGiven(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			if r.Op == subscription.OpUnsubscribe {
				s.note("%s %q", r.Keys, r.Tags)
			}
			return encode(r)
		}
		tags := map[string]string{"a": "x", "b": "x", "c": "y"}
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			if ok {
				a.Tag = tags[a.Keys[0]]
			}
			return a, ok
		}
		s.ready("a", "b", "c", "d")
		_, ok := s.set.ByTag(1, "")
		require.False(t, ok, "d has none")
		s.set.Remove("a")
		s.synced("b", "c", "d")
		k, _ := s.set.ByTag(1, "x")
		require.Equal(t, "b", k)
		delete(tags, "b")
		s.venue.End("b", "over")
		time.Sleep(2 * time.Second)
		s.set.Remove("b")
		s.synced("c", "d")
		require.Equal(t, []string{`[a] ["x"]`, `[b] [""]`}, s.noted())
	})
}
