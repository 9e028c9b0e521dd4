package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

// noteMarks lets the scene note only the seams and the marks, with their times.
func (s *scene) noteMarks() {
	s.co.MarkRefetch = true
	s.co.OnMessage = func(context.Context, reconnect.Message) {}
	s.co.OnSeam = func(_ context.Context, m *reconnect.Seam) {
		kind := map[bool]string{true: "mark", false: "seam"}[m.Refetch]
		s.note("%v %s %d", s.now(), kind, m.Session)
	}
}

// At 4 messages in a second the 5,000 symbols are back after 24 s.
func TestTheMarkComesWhenTheSessionHasWhatWasWanted(t *testing.T) {
	inBubble(t, &venueOptions{Most: 4, Per: time.Second}, func(t *testing.T, s *scene) {
		s.paced(4)
		s.noteMarks()
		s.open(symbols(5000)...)
		require.NoError(t, s.set.Synced(t.Context()))
		synctest.Wait()
		s.lose()
		require.NoError(t, s.set.Synced(t.Context()))
		require.Equal(t, []string{"24s mark 1", "24s seam 1", "48.1s mark 2"}, s.noted())
	})
}

// A session that is lost before it has everything has no mark.
func TestASessionThatHasNotWhatWasWantedHasNoMark(t *testing.T) {
	inBubble(t, &venueOptions{Most: 4, Per: time.Second}, func(t *testing.T, s *scene) {
		s.paced(4)
		s.noteMarks()
		s.ready(symbols(5000)...)
		time.Sleep(23 * time.Second)
		s.lose()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"23s seam 1", "47.1s mark 2"}, s.noted())
	})
}

func TestTheMarkComesAtOnceIfThereIsNothingToAskFor(t *testing.T) {
	for name, prepare := range map[string]func(s *scene) (keys []string){
		"no keys":    func(*scene) []string { return nil },
		"essential":  func(s *scene) []string { s.so.Essential = func(string) bool { return true }; return symbols(3) },
		"no answers": func(s *scene) []string { s.so.Answer, s.so.NoAnswers = nil, true; return symbols(3) },
		"removed": func(s *scene) []string {
			s.co.OnSession = func(context.Context, *reconnect.Opening) error { s.set.Remove("SYM00000"); return nil }
			return symbols(1)
		},
		"removed when it is ready": func(s *scene) []string {
			s.co.Run.Trace = &reconnect.Trace{SessionReady: func(*reconnect.Session) { s.set.Remove("SYM00000") }}
			return symbols(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.noteMarks()
				s.ready(prepare(s)...)
				require.Equal(t, []string{"0s mark 1"}, s.noted())
			})
		})
	}
}

// A key that the venue refuses, or does not answer twice, holds no mark back any more.
func TestAKeyThatIsRefusedHoldsNoMarkBack(t *testing.T) {
	bad := func(k string) bool { return k == "SYM00001" }
	inBubble(t, &venueOptions{Bad: bad}, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.ready(symbols(3)...)
		require.Equal(t, []string{"0s mark 1"}, s.noted())
	})
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			require.True(t, errors.Is(r.Err, subscription.ErrNoAnswer))
			return subscription.DecisionDrop
		}
		s.ready("a")
		time.Sleep(time.Hour)
		require.Equal(t, []string{"30s mark 1"}, s.noted())
	})
}

// Somebody adds a key each 100 ms, and each answer takes 300 ms, so that one is always on its way.
func TestWhatIsAddedLaterHoldsNoMarkBack(t *testing.T) {
	late := func(venueRequest) venueFault {
		return venueFault{Slow: 300 * time.Millisecond}
	}
	inBubble(t, &venueOptions{Fault: late}, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.ready(symbols(3)...)
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			s.set.Add(fmt.Sprint("later", i))
		}
		require.Equal(t, []string{"300ms mark 1"}, s.noted())
	})
}

// The next session of a rotation has everything before it is ready. Its mark comes after the seam.
func TestTheMarkOfARotationComesAfterTheSeam(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.ready(symbols(3)...)
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"0s mark 1", "5s seam 1", "5s mark 2"}, s.noted())
	})
}

// The answer to the first session is missing, and another session has replaced it before the key is asked for again.
func TestASessionThatIsReplacedBeforeItHasEverythingHasNoMark(t *testing.T) {
	lost := func(r venueRequest) venueFault { return venueFault{Ignored: r.ID == "1"} }
	inBubble(t, &venueOptions{Fault: lost}, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.so.Timeout = 2 * time.Second
		s.ready("a")
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"5s seam 1", "5s mark 2"}, s.noted())
	})
}

// The only key is removed while OnReject decides on it, which lets the mark come. Another session is ready before.
func TestReplacedSessionHasMarkThatWasDue(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		s.noteMarks()
		s.co.Rotate.Drain = time.Minute
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision {
			time.Sleep(10 * time.Second)
			return subscription.DecisionRetry
		}
		s.ready("a")
		s.set.Remove("a")
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"10s mark 1", "1m0s seam 1", "1m0s mark 2"}, s.noted())
	})
}
