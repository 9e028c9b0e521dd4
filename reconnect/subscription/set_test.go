package subscription_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

func TestWhatIsWantedSurvivesALoss(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.ready("a", "b")
		s.synced("a", "b")
		s.set.Add("c")
		s.synced("a", "b", "c")
		s.lose()
		s.synced("a", "b", "c")
		require.Equal(t, []string{"subscribe a,b", "subscribe c", "subscribe a,b,c"}, s.noted())
		require.Equal(t, 0, s.venue.Stats().Redundant)
	})
}

// ballerina-spec#1461: a key that was removed while there was no session stays removed.
func TestWhatWasRemovedWhileDownDoesNotComeBack(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a", "b")
		s.server.Close()
		synctest.Wait()
		s.set.Remove("b")
		s.set.Add("c")
		require.Equal(t, subscription.StateWaiting, s.set.State("a"))
		require.Equal(t, subscription.StateNone, s.set.State("b"))
		s.server.Start()
		require.NoError(t, s.set.Synced(t.Context()))
		s.synced("a", "c")
		require.Equal(t, 2, s.venue.Stats().Requests, "one for each session, and none to unsubscribe")
	})
}

func TestAKeyIsWantedAsOftenAsItWasAdded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a", "a", "b")
		s.set.Remove("a", "b", "b", "never")
		s.synced("a")
		s.set.Remove("a")
		s.synced()
		s.set.Add("a")
		s.synced("a")
	})
}

func TestReplaceWantsExactlyThese(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a", "b", "b")
		s.set.Replace("b", "c", "c")
		s.synced("b", "c")
		s.set.Remove("b", "c") // b had two references, c one
		s.synced("b")
		require.Equal(t, []subscription.Item[string]{{Key: "b", State: subscription.StateHeld}}, s.set.Snapshot())
	})
}

// While a request waits for its turn a change of mind takes keys out of it.
func TestAnUnsentAddAndRemoveCancel(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.ready("a") // takes the window
		s.set.Add("b", "c", "d")
		synctest.Wait()
		s.set.Remove("c")
		synctest.Wait()
		s.set.Remove("d", "b")
		s.set.Add("b")
		time.Sleep(time.Second)
		s.synced("a", "b")
		require.Equal(t, 2, s.venue.Stats().Requests)
		require.Equal(t, 1, s.venue.Stats().Peak)
		// The same the other way round: what is to be released stays.
		s.set.Remove("a")
		synctest.Wait()
		s.set.Add("a")
		time.Sleep(5 * time.Second)
		s.synced("a", "b")
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

func TestARequestIsSentInTheEndThoughTheUserChangesHisMindAllTheTime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.paced(1)
		s.ready("a")
		for range 100 {
			s.set.Add("b")
			synctest.Wait()
			s.set.Remove("b")
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		s.synced("a")
		require.Equal(t, 3, s.venue.Stats().Requests, "b was asked for in the end, and released")
		require.Equal(t, 0, s.venue.Stats().Redundant)
	})
}

// Encode cancels each of its requests, nine of which are made.
func TestRequestIsSentInTheEndThoughEncodeCancelsIt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		encoded := 0
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			encoded++
			s.set.Remove(r.Keys...)
			s.set.Add(r.Keys...)
			return encode(r)
		}
		s.ready("a")
		s.synced("a")
		require.Equal(t, 9, encoded)
	})
}

// A few changes of mind between two requests cancel all that they ask for, however many there are in the end.
func TestUnsentRequestsAreCancelledAfterEachWrite(t *testing.T) {
	for _, answers := range []bool{true, false} {
		inBubble(t, &venueOptions{Mute: !answers}, func(t *testing.T, s *scene) {
			if !answers {
				s.so.Answer, s.so.NoAnswers = nil, true
			}
			s.paced(1)
			s.ready("a")
			for i := range 3 {
				for range 5 {
					s.set.Add("b")
					synctest.Wait()
					s.set.Remove("b")
					synctest.Wait()
				}
				s.set.Add(symbols(3)[i])
				time.Sleep(time.Second)
			}
			s.synced(append(symbols(3), "a")...)
			require.Equal(t, 4, s.venue.Stats().Requests)
		})
	}
}

