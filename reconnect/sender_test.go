package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 6.
func TestWriteFailsWhileNoSessionIsReady(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, d := s.down(nil)
		err := c.Write(t.Context(), text("x"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		d.refuse(errLost)
		err = c.Write(t.Context(), text("x"))
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.ErrorIs(t, err, errLost, "and why there is none")
	})
}

func TestWriteWaitsForTheNextSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, d := s.down(&o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		d.refuse(errLost)
		peer := s.wantDial().accept()
		require.NoError(t, <-wrote)
		require.Equal(t, []conn.Message{text("x")}, peer.Written())
	})
}

// Promise 7.
func TestTheContextOfAWriteEndsItsWait(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, _ := s.down(&o)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		err := c.Write(ctx, text("x"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, errLost)
		require.Equal(t, time.Second, s.now())
	})
}

// Promises 6 and 7: the write under way goes on, and the one that waits for it is dropped.
func TestTheContextOfAWriteNeverEndsAWriteUnderWay(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(nil)
		peer.Hold()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Write(ctx, text("1")) }()
		synctest.Wait()
		go func() { second <- c.Write(ctx, text("2")) }()
		synctest.Wait()
		cancel()
		wantFate(t, <-second, reconnect.FateDropped, 0)
		peer.Release()
		require.NoError(t, <-first)
		require.Equal(t, []conn.Message{text("1")}, peer.Written())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 7: a Write whose context has ended writes nothing.
func TestAWriteWhoseContextHasEndedIsDropped(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c, peer := s.ready(o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			time.Sleep(time.Hour)
			err := c.Write(ctx, text("x"))
			wantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, peer.Written())
		})
	}
}

// Promise 7: if a dial ran into its limit, the error of a Write is not
// context.DeadlineExceeded, because its own context has not ended.
func TestARefusedWriteIsNotTakenForTheEndOfItsContext(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Minute))
		c, _ := s.down(&o) // and no answer: the dial runs into its limit
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		err := c.Write(context.Background(), text("m"))
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "deadline exceeded", "but the text says why")
		var limit interface{ Timeout() bool }
		require.ErrorAs(t, err, &limit, "and the cause can be had")
	})
}

// Promise 7: if a session ended because of another context, the error of a Write is not that of
// a context.
func TestAWriteCutByAnotherContextIsNotTakenForTheEndOfItsOwn(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(nil)
		peer.Hold()
		wrote := startWrite(t.Context(), c, "x")
		c.Redial(s.session, context.DeadlineExceeded)
		s.wantDial()
		err := <-wrote
		wantFate(t, err, reconnect.FateUnknown, s.session)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
	})
}

// Promise 6.
func TestAWriteWhoseConnectionDiesIsOfUnknownFate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, peer := s.ready(&o)
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		peer.Fail(errLost)
		wantFate(t, <-wrote, reconnect.FateUnknown, s.session)
		next := s.wantDial().accept()
		require.Empty(t, next.Written(), "it is not sent again")
	})
}

// Promise 6: a message that was begun on one connection is not continued on the next, and its
// fate is unknown.
func TestAMessageCutInTwoIsUnknownAndNotSentAgain(t *testing.T) {
	inEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, first := server.ready(t, &o)
		first.pipe.Window(conntest.ToServer, 5)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("half of it")) }()
		synctest.Wait()
		first.pipe.Reset()
		var lost *reconnect.WriteError
		require.ErrorAs(t, <-wrote, &lost)
		require.Equal(t, reconnect.FateUnknown, lost.Fate)

		second := server.next(t)
		require.NoError(t, c.Write(t.Context(), text("next")))
		line, err := second.in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "next\n", line)
	})
}

// Promises 6 and 8: a server that stops reading.
func TestAWriteToAServerThatDoesNotReadIsCut(t *testing.T) {
	inEachWSForm(t, nil, func(t *testing.T, server *wsServer) {
		before := slices.Repeat([]conntest.Answer{server.Accept}, int(server.form.rotations))
		server.Next(append(before, server.AcceptWith(conntest.NeverRead), server.Accept)...)
		o := withPolicy(doubling{})
		o.WhenDown = reconnect.WhenDownWait
		c := server.ready(t, &o)
		stuck := c.Write(t.Context(), text(strings.Repeat("x", 1<<20)))
		wantFate(t, stuck, reconnect.FateUnknown, server.session)
		require.ErrorAs(t, stuck, new(*conn.SlowMessageError))
		require.Equal(t, 10*time.Second, server.now())
		synctest.Wait()
		require.ErrorAs(t, wantSeam(t, c).Cause, new(*conn.SlowMessageError))
		require.NoError(t, c.Write(t.Context(), text("well again")))
		synctest.Wait()
		wantMessage(t, c, server.session+1, "well again")
	})
}

