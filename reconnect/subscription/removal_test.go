package subscription_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

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
