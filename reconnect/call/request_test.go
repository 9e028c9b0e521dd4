package call_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/call"
)

func TestAQuestionWithoutASessionFollowsWhenDown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownFail))
		a := s.ask("1 a")
		a.wantLost(reconnect.FateDropped, 0)
		require.ErrorIs(t, a.err, reconnect.ErrNotReady)
		require.NotErrorIs(t, a.err, reconnect.ErrSessionLost)
	})
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait))
		a := s.ask("1 a")
		a.wantWaiting()
		s.refuse(errGone)
		a.wantWaiting()
		peer := s.accept()
		wantWritten(t, peer, "1 a")
		answer(peer, "1 A")
		a.wantAnswer("1 A")
	})
}

func TestAQuestionIsLostAtOnceWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait))
		peer := s.accept()
		a, b := s.ask("1 a"), s.ask("2 b")
		began := time.Now()
		lose(peer)
		a.wantLost(reconnect.FateUnknown, 1)
		b.wantLost(reconnect.FateUnknown, 1)
		require.Zero(t, time.Since(began))
		require.EqualError(t, a.err, "request perhaps sent, no response: session 1 ended: read: gone")
		require.ErrorIs(t, a.err, reconnect.ErrSessionLost)
		require.ErrorIs(t, a.err, errGone)
		require.NotErrorIs(t, a.err, net.ErrClosed)
		require.Equal(t, call.Stats{Asked: 2, Lost: 2}, s.client.Stats())
		require.Empty(t, s.accept().Written(), "neither goes again")
	})
}

// As doc.go says of a session that we end politely.
func TestAQuestionIsLostWhenTheCloseHandshakeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{CloseTimeout: 500 * time.Millisecond})
		s.accept().Mute()
		a := s.ask("1 a")
		began := time.Now()
		s.conn.Redial(1, errGone)
		s.ask("2 b").wantLost(reconnect.FateDropped, 0)
		a.wantWaiting()
		<-a.done
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		a.wantLost(reconnect.FateUnknown, 1)
	})
}

// The first question is being written when the session ends, and the second one waits for that.
func TestAQuestionThatWasNotSentFollowsWhenDown(t *testing.T) {
	for policy, waits := range map[reconnect.WhenDown]bool{reconnect.WhenDownFail: false, reconnect.WhenDownWait: true} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.open(down(policy))
			peer := s.accept()
			peer.Hold()
			a, b := s.ask("1 a"), s.ask("2 b")
			lose(peer)
			a.wantLost(reconnect.FateUnknown, 1)
			if !waits {
				b.wantLost(reconnect.FateDropped, 1)
				require.ErrorIs(t, b.err, reconnect.ErrSessionLost)
				require.ErrorContains(t, b.err, "request not sent: session 1 ended: ")
				return
			}
			b.wantWaiting()
			peer = s.accept()
			wantWritten(t, peer, "2 b")
			answer(peer, "2 B")
			b.wantAnswer("2 B")
		})
	}
}

// The connection says that it has not begun to write.
func TestAQuestionWhoseWriteWasNotBegunIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		s.accept().FailWrite(fmt.Errorf("%w: %w", conn.ErrNotWritten, errGone))
		s.ask("1 a").wantLost(reconnect.FateDropped, 1)
	})
}

// The same for a question that was queued behind another one.
func TestAQueuedQuestionWhoseWriteWasNotBegunIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := new(reconnect.Options)
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
		s.open(o)
		peer := s.acceptHeld()
		s.ask("1 a")
		queued := s.ask("2 b")
		peer.FailWriteAfter(1, fmt.Errorf("%w: %w", conn.ErrNotWritten, errGone))
		peer.Release()
		lost := queued.wantLost(reconnect.FateDropped, 1)
		require.ErrorIs(t, lost.Err, errGone)
	})
}

