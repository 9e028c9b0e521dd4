package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// InsForge#101: the answer of another session, or with an id that nobody gave, confirms nothing.
func TestAForeignAnswerConfirmsNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.ready("a") // has the id 1
		s.venue.Next(venueFault{Foreign: "1", Late: time.Second})
		s.lose()
		require.Equal(t, subscription.StateAsked, s.set.State("a"))
		require.Equal(t, uint64(1), s.set.Stats().Strays)
		s.venue.Next(venueFault{Foreign: "not ours"})
		s.set.Add("b")
		synctest.Wait()
		require.Equal(t, uint64(1), s.set.Stats().Strays)
		require.Equal(t, []string{`2 reads {"op":"subscribe","id":"not ours","answer":true}`}, s.noted(), "it may be for another layer")
		time.Sleep(time.Second)
		s.synced("a", "b")
	})
}

func TestASecondAnswerIsCountedAndTaken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Twice: true})
		s.ready("a")
		s.synced("a")
		require.Equal(t, uint64(1), s.set.Stats().Strays)
		require.Empty(t, s.noted())
	})
}

// vector#25785, gocryptotrader#2340: no answer is no success, and what failed is not forgotten.
func TestWhatIsNotAnsweredIsAskedAgainWithANewID(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.venue.Next(venueFault{Lost: true}, venueFault{Ignored: true}, venueFault{Ignored: true})
		s.ready("a")
		time.Sleep(10*time.Second - 1)
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 2, s.venue.Stats().Requests)
		require.Equal(t, subscription.StateAsked, s.set.State("a"))
		time.Sleep(20 * time.Second)
		require.Equal(t, []string{"rejected 1 a subscribe: no answer"}, s.noted())
		require.Equal(t, subscription.StateRejected, s.set.State("a"))
		time.Sleep(time.Second + 40*time.Second)
		s.synced("a")
		require.Equal(t, uint64(3), s.set.Stats().Unanswered)
	})
}

// A reader who is busy for longer than Timeout looks like a venue that is silent. That costs
// requests, and no key.
func TestABusyReaderCostsNoKey(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.co.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(14 * time.Second) }
		s.ready("a")
		s.venue.Publish("a", "1")
		s.venue.Publish("a", "2")
		synctest.Wait()
		s.set.Add("b")
		time.Sleep(time.Minute)
		s.synced("a", "b")
		require.Equal(t, uint64(1), s.set.Stats().Unanswered)
		require.Equal(t, uint64(1), s.conn.Status().Session)
	})
}

// The answer to the first request comes while the second one waits for its own, which then changes nothing.
func TestLateAnswerConfirms(t *testing.T) {
	for _, o := range []venueOptions{{}, {KeyByKey: true}} {
		inBubble(t, &o, func(t *testing.T, s *scene) {
			s.venue.Next(venueFault{Late: 12 * time.Second}, venueFault{Late: 5 * time.Second})
			s.ready("a")
			time.Sleep(12*time.Second - 1)
			require.Equal(t, subscription.StateAsked, s.set.State("a"))
			time.Sleep(time.Nanosecond)
			s.synced("a")
			time.Sleep(time.Minute)
			s.synced("a")
			require.Equal(t, 2, s.venue.Stats().Requests)
			require.Equal(t, uint64(1), s.set.Stats().Strays)
			require.Equal(t, uint64(1), s.set.Stats().Unanswered)
		})
	}
}

// The answer to the first request comes when the venue has ended the subscription, and has lost the request that
// followed.
func TestLateAnswerConfirmsNoEndedSubscription(t *testing.T) {
	for _, completed := range []bool{false, true} {
		t.Run(fmt.Sprintf("completed %v", completed), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
					a, ok := answer(m)
					if a.Ended && completed {
						a.Ended, a.Completed = false, true
					}
					return a, ok
				}
				s.venue.Next(venueFault{Late: 15 * time.Second}, venueFault{}, venueFault{Ignored: true})
				s.ready("a")
				time.Sleep(12 * time.Second)
				s.synced("a")
				s.venue.End("a", "over")
				time.Sleep(2 * time.Second)
				if completed {
					s.set.Add("a")
				}
				synctest.Wait()
				require.Equal(t, 3, s.venue.Stats().Requests)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, uint64(1), s.set.Stats().Strays)
				require.Equal(t, subscription.StateAsked, s.set.State("a"))
				time.Sleep(time.Minute)
				s.synced("a")
			})
		})
	}
}

