package call_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// The tests of request.go and queue.go that are about questions which go again.

func TestRepeatableQuestionsGoAgainInTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		var all []*asked
		var questions []string
		for i := range 20 {
			questions = append(questions, fmt.Sprintf("%d q", i))
			all = append(all, s.repeat(questions[i]))
		}
		for range 3 { // as often as it takes
			wantWritten(t, peer, questions...)
			lose(peer)
			peer = s.accept()
		}
		wantWritten(t, peer, questions...)
		for i, a := range all {
			a.wantWaiting()
			answer(peer, questions[i])
			a.wantAnswer(questions[i])
			require.Equal(t, uint64(4), a.answer.Session)
		}
		require.Equal(t, call.Stats{Asked: 20, Answered: 20, Repeated: 60}, s.client.Stats())
	})
}

// Else a newer "set x" could be overtaken by an older one.
func TestANewQuestionGoesBehindThoseThatGoAgain(t *testing.T) {
	for _, policy := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.open(down(policy))
			peer := s.accept()
			s.repeat("1 a")
			s.repeat("2 b")
			lose(peer)
			early := s.ask("3 early")
			peer = s.accept()
			late := s.ask("4 late")
			again := s.repeat("5 again")
			if policy == reconnect.WhenDownFail {
				early.wantLost(reconnect.FateDropped, 0)
				wantWritten(t, peer, "1 a", "2 b", "4 late", "5 again")
			} else {
				wantWritten(t, peer, "1 a", "2 b", "3 early", "4 late", "5 again")
			}
			answer(peer, "4 L", "5 A")
			late.wantAnswer("4 L")
			again.wantAnswer("5 A")
		})
	}
}

// The same while the first of them is being written.
func TestANewQuestionWaitsUntilThoseThatGoAgainAreWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		s.repeat("1 a")
		s.repeat("2 b")
		lose(peer)
		next := s.acceptHeld()
		late, again := s.ask("3 late"), s.repeat("4 again")
		require.Empty(t, next.Written())
		next.Release()
		synctest.Wait()
		got := next.Written()
		require.Len(t, got, 4)
		require.Equal(t, "1 a", string(got[0].Data))
		require.Equal(t, "2 b", string(got[1].Data))
		answer(next, "3 L", "4 A")
		late.wantAnswer("3 L")
		again.wantAnswer("4 A")
	})
}

// A request for one session is sent in that session immediately, or not at all. All others wait for the line.
func TestRequestForOneSessionDoesNotWaitForLine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(down(reconnect.WhenDownWait)) // so that writes are queued in order
		peer := s.accept()
		s.repeat("1 a")
		s.repeat("2 b")
		lose(peer)
		next := s.acceptHeld() // which is writing 1
		s.ask("3 c").wantWaiting()
		now, old := request("4 d"), request("5 e")
		now.Session, old.Session = 2, 1
		s.do(t.Context(), now).wantWaiting()
		s.do(t.Context(), old).wantLost(reconnect.FateDropped, 1)
		next.Release()
		wantWritten(t, next, "1 a", "4 d", "2 b", "3 c")
	})
}

// Under WhenDownFail a question that waits for the line must not wait for another session.
func TestAQuestionBehindTheLineFailsWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		first := s.repeat("1 a")
		lose(peer)
		next := s.acceptHeld()
		late := s.ask("2 late")
		late.wantWaiting()
		lose(next)
		late.wantLost(reconnect.FateDropped, 0)
		first.wantWaiting()
		peer = s.accept()
		answer(peer, "1 A")
		first.wantAnswer("1 A")
	})
}

func TestRepeatableQuestionsWaitInOrderWhateverWhenDownSays(t *testing.T) {
	for _, policy := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.open(down(policy))
			s.refuse(errGone)
			for session := range 2 {
				var questions []string
				var all []*asked
				for i := range 20 {
					questions = append(questions, fmt.Sprintf("%d of %d", i, session))
					all = append(all, s.repeat(questions[i]))
				}
				peer := s.accept()
				wantWritten(t, peer, questions...)
				answer(peer, questions...)
				for i, a := range all {
					a.wantAnswer(questions[i])
				}
				lose(peer)
			}
			require.Equal(t, call.Stats{Asked: 40, Answered: 40}, s.client.Stats())
		})
	}
}

// Otherwise each question would wake, look whose turn it is, and sleep again.
func TestALossWakesOneQuestionAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		for i := range 20 {
			s.repeat(fmt.Sprintf("%d q", i))
		}
		asleep := func() int {
			stacks := make([]byte, 1<<20)
			return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "]).awaitResponse(")
		}
		require.Equal(t, 20, asleep())
		lose(peer)
		require.Equal(t, 19, asleep())
		next := s.acceptHeld()
		require.Equal(t, 19, asleep(), "the first is being written")
		next.Release()
		synctest.Wait()
		require.Equal(t, 20, asleep(), "all have gone again")
	})
}

// The next session is ready at once then.
func TestAfterARotationRepeatableQuestionsGoAgainInTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		old := s.accept()
		var questions []string
		for i := range 20 {
			questions = append(questions, fmt.Sprintf("%d q", i))
			s.repeat(questions[i])
		}
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		lose(old)
		wantWritten(t, next, questions...)
	})
}