func TestAQuestionForOneSessionGoesByNoOther(t *testing.T) {
	for _, policy := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.open(down(policy))
			old := s.accept()
			s.conn.Rotate(1, reconnect.Advice{})
			next := s.accept()
			r := request("1 a")
			r.Session = 1
			a := s.do(t.Context(), r)
			wantWritten(t, old, "1 a")
			lose(old)
			a.wantLost(reconnect.FateUnknown, 1)
			s.do(t.Context(), r).wantLost(reconnect.FateDropped, 1)
			require.Empty(t, next.Written())
			r.Repeatable = true
			_, err := s.client.Do(t.Context(), r)
			require.ErrorContains(t, err, "Request.Session with Repeatable")
		})
	}
}

func TestTheContextEndsAQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		ctx, cancel := context.WithCancelCause(t.Context())
		sent := s.do(ctx, request("1 a"))
		peer.Hold()
		writing, waiting := s.do(ctx, request("2 b")), s.do(ctx, request("3 c"))
		cancel(errGone)
		sent.wantError(reconnect.FateUnknown, errGone)
		waiting.wantError(reconnect.FateDropped, errGone)
		writing.wantWaiting()
		peer.Release()
		writing.wantError(reconnect.FateUnknown, errGone)
		admitted := s.client.Stats().Asked
		s.do(ctx, request("4 d")).wantError(reconnect.FateDropped, errGone)
		require.Equal(t, admitted, s.client.Stats().Asked, "whose context has ended before")
		wantWritten(t, peer, "1 a", "2 b")
		require.Equal(t, reconnect.StateReady, s.conn.State())
		require.Equal(t, 2, s.client.Stats().Reserved, "of those that were sent")
	})
}

// The cause of a context may be the error of another question, as with an errgroup. It says
// nothing about this one.
func TestTheCauseOfAContextIsNotTakenForTheFateOfTheQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		other := s.ask("1 a")
		require.True(t, call.Unsent(other.err))
		s.accept()
		ctx, cancel := context.WithCancelCause(t.Context())
		a := s.do(ctx, request("2 b"))
		cancel(other.err)
		a.wantError(reconnect.FateUnknown, reconnect.ErrNotReady)
		require.False(t, call.Unsent(fmt.Errorf("ask: %w", a.err)))
	})
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait))
		ctx, cancel := context.WithCancelCause(t.Context())
		a := s.do(ctx, request("1 a"))
		cancel(reconnect.ErrNotReady)
		a.wantError(reconnect.FateDropped, reconnect.ErrNotReady)
	})
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.acceptHeld()
		s.ask("1 a")
		ctx, cancel := context.WithCancelCause(t.Context())
		pinned := request("2 b")
		pinned.Session = 1
		a := s.do(ctx, pinned) // waits behind the first
		cancel(reconnect.ErrSessionLost)
		a.wantError(reconnect.FateDropped, reconnect.ErrSessionLost)
		peer.Release()
	})
}

// If a session ended because of another context, that is not the end of the question's.
func TestALostSessionIsNotTakenForTheEndOfTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		s.accept()
		a := s.ask("1 a")
		s.conn.Redial(1, &net.OpError{Op: "read", Err: context.DeadlineExceeded})
		lost := a.wantLost(reconnect.FateUnknown, 1)
		require.ErrorIs(t, lost.Err, context.DeadlineExceeded)
		require.NotErrorIs(t, a.err, context.DeadlineExceeded)
		var network *net.OpError
		require.ErrorAs(t, a.err, &network)
	})
}

func TestABadMessageIsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		s.accept().FailWrite(conn.ErrBadMessage)
		s.ask("1 a").wantError(reconnect.FateDropped, conn.ErrBadMessage)
		require.Zero(t, s.client.Stats().InFlight)
	})
}