// The venue processes the second request, whose key the late answer to the first has settled, after the removal.
func TestRequestIsUndoneAfterLateAnswerSettledIt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.venue.Next(venueFault{Late: 12 * time.Second}, venueFault{Slow: 20 * time.Second})
		s.ready("a")
		time.Sleep(13 * time.Second)
		s.synced("a")
		s.set.Remove("a")
		s.synced()
		time.Sleep(20 * time.Second)
		s.synced()
		require.Equal(t, []string{"subscribe a", "subscribe a", "unsubscribe a", "unsubscribe a"}, s.noted())
	})
}

// The second request is for two keys, and a late answer settles one of them. The venue has refused the request
// because of that key.
func TestErrorIsNotAboutKeyThatLateAnswerLeft(t *testing.T) {
	inBubble(t, &venueOptions{Strict: true}, func(t *testing.T, s *scene) {
		s.so.InFlight = 1
		s.noteRequests()
		s.venue.Next(venueFault{Late: 12 * time.Second}, venueFault{Late: 5 * time.Second})
		s.ready("a")
		s.set.Add("b")
		time.Sleep(15 * time.Second)
		s.synced("a", "b")
		require.Equal(t, []string{"subscribe a", "subscribe a,b", "subscribe b"}, s.noted())
	})
}

// A request that was given up is worked off by the venue all the same, after the key was removed:
// rails#58698, anycable-go#148.
func TestWhatTheVenueDoesTooLateIsUndone(t *testing.T) {
	for _, o := range []venueOptions{{}, {KeyByKey: true}} {
		inBubble(t, &o, func(t *testing.T, s *scene) {
			s.venue.Next(venueFault{Slow: 30 * time.Second})
			s.ready("a")
			time.Sleep(15 * time.Second) // asked again, and held
			s.set.Remove("a")
			s.synced()
			require.Empty(t, s.set.Snapshot())
			time.Sleep(15 * time.Second)
			s.synced()
			require.Equal(t, 4, s.venue.Stats().Requests)
		})
	}
}

// The same, but the request to remove the key is on its way when the old answer comes: nothing
// shows which of the two the venue has done first.
func TestAnOldAnswerMakesTheRequestOnItsWayUncertain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Slow: 17 * time.Second}, venueFault{}, venueFault{Late: 5 * time.Second})
		s.ready("a")
		time.Sleep(15 * time.Second)
		s.set.Remove("a") // is done at 15 s and answered at 20 s; at 17 s the venue subscribes
		time.Sleep(5 * time.Second)
		s.synced()
		require.Equal(t, 4, s.venue.Stats().Requests)
	})
}

func TestARemovalThatIsNotAnsweredIsAskedAgain(t *testing.T) {
	inBubble(t, &venueOptions{Strict: true}, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.ready("a")
		s.venue.Next(venueFault{Lost: true}) // then the venue says that there is nothing to do
		s.set.Remove("a")
		time.Sleep(10 * time.Second)
		s.synced()
		require.Empty(t, s.noted())
		require.Equal(t, 3, s.venue.Stats().Requests)
		require.Empty(t, s.set.Snapshot())
	})
}

