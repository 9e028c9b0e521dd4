package call_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

func TestEachAnswerFindsItsQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		a, b, c := s.ask("1 a"), s.ask("2 b"), s.ask("3 c")
		wantWritten(t, peer, "1 a", "2 b", "3 c")
		answer(peer, "3 C", "! news", "1 A")
		a.wantAnswer("1 A")
		b.wantWaiting()
		c.wantAnswer("3 C")
		require.Equal(t, uint64(1), c.answer.Session)
		m, err := s.conn.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "! news", string(m.Data), "only what is no answer reaches the reader")
		require.Equal(t, call.Stats{InFlight: 1, Asked: 3, Answered: 2}, s.client.Stats())
	})
}

// The scene's connections overwrite the buffer with each next message.
func TestAnAnswerIsInASliceOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		a := s.ask("1 a")
		answer(peer, "1 A", "! something else")
		a.wantAnswer("1 A")
		require.Equal(t, 3, cap(a.answer.Data))
		require.Equal(t, conn.Text, a.answer.Type)
	})
}

// The data of the question belongs to the caller when Do has returned, so Do waits for the write.
func TestAnAnswerMayComeBeforeTheWriteHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		peer.Hold()
		a := s.ask("1 a")
		answer(peer, "1 A")
		a.wantWaiting()
		require.Zero(t, s.client.Stats().InFlight)
		peer.Release()
		a.wantAnswer("1 A")
	})
}

// That it came is enough, whatever becomes of the write.
func TestAnAnswerCountsThoughTheWriteFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		peer.Hold()
		a := s.ask("1 a")
		answer(peer, "1 A")
		lose(peer)
		a.wantAnswer("1 A")
	})
}

func TestDoWorksInTheGoroutineThatPullsMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		answer(peer, "! 1", "! 2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for m, err := range s.conn.Messages(ctx) {
			require.NoError(t, err)
			question := string(m.Data[2:]) + " why?"
			time.AfterFunc(time.Second, func() { answerLater(peer, question) })
			got, err := s.client.Do(ctx, request(question))
			require.NoError(t, err)
			if require.Equal(t, question, string(got.Data)); question == "2 why?" {
				break
			}
		}
	})
}

func answerLater(peer *conntest.Fake, m string) { peer.Deliver(text(m)) }

// As documented at Do: the context ends it.
func TestAFullInboxThatBlocksHoldsUpAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}})
		peer := s.accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		a := s.do(ctx, request("1 a"))
		answer(peer, "! 1", "1 A")
		<-a.done
		require.Equal(t, time.Minute, time.Since(began))
		a.wantError(reconnect.FateUnknown, context.DeadlineExceeded)
		_, err := s.conn.Read(t.Context(), nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"1 A"}, s.late)
	})
}

func TestDoInACallbackFailsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var errs []error
		do := func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := s.client.Do(ctx, request("1 a"))
			errs = append(errs, err)
		}
		s.open(&reconnect.Options{
			OnSession: func(ctx context.Context, _ *reconnect.Opening) error { do(ctx); return nil },
			OnMessage: func(ctx context.Context, _ reconnect.Message) { do(ctx) },
			OnSeam:    func(ctx context.Context, _ *reconnect.Seam) { do(ctx) },
		})
		began := time.Now()
		peer := s.accept()
		answer(peer, "! news")
		lose(peer)
		require.Len(t, errs, 3)
		for _, err := range errs {
			require.ErrorIs(t, err, call.ErrInCallback)
			require.True(t, call.Unsent(err))
		}
		require.Zero(t, time.Since(began))
		wantWritten(t, peer)
	})
}

// The id cannot be used again before, because this answer would look like that to the new question.
func TestALateAnswerIsNotTakenForThatToANewerQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := s.do(ctx, request("1 old"))
		<-a.done
		a.wantError(reconnect.FateUnknown, context.DeadlineExceeded)
		s.ask("1 new").wantError(reconnect.FateDropped, call.ErrIDInUse)
		require.Equal(t, call.Stats{Reserved: 1, Asked: 1, Refused: 1, GivenUp: 1}, s.client.Stats())
		answer(peer, "1 OLD")
		b := s.ask("1 new")
		b.wantWaiting()
		answer(peer, "1 NEW")
		b.wantAnswer("1 NEW")
		require.Equal(t, []string{"1 OLD"}, s.late)
		require.Equal(t, call.Stats{Asked: 2, Refused: 1, Answered: 1, GivenUp: 1, Late: 1}, s.client.Stats())
	})
}

func TestAnIDThatWasGivenUpIsFreeInTheNextSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		ctx, cancel := context.WithCancel(t.Context())
		s.do(ctx, request("1 old"))
		cancel()
		synctest.Wait()
		require.Equal(t, 1, s.client.Stats().Reserved)
		lose(peer)
		require.Zero(t, s.client.Stats().Reserved)
		peer = s.accept()
		b := s.ask("1 new")
		answer(peer, "1 NEW")
		b.wantAnswer("1 NEW")
	})
}