func TestTheEndOfTheConnEndsEachQuestion(t *testing.T) {
	for name, end := range map[string]func(*reconnect.Conn){
		"Close":    func(c *reconnect.Conn) { c.Close() },
		"Shutdown": func(c *reconnect.Conn) { go c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.open(down(reconnect.WhenDownWait))
				waiting := s.ask("0 waits")
				end(s.conn)
				waiting.wantError(reconnect.FateDropped, net.ErrClosed)
			})
			inBubble(t, func(t *testing.T, s *scene) {
				s.open(down(reconnect.WhenDownWait))
				s.accept()
				sent, again := s.ask("1 a"), s.repeat("2 b")
				end(s.conn)
				sent.wantLost(reconnect.FateUnknown, 1)
				require.ErrorIs(t, sent.err, net.ErrClosed)
				again.wantError(reconnect.FateUnknown, net.ErrClosed)
				s.ask("3 c").wantError(reconnect.FateDropped, net.ErrClosed)
				require.Equal(t, call.Stats{Asked: 2, Lost: 1, GivenUp: 1}, s.client.Stats())
			})
		})
	}
}

func TestAConnThatHasEndedByItselfSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait))
		waiting, again := s.ask("1 a"), s.repeat("2 b")
		s.refuse(backoff.Permanent(errGone))
		for _, a := range []*asked{waiting, again, s.ask("3 c")} {
			a.wantError(reconnect.FateDropped, net.ErrClosed)
			require.ErrorIs(t, a.err, errGone)
		}
	})
}

// Nobody calls Layer.Lost then.
func TestACallbackThatEndsItsGoroutineEndsTheQuestions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { runtime.Goexit() }})
		peer := s.accept()
		a, b := s.ask("1 a"), s.repeat("2 b")
		answer(peer, "! bye")
		a.wantLost(reconnect.FateUnknown, 1)
		b.wantError(reconnect.FateUnknown, net.ErrClosed)
		require.ErrorIs(t, a.err, net.ErrClosed)
	})
}

// Questions are lost only when their session is.
func TestInARotationTheOldSessionAnswersItsQuestions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{Rotate: reconnect.Rotation{Drain: time.Minute}})
		old := s.accept()
		a, b, c := s.ask("1 a"), s.ask("2 b"), s.repeat("3 c")
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		d := s.ask("4 d")
		wantWritten(t, next, "4 d")
		answer(old, "1 A")
		a.wantAnswer("1 A")
		answer(next, "4 D")
		d.wantAnswer("4 D")
		b.wantWaiting()
		c.wantWaiting()
		time.Sleep(time.Minute)
		b.wantLost(reconnect.FateUnknown, 1)
		require.ErrorIs(t, b.err, reconnect.ErrRotated)
		wantWritten(t, next, "4 d", "3 c")
		answer(next, "3 C")
		c.wantAnswer("3 C")
		require.Equal(t, uint64(2), c.answer.Session)
	})
}

// The old session may be closed first. A question that was not asked waits then, whatever WhenDown says.
func TestInARotationThatBreaksFirstANewQuestionWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapBreakFirst}})
		s.accept()
		a := s.ask("1 a")
		s.conn.Rotate(1, reconnect.Advice{})
		a.wantLost(reconnect.FateUnknown, 1)
		b := s.ask("2 b")
		b.wantWaiting()
		next := s.accept()
		wantWritten(t, next, "2 b")
		answer(next, "2 B")
		b.wantAnswer("2 B")
	})
}

// When the write has ended Do sees both at once.
func TestAnAnswerThatHasComeIsNotGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			peer.Hold()
			a := s.do(ctx, request("1 a"))
			answer(peer, "1 A")
			cancel()
			a.wantWaiting()
			peer.Release()
			a.wantAnswer("1 A")
		}
		require.Equal(t, call.Stats{Asked: 50, Answered: 50}, s.client.Stats())
	})
}