// One bad key among fifty is found, and the others are held.
func TestARefusedBatchIsHalvedUntilTheBadKeyIsAlone(t *testing.T) {
	bad := "SYM00017"
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == bad }}, func(t *testing.T, s *scene) {
		var got []subscription.Rejection[string]
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			got = append(got, r)
			return subscription.DecisionDrop
		}
		keys := symbols(50)
		s.ready(keys...)
		good := append(keys[:17:17], keys[18:]...)
		s.holds(good...)
		require.Equal(t, 1+2*6, s.venue.Stats().Requests, "50, 25, 13, 7, 4, 2, 1")
		require.Equal(t, []subscription.Rejection[string]{{Key: bad, Op: subscription.OpSubscribe, Session: 1, Tries: 1, Err: errors.New("unknown key")}}, got)
		require.ErrorAs(t, s.set.Synced(t.Context()), new(*subscription.RejectedError))
		require.Equal(t, subscription.StateDropped, s.set.State(bad))
		// No redial costs as much again.
		s.lose()
		s.holds(good...)
		require.Equal(t, 14, s.venue.Stats().Requests)
		// To add it again is to ask again.
		s.set.Add(bad)
		synctest.Wait()
		require.Equal(t, 15, s.venue.Stats().Requests)
		require.Len(t, got, 2)
	})
}

// The default decision asks again, alone, and not in the batch of the next session.
func TestARefusedKeyIsAskedAgainAlone(t *testing.T) {
	var kind atomic.Bool
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" && !kind.Load() }}, func(t *testing.T, s *scene) {
		s.ready("a", "bad", "c", "d")
		s.holds("a", "c", "d")
		before := s.venue.Stats().Requests
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, before+1, s.venue.Stats().Requests)
		s.lose()
		require.Equal(t, before+2, s.venue.Stats().Requests, "its wait goes on")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, before+3, s.venue.Stats().Requests)
		kind.Store(true)
		time.Sleep(time.Second)
		s.synced("a", "bad", "c", "d")
		require.NoError(t, s.set.Snapshot()[1].Err)
		s.lose()
		require.Equal(t, before+5, s.venue.Stats().Requests, "in the batch again")
	})
}

func TestARefusalThatNamesTheKeysCostsTheOthersNothing(t *testing.T) {
	for _, o := range []venueOptions{{Partial: true}, {KeyByKey: true}} {
		t.Run(fmt.Sprintf("key by key %v", o.KeyByKey), func(t *testing.T) {
			o.Bad = func(k string) bool { return k == "bad" }
			inBubble(t, &o, func(t *testing.T, s *scene) {
				s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
				s.ready("a", "bad", "c")
				s.holds("a", "c")
				require.Equal(t, 1, s.venue.Stats().Requests)
				require.Equal(t, subscription.StateDropped, s.set.State("bad"))
				s.set.Remove("a", "bad")
				s.synced("c")
			})
		})
	}
}

func TestAPermanentRefusalIsDroppedByDefault(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			a.Err = backoff.Permanent(a.Err)
			return a, ok
		}
		s.ready("bad")
		require.Equal(t, subscription.StateDropped, s.set.State("bad"))
		require.Equal(t, reconnect.StateReady, s.conn.State())
	})
}

// laterByName makes an error whose text is "later" one that asks for 20 s.
func laterByName(m reconnect.Message) (subscription.Answer[string], bool) {
	a, ok := answer(m)
	if a.Err != nil && a.Err.Error() == "later" {
		a.Err = backoff.RetryAfter(a.Err, 20*time.Second)
	}
	return a, ok
}

// The wait after a refusal has what the venue asks for on top.
func TestARefusalMaySayHowLongToWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Answer = laterByName
		s.venue.Next(venueFault{Err: "later"})
		s.ready("a")
		time.Sleep(21*time.Second - 1)
		require.Equal(t, 1, s.venue.Stats().Requests)
		time.Sleep(time.Nanosecond)
		s.synced("a")
	})
}

// The halves of a batch, and other keys, wait too.
func TestTheRefusalOfABatchMaySayHowLongToWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Answer = laterByName
		s.venue.Next(venueFault{Err: "later"})
		s.ready("a", "b", "c", "d")
		s.set.Add("e")
		time.Sleep(20*time.Second - 1)
		require.Equal(t, 1, s.venue.Stats().Requests)
		require.Equal(t, subscription.StateWaiting, s.set.State("a"))
		time.Sleep(time.Nanosecond)
		s.synced("a", "b", "c", "d", "e")
		require.LessOrEqual(t, s.venue.Stats().Requests, 4)
	})
}

