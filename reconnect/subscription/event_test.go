package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
	"github.com/redial-go/redial/reconnect/subscription/internal/venue"
)

// writeSnapshots makes Events ask for a snapshot by the Conn, which waits for a session.
func (s *scene) writeSnapshots() {
	var c *reconnect.Conn // before New has returned it
	start := func(its *reconnect.Conn) error { c = its; return nil }
	s.co.Layers = append(s.co.Layers, &reconnect.Layer{Start: start})
	s.co.WhenDown = reconnect.WhenDownWait
	s.so.Events = func(e subscription.Event[string]) {
		if e.Kind == subscription.EventHeld {
			s.note("%d %v", e.Session, c.Write(context.Background(), conn.TextMessage("snapshot")))
		}
	}
}

func TestEventsMayWaitForTheSessionThatIsBeingOpened(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Essential = func(string) bool { return true }
		s.writeSnapshots()
		s.open("a")
		require.Equal(t, []string{"1 <nil>"}, s.noted())
		require.Equal(t, reconnect.StateReady, s.conn.State())
		s.synced("a")
	})
}

// Events of the first session waits for the pace when that session is lost.
func TestEventsMayWaitForTheNextSession(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.writeSnapshots()
		s.ready("a")
		time.Sleep(300 * time.Millisecond)
		for _, p := range s.net.Conns(addr) {
			p.Reset()
		}
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, s.conn.State())
		require.Equal(t, []string{"1 <nil>", "2 <nil>"}, s.noted())
		s.synced("a")
	})
}

// The Conn ends although Events waits for a session, because the wait ends then.
func TestEventsThatWaitsForASessionDoesNotHoldUpTheEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.writeSnapshots()
		s.ready("a")
		s.server.Close()
		synctest.Wait()
		require.Empty(t, s.noted())
		s.conn.Close()
		<-s.conn.Done()
		require.Len(t, s.noted(), 1)
	})
}

// openLate is open, where the sessions fail for so long after the keys were asked for.
func (s *scene) openLate(d time.Duration, keys ...string) {
	s.t.Helper()
	ends := time.Now().Add(d)
	s.so.Essential = func(string) bool { return true }
	s.openWith(func(*subscription.Set[string]) reconnect.Dialer {
		s.co.Layers = append(s.co.Layers, &reconnect.Layer{Open: func(context.Context, *reconnect.Opening) error {
			if time.Now().Before(ends) {
				time.Sleep(time.Millisecond) // Events has its first event
				return errors.New("not now")
			}
			return nil
		}})
		return s.dialer
	}, keys...)
}

// A waiting Events gets no event of a session that has ended.
func TestEventsGetsNothingOfSessionsThatWereLostMeanwhile(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.writeSnapshots()
		s.so.Batch = 1
		s.openLate(10*time.Second, "a", "b", "c")
		time.Sleep(time.Minute)
		last := fmt.Sprintf("%d <nil>", s.conn.Status().Session)
		require.Greater(t, s.venue.Stats().Connections, 50)
		require.Equal(t, []string{"1 <nil>", last, last, last}, s.noted())
		s.synced("a", "b", "c")
	})
}

// The last refusal of a key is told though its session was lost, and those before it are not.
func TestARefusalIsToldAfterItsSession(t *testing.T) {
	inBubble(t, &venue.Options{Bad: func(k string) bool { return k != "a" }}, func(t *testing.T, s *scene) {
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			if r.Key == "worse" {
				return subscription.DecisionDrop
			}
			return subscription.DecisionRetry
		}
		s.writeSnapshots()
		write := s.so.Events
		s.so.Events = func(e subscription.Event[string]) {
			s.note("%v %s", e.Kind, e.Keys)
			write(e)
		}
		s.so.Batch, s.so.InFlight = 1, 1
		s.openLate(time.Hour, "a", "bad", "worse")
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"held [a]"}, s.noted())
		s.conn.Close()
		<-s.conn.Done()
		lines := s.noted()
		require.Len(t, lines, 3)
		require.Contains(t, lines[0], "dropped", "the write waits until the Conn is closed")
		require.Equal(t, []string{"rejected [worse]", "rejected [bad]"}, lines[1:])
	})
}

func TestASlowEventsHoldsUpTheRequests(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch, s.so.InFlight = 1, 1
		s.so.Events = func(subscription.Event[string]) { time.Sleep(time.Minute) }
		s.ready(symbols(10)...)
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 2, s.venue.Stats().Requests)
		time.Sleep(time.Hour)
		s.synced(symbols(10)...)
	})
}