// Each ends once, whichever comes first.
func TestTheContextEndsWhileSomethingElseHappens(t *testing.T) {
	for name, happens := range map[string]func(*scene, *conntest.Fake) *conntest.Fake{
		"an answer": func(_ *scene, peer *conntest.Fake) *conntest.Fake { peer.Deliver(text("1 A")); return peer },
		"a loss":    func(s *scene, peer *conntest.Fake) *conntest.Fake { peer.Fail(errGone); return s.accept() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.open(nil)
				peer := s.accept()
				for range 300 {
					ctx, cancel := context.WithCancel(t.Context())
					a := s.do(ctx, request("1 a"))
					go cancel()
					peer = happens(s, peer)
					require.True(t, a.ended())
				}
				stats := s.client.Stats()
				require.Equal(t, uint64(300), stats.Answered+stats.Lost+stats.GivenUp)
				require.Zero(t, stats.Reserved)
				if name == "an answer" {
					require.Equal(t, stats.GivenUp, stats.Late)
				}
			})
		})
	}
}

func TestUnsentKnowsOnlyItsOwnErrors(t *testing.T) {
	require.False(t, call.Unsent(nil))
	require.False(t, call.Unsent(errors.New("another")))
	require.True(t, call.Unsent(fmt.Errorf("ask: %w", &call.Error{Fate: reconnect.FateDropped, Err: errGone})))
	require.EqualError(t, &call.Error{Fate: reconnect.FateDropped, Err: errGone}, "request not sent: gone")
	require.EqualError(t, &call.Error{Fate: reconnect.FateUnknown, Err: errGone},
		"request perhaps sent, no response: gone")
	require.EqualError(t, &call.LostError{Fate: reconnect.FateDropped, Err: errGone}, "request not sent: gone")
}

// The same if it had to queue behind another message. A session has refused it then, and has not
// ended.
func TestABadMessageIsNotSentFromTheQueueEither(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.picky = true
		s.open(down(reconnect.WhenDownWait))
		peer := s.acceptHeld()
		s.ask("1 a")
		bad, pinned := request("2 b"), request("3 c")
		bad.Message.Type, pinned.Message.Type, pinned.Session = 0, 0, 1
		b, c := s.do(t.Context(), bad), s.do(t.Context(), pinned)
		peer.Release()
		b.wantError(reconnect.FateDropped, conn.ErrBadMessage)
		c.wantError(reconnect.FateDropped, conn.ErrBadMessage)
		require.Equal(t, call.Stats{InFlight: 1, Asked: 3, GivenUp: 2}, s.client.Stats())
	})
}

// The question has waited from one session to the next. What has ended the first does not matter any more.
func TestALostQuestionSaysWhyItsLastSessionHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait))
		first := s.acceptHeld()
		s.ask("1 a")
		b := s.ask("2 b")
		lose(first)
		b.wantWaiting()
		errTorn := errors.New("torn")
		next := conntest.NewFake(nil)
		next.FailWrite(errTorn)
		s.dial()(next, nil)
		lost := b.wantLost(reconnect.FateUnknown, 2)
		require.ErrorIs(t, lost.Err, errTorn)
		require.NotErrorIs(t, lost.Err, errGone)
	})
}

func TestAnErrorSaysByWhichSessionTheQuestionWent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		lose(s.accept())
		s.accept()
		for _, session := range []uint64{2, 0} {
			ctx, cancel := context.WithCancel(t.Context())
			if session == 0 {
				cancel()
			}
			a := s.do(ctx, request("1 a"))
			cancel()
			<-a.done
			var e *call.Error
			require.ErrorAs(t, a.err, &e)
			require.Equal(t, session, e.Session)
		}
	})
}

// The end of the old session leaves the next one ready: a question is written to it, and lost with it.
func TestQuestionBehindRepeatableOneGoesAfterRotation(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		old := s.accept()
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.acceptHeld()
		lose(old)
		s.repeat("1 a")
		b := s.ask("2 b")
		lose(next)
		b.wantLost(reconnect.FateDropped, 2)
	})
}