func TestAVenueThatNamesNothingIsAskedOneByOne(t *testing.T) {
	inBubble(t, &venueOptions{Bare: true, Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.InFlight = 1
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
		var ends []error
		s.co.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends = append(ends, e.Cause) }}
		s.ready("a", "bad", "c")
		s.holds("a", "c")
		// After an answer that did not come nothing shows to which request the next belongs.
		s.venue.Next(venueFault{Late: 11 * time.Second})
		s.set.Add("d")
		time.Sleep(12 * time.Second)
		s.holds("a", "c", "d")
		require.Len(t, ends, 1)
		require.ErrorContains(t, ends[0], "may belong to a request that was given up")
	})
}

func TestAVenueThatNamesNothingIsNotAskedBesides(t *testing.T) {
	inBubble(t, &venueOptions{Bare: true}, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.ready("a")
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"rejected 1 a subscribe: no answer: answers without ID and Keys need Options.InFlight: 1"}, s.noted())
		require.Equal(t, uint64(2), s.set.Stats().Strays)
	})
}

func TestAVenueThatDoesNotAnswer(t *testing.T) {
	inBubble(t, &venueOptions{Mute: true}, func(t *testing.T, s *scene) {
		s.so.Answer, s.so.NoAnswers = nil, true
		s.so.Essential = func(k string) bool { return k == "a" }
		s.ready("a", "b")
		s.synced("a", "b")
		s.set.Remove("a")
		s.synced("b")
		s.lose()
		s.synced("b")
		require.Zero(t, s.set.Stats().Unanswered)
	})
}

// derive_client#210: one subscription that the venue has ended costs no redial.
func TestAKeyThatTheVenueHasEndedIsAskedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.ready("a", "b")
		s.venue.End("a", "token expired")
		synctest.Wait()
		require.Equal(t, subscription.StateRejected, s.set.State("a"))
		time.Sleep(time.Second)
		s.synced("a", "b")
		require.Equal(t, []string{"rejected 1 a subscribe: token expired"}, s.noted())
		require.Equal(t, uint64(1), s.set.Stats().Refusals)
		require.Zero(t, s.set.Stats().Strays)
		s.venue.End("b", "")
		synctest.Wait()
		require.ErrorIs(t, s.set.Wait(t.Context(), "b"), subscription.ErrEnded)
	})
}

// A stream that ends well is no rejection: its key is wanted no more, in later sessions too, until it is added
// again. Nothing is asked of the venue.
func TestACompleteStreamIsNoRejection(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.noteRequests()
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			a.Ended, a.Completed = false, a.Ended
			return a, ok
		}
		s.ready("a", "b")
		s.set.Add("a") // twice
		require.Equal(t, []string{"subscribe a,b"}, s.noted())
		s.venue.End("a", "")
		s.venue.End("never subscribed", "")
		synctest.Wait()
		require.ErrorIs(t, s.set.Wait(t.Context(), "a"), subscription.ErrNotWanted)
		time.Sleep(time.Minute)
		s.synced("b")
		require.Equal(t, subscription.Stats{Wanted: 1, Held: 1}, s.set.Stats())
		require.Empty(t, s.noted())
		s.lose()
		s.synced("b")
		s.set.Add("a")
		s.synced("a", "b")
	})
}

// ethers-rs#2418: the venue gives new names in each session.
func TestNamesThatTheVenueGivesBelongToTheirSession(t *testing.T) {
	inBubble(t, &venueOptions{Tags: true, Strict: true}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			x := *r
			if r.Tags != nil {
				x.Keys = r.Tags
			}
			return encode(&x)
		}
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			a.Keys = nil
			return a, ok
		}
		s.ready("a", "b")
		s.lose()
		k, ok := s.set.ByTag(2, "a#2")
		require.True(t, ok)
		require.Equal(t, "a", k)
		_, ok = s.set.ByTag(2, "a#1")
		require.False(t, ok, "it was of session 1")
		s.set.Remove("a")
		s.synced("b")
		_, ok = s.set.ByTag(2, "a#2")
		require.False(t, ok)
		require.Zero(t, s.venue.Stats().Redundant)
	})
}

