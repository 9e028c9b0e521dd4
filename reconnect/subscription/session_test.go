package subscription_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/subscription"
)

// 5,000 symbols are 100 requests. With 4 messages in any second the first four go at once, and
// four each second after that, so the last at second 24. A login takes one place of the first
// window, so that with it the last request goes at second 25.
func TestFiveThousandSymbolsAreBackIn25Seconds(t *testing.T) {
	for login, want := range map[bool]time.Duration{false: 24 * time.Second, true: 25 * time.Second} {
		inBubble(t, &venueOptions{Most: 4, Per: time.Second}, func(t *testing.T, s *scene) {
			s.paced(4)
			if login {
				s.co.OnSession = loginFirst
			}
			s.open(symbols(5000)...)
			require.NoError(t, s.set.Synced(t.Context()))
			require.Equal(t, want, s.now())
			s.lose()
			require.NoError(t, s.set.Synced(t.Context()))
			require.Equal(t, 2*want+100*time.Millisecond, s.now(), "with the wait before the dial")
			s.synced(symbols(5000)...)
			require.Zero(t, s.venue.Stats().Policed)
			require.Zero(t, s.venue.Stats().Redundant)
		})
	}
}

// One by one the same takes 21 minutes: 1,250 windows, the last of which begins at 1,249 s.
func TestOneByOneTheyAreBackIn21Minutes(t *testing.T) {
	inBubble(t, &venueOptions{Most: 4, Per: time.Second}, func(t *testing.T, s *scene) {
		s.paced(4)
		s.so.Batch = 1
		s.open(symbols(5000)...)
		require.NoError(t, s.set.Synced(t.Context()))
		require.Equal(t, 1249*time.Second, s.now())
		require.Zero(t, s.venue.Stats().Policed)
	})
}

// Without the pace the policeman of the same venue closes the connection.
func TestThePolicemanClosesAClientWithoutPace(t *testing.T) {
	inBubble(t, &venueOptions{Most: 4, Per: time.Second}, func(t *testing.T, s *scene) {
		s.open(symbols(500)...)
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, 1, s.venue.Stats().Policed)
		require.NotEqual(t, reconnect.StateReady, s.conn.State()) // by the close frame, or by a write that came too late for it
	})
}

// The next session is synced before it takes the place of the old one, and the old one serves
// meanwhile.
func TestARotationSwitchesWhenTheNextSessionIsSynced(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(4)
		s.ready(symbols(500)...)
		time.Sleep(time.Minute)
		s.synced(symbols(500)...)
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(2*time.Second - 1) // ten requests: at 0, 1 and 2 s
		synctest.Wait()
		require.Equal(t, uint64(1), s.conn.Status().Session)
		require.NoError(t, s.set.Synced(t.Context()), "the session before is")
		s.set.Add("NEW")
		s.set.Remove("SYM00000")
		synctest.Wait()
		require.Equal(t, subscription.StateHeld, s.set.State("NEW"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, uint64(2), s.conn.Status().Session)
		require.NoError(t, s.set.Synced(t.Context()))
		time.Sleep(10 * time.Second)
		s.synced(append(symbols(500)[1:], "NEW")...)
	})
}

// While both sessions live a removal goes to both, and an addition to the next one.
func TestInAnOverlapARemovalGoesToBoth(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a", "b")
		s.conn.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		require.Equal(t, uint64(2), s.conn.Status().Session)
		require.Equal(t, [][]string{{"a", "b"}, {"a", "b"}}, s.venue.Held())
		s.venue.Next(venueFault{Late: time.Second})
		s.set.Remove("a")
		s.set.Add("c")
		synctest.Wait()
		require.Equal(t, [][]string{{"b"}, {"b", "c"}}, s.venue.Held())
		require.Equal(t, subscription.StateLeaving, s.set.State("a"), "one of the two has not answered")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, subscription.StateNone, s.set.State("a"))
		require.NoError(t, s.set.Synced(t.Context()))
	})
}

// If the time for the opening is too short for all keys the session is ready without the rest.
func TestARotationThatIsShortOfTimeSwitchesWithoutTheRest(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.so.Batch = 10
		s.co.OpenTimeout = 30 * time.Second
		s.ready(symbols(300)...)
		time.Sleep(time.Minute)
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(2), s.conn.Status().Session)
		require.Equal(t, 210, s.set.Stats().Held) // 21 requests of 10 keys, at 0 s to 20 s
		time.Sleep(10 * time.Second)
		s.synced(symbols(300)...)
	})
}