// Promise 6: the error of a Write has the cause for which its connection was cut.
func TestAWriteLearnsTheCauseOfACut(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		c, peer := s.ready(&o)
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		c.Redial(s.session, errLost)
		require.Equal(t, &reconnect.WriteError{Fate: reconnect.FateUnknown, Session: s.session, Err: errLost}, <-wrote)
	})
}

// A write error ends the session, a second later if OnMessage is busy, because more may have come.
func TestAFailedWriteEndsTheSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		busy := make(chan struct{})
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		c, peer := s.settled(&o)
		peer.Deliver(text("m"))
		peer.FailWrite(errLost)
		synctest.Wait()
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateUnknown, s.session)
		require.NotEqual(t, reconnect.StateReady, c.State())
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, peer.Closed())
		require.ErrorIs(t, c.Write(t.Context(), text("y")), reconnect.ErrNotReady)
		close(busy)
		s.wantDial()
	})
}

// Promise 6: a message of which not a byte was written may go by the next session.
func TestAWriteThatWasNotBegunWaitsForTheNextSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, peer := s.ready(&o)
		peer.Hold()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Write(t.Context(), text("1")) }()
		synctest.Wait()
		go func() { second <- c.Write(t.Context(), text("2")) }()
		synctest.Wait()
		peer.Fail(errLost)
		wantFate(t, <-first, reconnect.FateUnknown, s.session)
		next := s.wantDial().accept()
		require.NoError(t, <-second)
		require.Equal(t, []conn.Message{text("2")}, next.Written())
	})
}

// Promise 6: a message of which not a byte was written is dropped, and the error names the
// session that tried.
func TestAWriteThatWasNotBegunFailsIfItMayNotWait(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		c, peer := s.ready(&o)
		peer.FailWrite(fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost))
		err := c.Write(t.Context(), text("x"))
		wantFate(t, err, reconnect.FateDropped, s.session)
		require.ErrorIs(t, err, errLost)
	})
}

// Promise 6: a write that did not begin is not of unknown fate, also if the reader learnt of
// the loss first.
func TestWhatWasNotBegunIsDropped(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.wrap = func(peer *conntest.Fake) conn.Conn { return losingConn{peer} }
		c, _ := s.ready(nil)
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateDropped, s.session)
	})
}

// losingConn is a connection that is lost before each write begins.
type losingConn struct{ *conntest.Fake }

func (l losingConn) Write(m conn.Message) error {
	l.Fail(errLost)
	synctest.Wait()
	return l.Fake.Write(m)
}

// Promise 6: a message that the connection refuses costs neither the session nor the next
// messages.
func TestABadMessageHarmsNothing(t *testing.T) {
	inEachWSForm(t, nil, func(t *testing.T, server *wsServer) {
		o := reconnect.Options{WhenDown: reconnect.WhenDownWait}
		c := server.ready(t, &o)
		err := c.Write(t.Context(), conn.Message{Data: []byte("of no type")})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), text("x")))
		require.Equal(t, server.session, c.Stats().Sessions)
	})
}

// Promise 6: a message that the Framer refuses costs nothing but itself.
func TestABadMessageDoesNotCostTheConnection(t *testing.T) {
	inEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		c, peer := server.ready(t, nil)
		err := c.Write(t.Context(), text("two\nlines"))
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), text("one")))
		line, err := peer.in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "one\n", line)
		require.Equal(t, server.session, c.Status().Session)
	})
}

func TestAFramerOfTheUser(t *testing.T) {
	inEachFramedForm(t, bars{}, func(t *testing.T, server *framedServer) {
		o := withPolicy(every(time.Second))
		c, peer := server.ready(t, &o)
		require.NoError(t, c.Write(t.Context(), text("12345678")))
		got, err := peer.in.Peek(8)
		require.NoError(t, err)
		require.Equal(t, "12345678", string(got))
		require.ErrorIs(t, c.Write(t.Context(), text("1")), conn.ErrBadMessage)

		peer.say(t, "abcdefghijklmnopqrst")
		peer.Close()
		wantMessage(t, c, server.session, "abcdefgh")
		wantMessage(t, c, server.session, "ijklmnop")
		require.ErrorIs(t, wantSeam(t, c).Cause, io.ErrUnexpectedEOF)
	})
}