// A request that Encode cannot encode, or the connection cannot send, counts as refused.
func TestAnErrorOfEncodeIsARefusal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			if len(r.Keys) > 2 {
				return conn.Message{}, errors.New("too long")
			}
			for _, k := range r.Keys {
				if k == "bad" {
					return conn.Message{Type: 77}, nil // is ErrBadMessage
				}
			}
			return encode(r)
		}
		s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
			s.note("%s %v", r.Key, errors.Is(r.Err, conn.ErrBadMessage))
			return subscription.DecisionDrop
		}
		s.so.InFlight = 1
		s.ready("a", "b", "c", "d", "bad")
		s.holds("a", "b", "c", "d")
		require.Equal(t, []string{"bad true"}, s.noted())
		require.EqualValues(t, s.venue.Stats().Requests, s.conn.Stats().Written, "nothing else")
	})
}

func TestAnIDThatWasUsedIsARefusal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) { r.ID = ""; return encode(r) }
		s.ready("a")
		require.ErrorContains(t, s.set.Wait(t.Context(), "a"), "an id that is empty or was used")
	})
}

// An answer may have data in it.
func TestAnAnswerCanGoOnToTheReader(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			a.Deliver = true
			return a, ok
		}
		s.ready("a")
		s.synced("a")
		require.Len(t, s.noted(), 1)
	})
}

// Elsewhere one bad key spoils the batch of each session. Here it is alone from then on.
func TestARefusedKeyIsNotInTheBatchOfTheNextSession(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.ready("a", "bad", "c", "d")
		s.holds("a", "c", "d")
		s.server.Close()
		time.Sleep(time.Minute) // its wait is over
		before := s.venue.Stats().Requests
		s.server.Start()
		require.NoError(t, s.set.Wait(t.Context(), "d"))
		s.holds("a", "c", "d")
		require.Equal(t, before+2, s.venue.Stats().Requests, "three keys together, and one alone")
	})
}

// What the venue does too late of a request may be a part of it.
func TestWhatTheVenueAgreesToTooLateIsUndoneThoughItRefusesTheRest(t *testing.T) {
	inBubble(t, &venueOptions{Partial: true, Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
		s.noteRequests()
		s.venue.Next(venueFault{Slow: 30 * time.Second})
		s.ready("a", "bad")
		time.Sleep(15 * time.Second) // asked again, and held
		s.holds("a")
		s.set.Remove("a", "bad")
		s.synced()
		s.noted()
		time.Sleep(15 * time.Second)
		s.synced()
		require.Equal(t, []string{"unsubscribe a"}, s.noted())
	})
}

// receive hands the Set a message of session 1, as its Conn does.
func (s *scene) receive(message string) (taken bool) {
	return s.set.Layer().Receive(reconnect.Message{
		Session: 1, Message: conn.Message{Type: conn.Text, Data: []byte(message)},
	})
}

// No request waits for that key, though one waits for others.
func TestAnAnswerAboutAnotherKeyIsAStray(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Late: time.Second})
		s.ready("a", "b")
		require.True(t, s.receive(`{"op":"subscribe","keys":["c"],"answer":true}`))
		require.Equal(t, uint64(1), s.set.Stats().Strays)
		require.Equal(t, subscription.StateAsked, s.set.State("a"))
		time.Sleep(time.Second)
		s.synced("a", "b")
	})
}

// What is late is only an answer with the ID of a request that was given up.
func TestAnAnswerWithAnotherIDIsNotLate(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Ignored: true})
		s.ready("a")
		time.Sleep(15 * time.Second) // given up, asked again, and held
		s.synced("a")
		require.False(t, s.receive(`{"op":"unsubscribe","id":"not ours","answer":true}`))
		s.synced("a")
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