// A key that is refused each time costs no loop of dials, whatever the decision.
func TestARefusedEssentialKeyMakesNoLoopOfDials(t *testing.T) {
	for _, v := range []subscription.Decision{subscription.DecisionRetry, subscription.DecisionDrop, subscription.DecisionRedial} {
		t.Run(v.String(), func(t *testing.T) {
			inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
				s.so.Essential = func(string) bool { return true }
				s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return v }
				s.open("a", "bad", "c")
				time.Sleep(59500 * time.Millisecond)
				s.holds("a", "c")
				require.Equal(t, reconnect.StateReady, s.conn.State())
				want := uint64(1)
				if v == subscription.DecisionRedial {
					want = 61 // one for each wait of a second
				}
				require.Equal(t, want, s.conn.Status().Session)
			})
		})
	}
}

func TestRedialSaysWhy(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionRedial }
		var ends []error
		s.co.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends = append(ends, e.Cause) }}
		s.open("a", "bad")
		synctest.Wait()
		require.Len(t, ends, 1)
		err, _ := errors.AsType[*subscription.RejectedError](ends[0])
		require.EqualError(t, err, "subscription: rejected in session 1: unknown key")
	})
}

// In Open nobody but us reads. An answer that does not come while other messages do is asked for
// again.
func TestAnEssentialKeyWhoseAnswerIsLostIsAskedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Essential = func(string) bool { return true }
		s.venue.Next(venueFault{Lost: true})
		s.open("a")
		for range 11 {
			time.Sleep(time.Second)
			s.venue.Publish("a", "tick")
		}
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, s.conn.State())
		require.Equal(t, uint64(1), s.conn.Status().Session)
		s.synced("a")
		require.Len(t, s.noted(), 11)
	})
}

// If nothing comes at all, that costs the attempt.
func TestAVenueThatIsSilentInOpenCostsTheAttempt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Essential = func(string) bool { return true }
		s.venue.Next(venueFault{Lost: true})
		s.open("a")
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, 30*time.Second+100*time.Millisecond, s.now())
		s.synced("a")
	})
}

// A write in Open that waits for the pace does not make the answers late that nobody reads
// meanwhile.
func TestAWaitForThePaceInOpenDoesNotMakeAnswersLate(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Pace = budget.Window{N: 2, Per: 15 * time.Second}
		s.co.OpenTimeout = -1
		s.so.Essential = func(string) bool { return true }
		s.so.Batch = 1
		s.open(symbols(6)...)
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, 30*time.Second, s.now())
		require.Zero(t, s.set.Stats().Unanswered)
		require.Equal(t, 6, s.venue.Stats().Requests)
		s.synced(symbols(6)...)
	})
}

// A refusal by the old session does not matter when the next session holds the key.
func TestARefusalByASessionThatWasReplacedDoesNotCount(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			s.note("rejected %s", r.Key)
			return subscription.DecisionDrop
		}
		s.ready("a")
		s.venue.Next(venueFault{Err: "no", Late: 2 * time.Second})
		s.set.Add("b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		require.Equal(t, [][]string{{"a"}, {"a", "b"}}, s.venue.Held())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, subscription.StateHeld, s.set.State("b"))
		time.Sleep(10 * time.Second)
		s.synced("a", "b")
		require.Empty(t, s.noted())
	})
}

// Nor does OnReject get it if the next session has the key before its turn comes.
func TestARefusalThatWaitsForItsVerdictDoesNotCountWhenTheNextSessionHasTheKey(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Rotate.Drain = time.Hour
		s.so.Batch = 1
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			s.note("rejected %s", r.Key)
			time.Sleep(5 * time.Second)
			return subscription.DecisionDrop
		}
		s.ready()
		s.venue.Next(
			venueFault{Err: "no", Slow: time.Second}, venueFault{Err: "no", Slow: time.Second + 1}, // by the old session
			venueFault{Slow: 2 * time.Second}, venueFault{Slow: 2 * time.Second},
		)
		s.set.Add("a", "b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{}) // and the next session asks for both
		time.Sleep(time.Minute)
		require.Equal(t, [][]string{{}, {"a", "b"}}, s.venue.Held())
		require.Equal(t, []string{"rejected a"}, s.noted())
		for _, item := range s.set.Snapshot() {
			require.Equal(t, subscription.StateHeld, item.State, item.Key)
		}
	})
}