// A removal while the answer to the subscription is on its way is sent after that answer.
func TestARemovalWaitsForTheAnswerToTheSubscription(t *testing.T) {
	inBubble(t, &venueOptions{Strict: true}, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Late: 3 * time.Second})
		s.ready("a")
		s.set.Remove("a")
		synctest.Wait()
		require.Equal(t, subscription.StateLeaving, s.set.State("a"))
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(3 * time.Second)
		s.synced()
		require.Equal(t, 2, s.venue.Stats().Requests)
		require.Equal(t, 0, s.venue.Stats().Redundant)
	})
}

func TestEssentialKeysComeBeforeReadyAndTheRestInOrder(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.noteRequests()
		s.so.Essential = func(k string) bool { return k == "login" }
		s.co.OnMessage = func(context.Context, reconnect.Message) {}
		s.so.InFlight = 1
		var first [][]string
		s.co.Run.Trace = &reconnect.Trace{SessionReady: func(*reconnect.Session) { first = s.venue.Held() }}
		s.ready("a", "A", "login", "bb", "ccc")
		require.Equal(t, subscription.StateHeld, s.set.State("login"))
		require.Equal(t, [][]string{{"login"}}, first)
		require.Equal(t, []string{"subscribe login", "subscribe a", "subscribe A", "subscribe bb", "subscribe ccc"}, s.noted())
	})
}

// A venue may send data before it answers. A message that Open reads beside answers goes to the reader.
func TestDataBeforeTheAnswerIsNotLost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Essential = func(string) bool { return true }
		s.venue.Next(venueFault{Late: time.Second})
		s.open("a")
		time.Sleep(time.Second / 2)
		s.venue.Publish("a", "early")
		synctest.Wait()
		require.NotEqual(t, reconnect.StateReady, s.conn.State())
		time.Sleep(time.Second)
		require.Equal(t, []string{`1 reads {"keys":["a"],"data":"early"}`}, s.noted())
		s.synced("a")
	})
}

func TestWaitSaysWhy(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.co.OnMessage = func(ctx context.Context, m reconnect.Message) {
			s.note("%v", s.set.Wait(ctx, "bad"))
		}
		s.net.Fault(addr, conntest.Fault{AcceptDelay: time.Second})
		s.open("a")
		short, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		require.EqualError(t, s.set.Wait(short, "a"), "subscription: no session is ready: context deadline exceeded")
		require.ErrorIs(t, s.set.Synced(short), context.DeadlineExceeded)
		require.NoError(t, s.set.Wait(t.Context(), "a"))
		require.ErrorIs(t, s.set.Wait(t.Context(), "b"), subscription.ErrNotWanted)
		s.set.Add("bad")
		err := s.set.Wait(t.Context(), "bad")
		require.EqualError(t, err, "subscription: rejected in session 1: unknown key")
		require.ErrorAs(t, s.set.Synced(t.Context()), new(*subscription.RejectedError))
		s.venue.Next(venueFault{Lost: true})
		time.Sleep(1500 * time.Millisecond) // asked again, and not answered
		require.Equal(t, subscription.StateAsked, s.set.State("bad"))
		s.venue.Publish("a", "1")
		require.Contains(t, s.noted()[0], "cannot wait in a callback")
		s.conn.Close()
		require.ErrorIs(t, s.set.Wait(t.Context(), "bad"), net.ErrClosed)
	})
}

func TestASetBelongsToOneConn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a")
		_, err := reconnect.New(s.dialer, &s.co)
		require.ErrorContains(t, err, "a Set belongs to one Conn")
		s.synced("a")
	})
}