// The key is held since the second request, so that nothing is uncertain.
func TestALateAnswerThatSaysWhatIsSoAsksForNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.venue.Next(venueFault{Slow: 30 * time.Second})
		s.ready("a")
		time.Sleep(15 * time.Second) // asked again, and held
		s.synced("a")
		time.Sleep(30 * time.Second)
		s.synced("a")
		require.Equal(t, uint64(1), s.set.Stats().Strays)
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

// A refusal that names keys is about these, and not about how many there are in the request.
func TestARefusalThatNamesSomeKeysRefusesThese(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRejections()
		s.venue.Next(venueFault{Lost: true})
		s.ready("a", "b", "c")
		require.True(t, s.receive(`{"op":"subscribe","keys":["a","b"],"error":"no","answer":true}`))
		require.Equal(t, []string{"rejected 1 a subscribe: no", "rejected 1 b subscribe: no"}, s.noted())
		require.Equal(t, subscription.StateAsked, s.set.State("c"))
	})
}

// A request to remove keys has the names that the venue has given them; no other request has.
func TestTheNamesOfKeysAreInTheirRemoval(t *testing.T) {
	inBubble(t, &venueOptions{Tags: true}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
			s.note("%v %v %v", r.Op, r.Keys, r.Tags)
			return encode(r)
		}
		s.ready("a")
		s.set.Add("b")
		synctest.Wait()
		s.set.Remove("a")
		s.synced("b")
		require.Equal(t, []string{"subscribe [a] []", "subscribe [b] []", "unsubscribe [a] [a#1]"}, s.noted())
	})
}

// A name that the venue has given ends with the subscription.
func TestASubscriptionThatHasEndedHasNoName(t *testing.T) {
	inBubble(t, &venueOptions{Tags: true}, func(t *testing.T, s *scene) {
		s.so.Batch = 1
		s.ready("a", "b")
		s.venue.End("a", "token expired")
		synctest.Wait()
		_, ok := s.set.ByTag(1, "a#1")
		require.False(t, ok)
		k, ok := s.set.ByTag(1, "b#1")
		require.True(t, ok)
		require.Equal(t, "b", k)
	})
}

// histories is a policy that notes what it gets, and waits 7 s each time.
type histories []backoff.History

func (h *histories) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	*h = append(*h, a)
	return backoff.Step{Wait: 7 * time.Second}, true
}

func TestTheBackoffOfAKeyGetsItsHistory(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
		var got histories
		s.so.Backoff = &got
		s.ready("a")
		time.Sleep(14 * time.Second)
		synctest.Wait()
		retry := backoff.Verdict{Class: backoff.ClassRetry}
		require.Equal(t, histories{
			{Verdict: retry},
			{N: 1, Prev: 7 * time.Second, Elapsed: 7 * time.Second, Verdict: retry},
			{N: 2, Prev: 7 * time.Second, Elapsed: 14 * time.Second, Verdict: retry},
		}, got)
	})
}

// The venue may have done the two in the order of its messages or not, so that a removal follows.
func TestAStreamThatIsCompleteBeforeItsAnswerIsRemoved(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			a.Ended, a.Completed = false, a.Ended
			return a, ok
		}
		s.venue.Next(venueFault{Late: time.Second})
		s.ready("a")
		s.venue.End("a", "")
		time.Sleep(2 * time.Second)
		s.synced()
		require.Equal(t, []string{"subscribe a", "unsubscribe a"}, s.noted())
		require.Empty(t, s.set.Snapshot())
	})
}

// The answer says nothing of what has happened since.
func TestAKeyThatTheVenueHasEndedBeforeItsAnswerIsAskedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.venue.Next(venueFault{Late: time.Second})
		s.ready("a")
		s.venue.End("a", "token expired")
		time.Sleep(2 * time.Second)
		s.synced("a")
		require.Equal(t, []string{"subscribe a", "subscribe a"}, s.noted())
	})
}

// Nobody knows which keys of the batch the venue has had already.
func TestABatchThatIsRefusedAsRedundantIsDivided(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.venue.Next(venueFault{Err: redundant})
		s.ready("a", "b")
		s.synced("a", "b")
		require.Equal(t, []string{"subscribe a,b", "subscribe a", "subscribe b"}, s.noted())
	})
}