// Without a Timeout, too, an answer that does not come costs a rotation nothing but time.
func TestARotationWithoutATimeoutIsBehindInTime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Timeout, s.so.Batch = -1, 1
		s.co.OpenTimeout = 9 * time.Second
		s.co.OnMessage = func(context.Context, reconnect.Message) {}
		s.ready("a", "b")
		s.venue.Next(venueFault{}, venueFault{Lost: true})
		s.conn.Rotate(1, reconnect.Advice{})
		start := time.Now()
		for range 80 {
			s.venue.Publish("a", "x") // without a message nobody looks at the time
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 1, s.set.Stats().Held)
		require.Equal(t, 8*time.Second, time.Since(start))
		require.Equal(t, uint64(2), s.conn.Status().Session)
	})
}

// A session begins to count the answers that are missing anew, also for a key that was rejected before.
func TestAnswersThatAreMissingInTwoSessionsAreNotMissingTwice(t *testing.T) {
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.ready("a")
		time.Sleep(35 * time.Second) // requested at 0, 10 and 31 s
		require.Equal(t, []string{"rejected 1 a subscribe: no answer"}, s.noted())
		s.lose() // requested at 35 and 75 s: the next session need not find out that the venue is slow
		time.Sleep(119 * time.Second)
		require.Empty(t, s.noted())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"rejected 2 a subscribe: no answer"}, s.noted())
	})
}

// The session ends while OnReject has another key, so that it decides nothing about this one.
func TestTheNextSessionAsksForAKeyThatWaitedForItsVerdict(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			s.note("rejected %s", r.Key)
			time.Sleep(time.Minute)
			return subscription.DecisionDrop
		}
		s.venue.Next(venueFault{Err: "no", Slow: time.Second}, venueFault{Err: "no", Slow: time.Second + 1})
		s.ready("a", "b")
		time.Sleep(2 * time.Second)
		s.lose()
		s.holds("b")
		require.Equal(t, []string{"rejected a"}, s.noted())
	})
}

// A third of 60 s is more than the Timeout of 10 s.
func TestNoMoreThanTimeoutOfARotationStaysUnused(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.so.Batch = 10
		s.co.OpenTimeout = time.Minute
		s.ready(symbols(900)...)
		time.Sleep(2 * time.Minute)
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(45 * time.Second)
		require.Equal(t, uint64(1), s.conn.Status().Session)
		time.Sleep(6 * time.Second)
		require.Equal(t, uint64(2), s.conn.Status().Session)
	})
}

// SessionReady of the old session returns when the next session is ready already.
func TestASlowSessionReadyDoesNotRetireTheNextSession(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.Run.Trace = &reconnect.Trace{SessionReady: func(s *reconnect.Session) {
			if s.Number == 1 {
				time.Sleep(10 * time.Second)
			}
		}}
		s.open("a")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(20 * time.Second)
		require.Equal(t, uint64(2), s.conn.Status().Session)
		s.set.Add("b")
		s.synced("a", "b")
	})
}

// A request of the old session waits for its turn when the next session is ready.
func TestReplacedSessionSendsNoRequestThatWaited(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.co.Rotate.Drain = time.Hour
		s.ready("a") // takes the window
		s.set.Add("b")
		synctest.Wait()
		s.conn.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Minute)
		require.Equal(t, [][]string{{"a"}, {"a", "b"}}, s.venue.Held())
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

// The Conn loses no session then, so that only End ends the worker, which waits for an answer.
func TestWorkerEndsWhenCallbackEndsConn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.OnMessage = func(context.Context, reconnect.Message) { runtime.Goexit() }
		s.venue.Next(venueFault{}, venueFault{Lost: true})
		s.ready("a")
		s.set.Add("b")
		synctest.Wait()
		s.venue.Publish("a", "tick")
		<-s.conn.Done()
		require.Zero(t, s.now())
	})
}

// What Essential returns counts when the key is new, as long as it is wanted.
func TestKeyStaysAsEssentialAsItWas(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		essential := false
		s.so.Essential = func(string) bool { return essential }
		s.ready("a", "b")
		essential = true
		s.set.Add("a")
		s.lose()
		require.Equal(t, []string{"subscribe a,b", "subscribe a,b"}, s.noted())
	})
}

// OnSession fails, so that the Set does not hear of the session before it is lost.
func TestSessionThatWasNotOpenedIsLost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 1 {
				return errBad
			}
			return nil
		}
		s.ready("a")
		require.Equal(t, uint64(2), s.conn.Status().Session)
		s.synced("a")
	})
}

// Encode removes the key, before the session is ready.
func TestRequestThatEncodeMakesNeedlessIsNotSent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Essential = func(string) bool { return true }
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			s.set.Remove(r.Keys...)
			return encode(r)
		}
		s.ready("a")
		s.synced()
		require.Zero(t, s.conn.Stats().Written)
	})
}