// A question that leaves the line gives the turn to the next. A question that may have been sent has an
// unknown fate.
func TestTheContextEndsAQuestionInTheLine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		r := request("1 a")
		r.Repeatable = true
		first, second := s.do(ctx, r), s.repeat("2 b")
		lose(peer)
		r = request("3 c")
		r.Repeatable = true
		unsent := s.do(ctx, r)
		<-first.done
		first.wantError(reconnect.FateUnknown, context.DeadlineExceeded)
		unsent.wantError(reconnect.FateDropped, context.DeadlineExceeded)
		second.wantWaiting()
		peer = s.accept()
		wantWritten(t, peer, "2 b")
		s.ask("1 new").wantWaiting()
		require.Zero(t, s.client.Stats().Reserved, "the session that could answer has ended")
	})
}

// Also if there is only one before it.
func TestANewQuestionGoesBehindTheOneThatGoesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		s.repeat("1 a")
		lose(peer)
		peer = s.acceptHeld()
		s.repeat("2 b")
		peer.Release()
		wantWritten(t, peer, "1 a", "2 b")
	})
}

// The same for one that has not the turn, and sleeps.
func TestTheContextEndsAQuestionBehindTheFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		s.repeat("1 a")
		ctx, cancel := context.WithCancel(t.Context())
		r := request("2 b")
		r.Repeatable = true
		second := s.do(ctx, r)
		s.repeat("3 c")
		lose(peer)
		cancel()
		second.wantError(reconnect.FateUnknown, context.Canceled)
		require.Equal(t, call.Stats{InFlight: 2, Asked: 3, GivenUp: 1}, s.client.Stats())
		wantWritten(t, s.accept(), "1 a", "3 c")
	})
}

// A repeatable question of which a part was written goes again too, and keeps its place.
func TestAQuestionThatWasCutGoesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		first := s.repeat("1 a")
		peer.FailWrite(io.ErrUnexpectedEOF)
		second := s.repeat("2 b")
		peer = s.accept()
		wantWritten(t, peer, "1 a", "2 b")
		answer(peer, "1 A", "2 B")
		first.wantAnswer("1 A")
		second.wantAnswer("2 B")
	})
}

// lateWrite is a connection whose write of a question returns after the end of its session.
type lateWrite struct {
	conn.Conn
	question string
	ended    chan struct{}
}

func (s lateWrite) Write(m conn.Message) error {
	err := s.Conn.Write(m)
	if string(m.Data) == s.question {
		<-s.ended
	}
	return err
}

// The session is lost before the write of its second question has returned. That question has its turn after the first.
func TestAQuestionWhoseSessionEndsDuringItsWriteKeepsItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		ended := make(chan struct{})
		s.wrap = func(c conn.Conn) conn.Conn { return lateWrite{c, "2 b", ended} }
		s.open(nil)
		peer := s.accept()
		first, second := s.repeat("1 a"), s.repeat("2 b")
		lose(peer)
		close(ended)
		peer = s.accept()
		wantWritten(t, peer, "1 a", "2 b")
		answer(peer, "1 A", "2 B")
		first.wantAnswer("1 A")
		second.wantAnswer("2 B")
	})
}

// A layer before the Client is slow in Lost, so that the Client is notified of the loss after the writes
// of its questions have failed.
func TestRepeatableQuestionsGoAgainInTheirOrderAfterALateLost(t *testing.T) {
	for _, policy := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := down(policy)
			o.Layers = []*reconnect.Layer{{Lost: func(uint64, error) { time.Sleep(time.Second) }}}
			s.open(o)
			peer := s.acceptHeld()
			var questions []string
			var all []*asked
			for i := range 20 {
				questions = append(questions, fmt.Sprintf("%d q", i))
				all = append(all, s.repeat(questions[i]))
			}
			lose(peer)
			peer = s.accept()
			wantWritten(t, peer, questions...)
			answer(peer, questions...)
			for i, a := range all {
				a.wantAnswer(questions[i])
			}
		})
	}
}

// causeContext calls a function when context.Cause looks for its cause.
type causeContext struct {
	context.Context
	look func()
}

func (c causeContext) Value(key any) any {
	if c.Err() != nil {
		c.look()
	}
	return c.Context.Value(key)
}

// The ID belongs to a request that was given up in the line, until its Do returns.
func TestIDIsInUseUntilDoReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(nil)
		peer := s.accept()
		s.repeat("1 a")
		parent, cancel := context.WithCancel(t.Context())
		early := &asked{t: t, done: make(chan struct{})}
		ctx := causeContext{parent, sync.OnceFunc(func() {
			defer close(early.done)
			early.answer, early.err = s.client.Do(t.Context(), request("2 early"))
		})}
		r := request("2 b")
		r.Repeatable = true
		second := s.do(ctx, r)
		lose(peer)
		cancel()
		<-second.done
		second.wantError(reconnect.FateUnknown, context.Canceled)
		early.wantError(reconnect.FateDropped, call.ErrIDInUse)
		next := s.repeat("2 next")
		peer = s.accept()
		wantWritten(t, peer, "1 a", "2 next")
		answer(peer, "2 N")
		next.wantAnswer("2 N")
	})
}