func TestNothingOfTheSetIsLeftWhenTheConnIsDone(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Lost: true})
		s.ready("a") // a worker waits for the answer
		waited := make(chan error)
		go func() { waited <- s.set.Synced(context.Background()) }()
		synctest.Wait()
		s.conn.Close()
		<-s.conn.Done()
		require.ErrorIs(t, <-waited, s.conn.Err())
		require.Zero(t, s.now())
		s.set.Add("b") // has no effect, and no goroutine
		s.set.Remove("a")
		require.Equal(t, subscription.StateWaiting, s.set.State("b"))
	})
}

// A worker is started, and ends when there is nothing to do and nothing to wait for.
func TestIdleSetHasNoWorker(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		worker := func() bool {
			stacks := make([]byte, 1<<20)
			n := runtime.Stack(stacks, true)
			require.Less(t, n, len(stacks), "not all stacks")
			return bytes.Contains(stacks[:n], []byte("subscription.(*book[...]).work"))
		}
		s.venue.Next(venueFault{Err: "no"})
		s.ready("a")
		require.True(t, worker(), "waits for the next try")
		time.Sleep(time.Second)
		s.synced("a")
		require.False(t, worker())
	})
}

func TestOptionsThatAreWrong(t *testing.T) {
	good := subscription.Options[string]{Encode: encode, Answer: answer}
	for want, change := range map[string]func(o *subscription.Options[string]){
		"Options.Encode is missing":           func(o *subscription.Options[string]) { o.Encode = nil },
		"Options.Answer is missing":           func(o *subscription.Options[string]) { o.Answer = nil },
		"Options.Batch: -3 is negative":       func(o *subscription.Options[string]) { o.Batch = -3 },
		"Options.InFlight: -1 is negative":    func(o *subscription.Options[string]) { o.InFlight = -1 },
		"":                                    func(o *subscription.Options[string]) { o.Answer, o.NoAnswers = nil, true },
		"subscription: Options.Encode is mis": func(o *subscription.Options[string]) { *o = subscription.Options[string]{} },
	} {
		o := good
		change(&o)
		_, err := subscription.New(&o)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := subscription.New[string](nil)
	require.ErrorContains(t, err, "Encode is missing")
}

// A function of the user that ends its goroutine costs the session, and no more.
func TestAFunctionThatDoesNotReturnCostsTheSession(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		first := true
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			if slices.Contains(r.Keys, "b") && first {
				first = false
				runtime.Goexit()
			}
			return encode(r)
		}
		s.ready("a")
		s.set.Add("b")
		synctest.Wait()
		time.Sleep(time.Second)
		require.Equal(t, uint64(2), s.conn.Status().Session)
		s.synced("a", "b")
	})
}

var errBad = errors.New("bad")

// A message that is no answer costs no memory.
func TestAMessageOfTheStreamAllocatesNothing(t *testing.T) {
	set, err := subscription.New(&subscription.Options[string]{
		Encode: encode,
		Answer: func(reconnect.Message) (a subscription.Answer[string], ok bool) { return a, false },
	})
	require.NoError(t, err)
	m := reconnect.Message{Message: conn.TextMessage("x 42"), Session: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { set.Layer().Receive(m) }))
}

// A session is ready as soon as its essential keys are there, so that no other key is in their request.
func TestTheRequestForEssentialKeysHasNoOthers(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.so.Essential = func(k string) bool { return k == "b" }
		s.ready("a", "b", "c")
		require.Equal(t, []string{"subscribe b", "subscribe a,c"}, s.noted())
	})
}

// A key that was given up is wanted all the same, and one that was removed is held until the venue has answered.
func TestStatsCountWhatIsGivenUpAndWhatIsLeaving(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
		s.ready("a", "b", "bad")
		require.Equal(t, subscription.Stats{Refusals: 1, Wanted: 3, Held: 2}, s.set.Stats())
		s.venue.Next(venueFault{Late: time.Second})
		s.set.Remove("a")
		synctest.Wait()
		require.Equal(t, subscription.Stats{Refusals: 1, Wanted: 2, Held: 2}, s.set.Stats())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, subscription.Stats{Refusals: 1, Wanted: 2, Held: 1}, s.set.Stats())
	})
}