func TestWriteInTheHandlerGoesOut(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var write func(context.Context, conn.Message) error
		c, peer := s.ready(&reconnect.Options{OnMessage: func(_ context.Context, m reconnect.Message) {
			require.NoError(t, write(context.Background(), m.Message))
		}})
		write = c.Write
		peer.Deliver(text("echo"))
		time.Sleep(10 * time.Second) // Drain, in which OverlapHold holds the message
		synctest.Wait()
		require.Equal(t, []conn.Message{text("echo")}, peer.Written())
	})
}

// No session can come while OnMessage runs, but its context ends with the session that was
// lost, and with it the Write.
func TestAWriteInTheHandlerEndsWithItsSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		result := make(chan error, 1)
		var c *reconnect.Conn
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) {
			c.Redial(s.session, errLost)
			result <- c.Write(ctx, text("x"))
		}
		opened, peer := s.ready(&o)
		c = opened
		peer.Deliver(text("m"))
		err := <-result
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, context.Canceled)
		s.wantDial()
	})
}

// WriteTo is for an answer, which goes by the session that asked.
func TestWriteToWritesByOneSessionOnly(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c, peer := s.ready(o)
			next := s.session + 1
			require.NoError(t, c.WriteTo(t.Context(), s.session, text("a")))
			for _, other := range []uint64{next, 99} {
				err := c.WriteTo(t.Context(), other, text("b"))
				wantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, reconnect.ErrSessionLost)
			}
			require.Equal(t, "a", written(peer))
			peer.Fail(errLost)
			require.ErrorIs(t, c.WriteTo(t.Context(), next, text("c")), reconnect.ErrSessionLost)
			nextPeer := s.wantDial().accept()
			require.ErrorIs(t, c.WriteTo(t.Context(), s.session, text("d")), reconnect.ErrSessionLost)
			require.NoError(t, c.WriteTo(t.Context(), next, text("e")))
			require.Equal(t, "e", written(nextPeer))
		})
	}
}

// A session that is lost has ended, although OnMessage still holds up what follows its loss.
func TestWriteToASessionThatWasJustLostSaysSo(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			var c *reconnect.Conn
			var wrote, sent error
			o.OnMessage = func(ctx context.Context, _ reconnect.Message) {
				c.Redial(s.session, errLost)
				wrote = c.WriteTo(context.WithoutCancel(ctx), s.session, text("a"))
				sent = c.Send(reconnect.Outgoing{Message: text("b"), Session: s.session})
			}
			opened, peer := s.ready(o)
			c = opened
			peer.Deliver(text("m"))
			s.wantDial()
			wantFate(t, wrote, reconnect.FateDropped, 0)
			require.ErrorIs(t, wrote, reconnect.ErrSessionLost)
			require.Error(t, sent)
		})
	}
}

func TestWriteAfterCloseIsDropped(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, _ := s.down(&reconnect.Options{WhenDown: reconnect.WhenDownWait})
		waiting := make(chan error, 1)
		go func() { waiting <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		c.Close()
		for _, err := range []error{<-waiting, c.Write(t.Context(), text("y"))} {
			wantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, net.ErrClosed)
		}
	})
}

func TestWriteFailsAsSoonAsShutdownHasBegun(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(nil)
		peer.Mute()
		go c.Shutdown(t.Context())
		synctest.Wait()
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateDropped, 0)
		require.Zero(t, s.now())
	})
}

// Promise 11: a Write that waits for another is refused when Shutdown begins.
func TestAWriteThatWaitsForAnotherDoesNotGoOutAfterShutdown(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(nil)
		peer.Hold()
		first := startWrite(t.Context(), c, "1")
		second := startWrite(t.Context(), c, "2")
		shut := startShutdown(t.Context(), c)
		peer.Release()
		require.NoError(t, <-first)
		require.ErrorIs(t, <-second, net.ErrClosed)
		require.NoError(t, <-shut)
		require.Equal(t, "1", written(peer))
	})
}