// A server that loses questions must not fill the memory.
func TestAsManyGivenUpIDsAreRememberedAsMayBeInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.o.InFlight = 2
		s.open(nil)
		s.accept()
		for _, question := range []string{"1 a", "2 b", "3 c"} {
			ctx, cancel := context.WithCancel(t.Context())
			a := s.do(ctx, request(question))
			cancel()
			a.wantError(reconnect.FateUnknown, context.Canceled)
		}
		require.Equal(t, call.Stats{Reserved: 2, Asked: 3, GivenUp: 3, Forgotten: 1}, s.client.Stats())
		s.ask("2 b").wantError(reconnect.FateDropped, call.ErrIDInUse)
		s.ask("1 a").wantWaiting()
	})
}

func TestLateResponseMakesRoomForReservedID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.o.InFlight = 2
		s.open(nil)
		peer := s.accept()
		giveUp := func(text string) {
			ctx, cancel := context.WithCancel(t.Context())
			a := s.do(ctx, request(text))
			cancel()
			a.wantError(reconnect.FateUnknown, context.Canceled)
		}
		giveUp("1 a")
		giveUp("2 b")
		answer(peer, "1 A")
		giveUp("3 c")
		require.Zero(t, s.client.Stats().Forgotten)
		giveUp("4 d")
		require.Equal(t, call.Stats{Reserved: 2, Asked: 4, GivenUp: 4, Late: 1, Forgotten: 1}, s.client.Stats())
		s.ask("3 c").wantError(reconnect.FateDropped, call.ErrIDInUse)
		s.ask("2 b").wantWaiting()
	})
}

func TestAnAnswerOfAnotherSessionIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		old := s.accept()
		a := s.ask("1 a")
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		answer(next, "1 foreign")
		a.wantWaiting()
		answer(old, "1 A", "1 again")
		a.wantAnswer("1 A")
		require.Equal(t, []string{"1 foreign", "1 again"}, s.late)
	})
}

func TestTheQuestionsInFlightAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.o.InFlight = 2
		s.open(nil)
		peer := s.accept()
		a := s.ask("1 a")
		s.ask("1 b").wantError(reconnect.FateDropped, call.ErrIDInUse)
		s.ask("2 b")
		s.ask("3 c").wantError(reconnect.FateDropped, call.ErrTooMany)
		answer(peer, "1 A")
		a.wantAnswer("1 A")
		s.ask("3 c").wantWaiting()
		wantWritten(t, peer, "1 a", "2 b", "3 c")
		require.Equal(t, uint64(2), s.client.Stats().Refused)
	})
}

func TestBadOptionsAreNamed(t *testing.T) {
	_, err := call.New[int](nil)
	require.EqualError(t, err, "call: Options.ID is missing")
	_, err = call.New(&call.Options[int]{ID: func(reconnect.Message) (int, bool) { return 0, false }, InFlight: -3})
	require.EqualError(t, err, "call: Options.InFlight: -3 is negative")
}

func TestAClientHasOneConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		_, err := reconnect.New(s, &reconnect.Options{Layers: []*reconnect.Layer{s.client.Layer()}})
		require.ErrorContains(t, err, "has a Conn already")
		other, err := call.New(&s.o)
		require.NoError(t, err)
		_, err = other.Do(t.Context(), request("1 a"))
		require.ErrorContains(t, err, "has no Conn: put Client.Layer into")
	})
}

// Such an id could be put into a map and never found again.
func TestAnIDMustBeEqualToItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		client, err := call.New(&call.Options[float64]{ID: func(reconnect.Message) (float64, bool) { return 0, false }})
		require.NoError(t, err)
		s.open(&reconnect.Options{Layers: []*reconnect.Layer{client.Layer()}})
		_, err = client.Do(t.Context(), call.Request[float64]{ID: math.NaN()})
		require.ErrorContains(t, err, "NaN")
		require.Zero(t, client.Stats().InFlight)
	})
}

func TestNextNeverRepeats(t *testing.T) {
	client, err := call.New(&call.Options[uint64]{ID: func(reconnect.Message) (uint64, bool) { return 0, false }})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, []uint64{client.Next(), client.Next(), client.Next()})
}

// Each of the two sessions of a rotation has a question with this id. The first one was given up.
func TestTheLateAnswerOfTheOldSessionFreesItsID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{Rotate: reconnect.Rotation{Drain: time.Minute}})
		old := s.accept()
		ctx, cancel := context.WithCancel(t.Context())
		a := s.do(ctx, request("1 a"))
		cancel()
		a.wantError(reconnect.FateUnknown, context.Canceled)
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		b := s.ask("1 b")
		require.Equal(t, 1, s.client.Stats().Reserved)
		answer(old, "1 A")
		b.wantWaiting()
		require.Equal(t, []string{"1 A"}, s.late)
		require.Zero(t, s.client.Stats().Reserved)
		answer(next, "1 B")
		b.wantAnswer("1 B")
	})
}