func TestAnIDThatAnotherRequestHasIsARefusal(t *testing.T) {
	for name, id := range map[string]string{"the Set has given it": "1", "a request waits for its answer": "own"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
					if r.Keys[0] == "b" || id == "own" {
						r.ID = id
					}
					return encode(r)
				}
				if id == "own" {
					s.venue.Next(venueFault{Late: time.Second})
				}
				s.ready("a")
				s.set.Add("b")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				require.ErrorContains(t, s.set.Wait(ctx, "b"), "an id that is empty or was used")
			})
		})
	}
}

func TestAKeyIsGivenUpWithItsBackoff(t *testing.T) {
	for _, d := range []subscription.Decision{subscription.DecisionRetry, subscription.DecisionRedial} {
		t.Run(d.String(), func(t *testing.T) {
			inBubble(t, &venueOptions{Bad: func(string) bool { return true }}, func(t *testing.T, s *scene) {
				s.so.Backoff = backoff.Limit(s.so.Backoff, 2, 0)
				s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return d }
				s.ready("bad")
				time.Sleep(time.Minute)
				require.Equal(t, subscription.StateDropped, s.set.State("bad"))
				require.Equal(t, 3, s.venue.Stats().Requests)
			})
		})
	}
}

// A venue may name the subscription in the answer to its removal, too.
func TestTheAnswerToARemovalGivesNoName(t *testing.T) {
	inBubble(t, &venueOptions{Tags: true}, func(t *testing.T, s *scene) {
		s.so.Answer = func(m reconnect.Message) (subscription.Answer[string], bool) {
			a, ok := answer(m)
			if a.Op == subscription.OpUnsubscribe {
				a.Tag = "a#1"
			}
			return a, ok
		}
		s.ready("a")
		s.set.Remove("a")
		s.synced()
		_, ok := s.set.ByTag(1, "a#1")
		require.False(t, ok)
	})
}

// During a rotation two sessions ask for a key, and both are rejected. The longer wait counts.
func TestLongerWaitCountsOfTwoSessionsThatWereRejected(t *testing.T) {
	for name, c := range map[string]struct {
		first, second venueFault
		before        time.Duration // when no session has asked again; a few seconds later one has
	}{
		"the first": {
			venueFault{Err: "later", Slow: 2 * time.Second}, venueFault{Err: "no", Slow: 3 * time.Second}, 20 * time.Second,
		},
		"the second": {
			venueFault{Err: "no", Slow: 2 * time.Second}, venueFault{Err: "later", Slow: 1500 * time.Millisecond},
			23 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, s *scene) {
				s.co.OnSession = func(_ context.Context, o *reconnect.Opening) error {
					if o.Session == 2 {
						s.set.Add("a")
						time.Sleep(time.Second)
					}
					return nil
				}
				s.so.Answer = laterByName
				s.venue.Next(c.first, c.second)
				s.ready()
				s.conn.Rotate(1, reconnect.Advice{})
				time.Sleep(c.before)
				require.Equal(t, 2, s.venue.Stats().Requests)
				time.Sleep(3 * time.Second)
				s.synced("a")
			})
		})
	}
}

// The removal of two keys is refused, because one of them has ended; then the key is wanted again.
func TestKeyEndedDuringRefusedRemovalIsRequestedAgain(t *testing.T) {
	inBubble(t, &venueOptions{Strict: true}, func(t *testing.T, s *scene) {
		s.noteRequests()
		s.ready("a", "b")
		s.venue.Next(venueFault{Slow: time.Second})
		s.set.Remove("a", "b")
		synctest.Wait()
		s.venue.End("a", "over")
		s.venue.End("b", "over")
		synctest.Wait()
		s.set.Add("a")
		time.Sleep(2 * time.Second)
		s.synced("a")
		require.Equal(t, []string{"subscribe a,b", "unsubscribe a,b", "unsubscribe b", "subscribe a"}, s.noted())
	})
}
