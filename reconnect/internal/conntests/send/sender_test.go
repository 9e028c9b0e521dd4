package send_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 6.
func TestWriteFailsWhileNoSessionIsReady(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, d := s.Down(nil)
		err := c.Write(t.Context(), scene.Text("x"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		d.Refuse(scene.ErrLost)
		err = c.Write(t.Context(), scene.Text("x"))
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.ErrorIs(t, err, scene.ErrLost, "and why there is none")
	})
}

func TestWriteWaitsForTheNextSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, d := s.Down(&o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("x")) }()
		d.Refuse(scene.ErrLost)
		peer := s.WantDial().Accept()
		require.NoError(t, <-wrote)
		require.Equal(t, []conn.Message{scene.Text("x")}, peer.Written())
	})
}

// Promise 7.
func TestTheContextOfAWriteEndsItsWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, _ := s.Down(&o)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		err := c.Write(ctx, scene.Text("x"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, scene.ErrLost)
		require.Equal(t, time.Second, s.Now())
	})
}

// Promises 6 and 7: the write under way goes on, and the one that waits for it is dropped.
func TestTheContextOfAWriteNeverEndsAWriteUnderWay(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(nil)
		peer.Hold()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Write(ctx, scene.Text("1")) }()
		synctest.Wait()
		go func() { second <- c.Write(ctx, scene.Text("2")) }()
		synctest.Wait()
		cancel()
		scene.WantFate(t, <-second, reconnect.FateDropped, 0)
		peer.Release()
		require.NoError(t, <-first)
		require.Equal(t, []conn.Message{scene.Text("1")}, peer.Written())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 7: a Write whose context has ended writes nothing.
func TestAWriteWhoseContextHasEndedIsDropped(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			c, peer := s.Ready(o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			time.Sleep(time.Hour)
			err := c.Write(ctx, scene.Text("x"))
			scene.WantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, peer.Written())
		})
	}
}

// Promise 7: if a dial ran into its limit, the error of a Write is not
// context.DeadlineExceeded, because its own context has not ended.
func TestARefusedWriteIsNotTakenForTheEndOfItsContext(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Minute))
		c, _ := s.Down(&o) // and no answer: the dial runs into its limit
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		err := c.Write(context.Background(), scene.Text("m"))
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(nil)
		peer.Hold()
		wrote := scene.StartWrite(t.Context(), c, "x")
		c.Redial(s.Session, context.DeadlineExceeded)
		s.WantDial()
		err := <-wrote
		scene.WantFate(t, err, reconnect.FateUnknown, s.Session)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
	})
}

// Promise 6.
func TestAWriteWhoseConnectionDiesIsOfUnknownFate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, peer := s.Ready(&o)
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("x")) }()
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		scene.WantFate(t, <-wrote, reconnect.FateUnknown, s.Session)
		next := s.WantDial().Accept()
		require.Empty(t, next.Written(), "it is not sent again")
	})
}

// Promise 6: a message that was begun on one connection is not continued on the next, and its
// fate is unknown.
func TestAMessageCutInTwoIsUnknownAndNotSentAgain(t *testing.T) {
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, first := server.Ready(t, &o)
		first.Pipe.Window(conntest.ToServer, 5)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("half of it")) }()
		synctest.Wait()
		first.Pipe.Reset()
		var lost *reconnect.WriteError
		require.ErrorAs(t, <-wrote, &lost)
		require.Equal(t, reconnect.FateUnknown, lost.Fate)

		second := server.Next(t)
		require.NoError(t, c.Write(t.Context(), scene.Text("next")))
		line, err := second.In.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "next\n", line)
	})
}

// Promises 6 and 8: a server that stops reading.
func TestAWriteToAServerThatDoesNotReadIsCut(t *testing.T) {
	scene.InEachWSForm(t, nil, func(t *testing.T, server *scene.WSServer) {
		before := slices.Repeat([]conntest.Answer{server.Accept}, int(server.Form.Rotations))
		server.Next(append(before, server.AcceptWith(conntest.NeverRead), server.Accept)...)
		o := scene.WithPolicy(scene.Doubling{})
		o.WhenDown = reconnect.WhenDownWait
		c := server.Ready(t, &o)
		stuck := c.Write(t.Context(), scene.Text(strings.Repeat("x", 1<<20)))
		scene.WantFate(t, stuck, reconnect.FateUnknown, server.Session)
		require.ErrorAs(t, stuck, new(*conn.SlowMessageError))
		require.Equal(t, 10*time.Second, server.Now())
		synctest.Wait()
		require.ErrorAs(t, scene.WantSeam(t, c).Cause, new(*conn.SlowMessageError))
		require.NoError(t, c.Write(t.Context(), scene.Text("well again")))
		synctest.Wait()
		scene.WantMessage(t, c, server.Session+1, "well again")
	})
}

// Promise 6: the error of a Write has the cause for which its connection was cut.
func TestAWriteLearnsTheCauseOfACut(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("x")) }()
		synctest.Wait()
		c.Redial(s.Session, scene.ErrLost)
		want := &reconnect.WriteError{Fate: reconnect.FateUnknown, Session: s.Session, Err: scene.ErrLost}
		require.Equal(t, want, <-wrote)
	})
}

// A write error ends the session, a second later if OnMessage is busy, because more may have come.
func TestAFailedWriteEndsTheSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		busy := make(chan struct{})
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		c, peer := s.Settled(&o)
		peer.Deliver(scene.Text("m"))
		peer.FailWrite(scene.ErrLost)
		synctest.Wait()
		scene.WantFate(t, c.Write(t.Context(), scene.Text("x")), reconnect.FateUnknown, s.Session)
		require.NotEqual(t, reconnect.StateReady, c.State())
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, peer.Closed())
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("y")), reconnect.ErrNotReady)
		close(busy)
		s.WantDial()
	})
}

// Promise 6: a message of which not a byte was written may go by the next session.
func TestAWriteThatWasNotBegunWaitsForTheNextSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c, peer := s.Ready(&o)
		peer.Hold()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Write(t.Context(), scene.Text("1")) }()
		synctest.Wait()
		go func() { second <- c.Write(t.Context(), scene.Text("2")) }()
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		scene.WantFate(t, <-first, reconnect.FateUnknown, s.Session)
		next := s.WantDial().Accept()
		require.NoError(t, <-second)
		require.Equal(t, []conn.Message{scene.Text("2")}, next.Written())
	})
}

// Promise 6: a message of which not a byte was written is dropped, and the error names the
// session that tried.
func TestAWriteThatWasNotBegunFailsIfItMayNotWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.FailWrite(fmt.Errorf("%w: %w", conn.ErrNotWritten, scene.ErrLost))
		err := c.Write(t.Context(), scene.Text("x"))
		scene.WantFate(t, err, reconnect.FateDropped, s.Session)
		require.ErrorIs(t, err, scene.ErrLost)
	})
}

// Promise 6: a write that did not begin is not of unknown fate, also if the reader learnt of
// the loss first.
func TestWhatWasNotBegunIsDropped(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Wrap = func(peer *conntest.Fake) conn.Conn { return losingConn{peer} }
		c, _ := s.Ready(nil)
		scene.WantFate(t, c.Write(t.Context(), scene.Text("x")), reconnect.FateDropped, s.Session)
	})
}

// losingConn is a connection that is lost before each write begins.
type losingConn struct{ *conntest.Fake }

func (l losingConn) Write(m conn.Message) error {
	l.Fail(scene.ErrLost)
	synctest.Wait()
	return l.Fake.Write(m)
}

// Promise 6: a message that the connection refuses costs neither the session nor the next
// messages.
func TestABadMessageHarmsNothing(t *testing.T) {
	scene.InEachWSForm(t, nil, func(t *testing.T, server *scene.WSServer) {
		o := reconnect.Options{WhenDown: reconnect.WhenDownWait}
		c := server.Ready(t, &o)
		err := c.Write(t.Context(), conn.Message{Data: []byte("of no type")})
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), scene.Text("x")))
		require.Equal(t, server.Session, c.Stats().Sessions)
	})
}

// Promise 6: a message that the Framer refuses costs nothing but itself.
func TestABadMessageDoesNotCostTheConnection(t *testing.T) {
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		c, peer := server.Ready(t, nil)
		err := c.Write(t.Context(), scene.Text("two\nlines"))
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), scene.Text("one")))
		line, err := peer.In.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "one\n", line)
		require.Equal(t, server.Session, c.Status().Session)
	})
}

func TestAFramerOfTheUser(t *testing.T) {
	scene.InEachFramedForm(t, bars{}, func(t *testing.T, server *scene.FramedServer) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, peer := server.Ready(t, &o)
		require.NoError(t, c.Write(t.Context(), scene.Text("12345678")))
		got, err := peer.In.Peek(8)
		require.NoError(t, err)
		require.Equal(t, "12345678", string(got))
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("1")), conn.ErrBadMessage)

		peer.Say(t, "abcdefghijklmnopqrst")
		peer.Close()
		scene.WantMessage(t, c, server.Session, "abcdefgh")
		scene.WantMessage(t, c, server.Session, "ijklmnop")
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, io.ErrUnexpectedEOF)
	})
}

func TestWriteInTheHandlerGoesOut(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var write func(context.Context, conn.Message) error
		c, peer := s.Ready(&reconnect.Options{OnMessage: func(_ context.Context, m reconnect.Message) {
			require.NoError(t, write(context.Background(), m.Message))
		}})
		write = c.Write
		peer.Deliver(scene.Text("echo"))
		time.Sleep(10 * time.Second) // Drain, in which OverlapHold holds the message
		synctest.Wait()
		require.Equal(t, []conn.Message{scene.Text("echo")}, peer.Written())
	})
}

// No session can come while OnMessage runs, but its context ends with the session that was
// lost, and with it the Write.
func TestAWriteInTheHandlerEndsWithItsSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		result := make(chan error, 1)
		var c *reconnect.Conn
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) {
			c.Redial(s.Session, scene.ErrLost)
			result <- c.Write(ctx, scene.Text("x"))
		}
		opened, peer := s.Ready(&o)
		c = opened
		peer.Deliver(scene.Text("m"))
		err := <-result
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, context.Canceled)
		s.WantDial()
	})
}

// WriteTo is for an answer, which goes by the session that asked.
func TestWriteToWritesByOneSessionOnly(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			c, peer := s.Ready(o)
			next := s.Session + 1
			require.NoError(t, c.WriteTo(t.Context(), s.Session, scene.Text("a")))
			for _, other := range []uint64{next, 99} {
				err := c.WriteTo(t.Context(), other, scene.Text("b"))
				scene.WantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, reconnect.ErrSessionLost)
			}
			require.Equal(t, "a", scene.Written(peer))
			peer.Fail(scene.ErrLost)
			require.ErrorIs(t, c.WriteTo(t.Context(), next, scene.Text("c")), reconnect.ErrSessionLost)
			nextPeer := s.WantDial().Accept()
			require.ErrorIs(t, c.WriteTo(t.Context(), s.Session, scene.Text("d")), reconnect.ErrSessionLost)
			require.NoError(t, c.WriteTo(t.Context(), next, scene.Text("e")))
			require.Equal(t, "e", scene.Written(nextPeer))
		})
	}
}

// A session that is lost has ended, although OnMessage still holds up what follows its loss.
func TestWriteToASessionThatWasJustLostSaysSo(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			var c *reconnect.Conn
			var wrote, sent error
			o.OnMessage = func(ctx context.Context, _ reconnect.Message) {
				c.Redial(s.Session, scene.ErrLost)
				wrote = c.WriteTo(context.WithoutCancel(ctx), s.Session, scene.Text("a"))
				sent = c.Send(reconnect.Outgoing{Message: scene.Text("b"), Session: s.Session})
			}
			opened, peer := s.Ready(o)
			c = opened
			peer.Deliver(scene.Text("m"))
			s.WantDial()
			scene.WantFate(t, wrote, reconnect.FateDropped, 0)
			require.ErrorIs(t, wrote, reconnect.ErrSessionLost)
			require.Error(t, sent)
		})
	}
}

func TestWriteAfterCloseIsDropped(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, _ := s.Down(&reconnect.Options{WhenDown: reconnect.WhenDownWait})
		waiting := make(chan error, 1)
		go func() { waiting <- c.Write(t.Context(), scene.Text("x")) }()
		synctest.Wait()
		c.Close()
		for _, err := range []error{<-waiting, c.Write(t.Context(), scene.Text("y"))} {
			scene.WantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, net.ErrClosed)
		}
	})
}

func TestWriteFailsAsSoonAsShutdownHasBegun(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(nil)
		peer.Mute()
		go c.Shutdown(t.Context())
		synctest.Wait()
		scene.WantFate(t, c.Write(t.Context(), scene.Text("x")), reconnect.FateDropped, 0)
		require.Zero(t, s.Now())
	})
}

// Promise 11: a Write that waits for another is refused when Shutdown begins.
func TestAWriteThatWaitsForAnotherDoesNotGoOutAfterShutdown(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(nil)
		peer.Hold()
		first := scene.StartWrite(t.Context(), c, "1")
		second := scene.StartWrite(t.Context(), c, "2")
		shut := scene.StartShutdown(t.Context(), c)
		peer.Release()
		require.NoError(t, <-first)
		require.ErrorIs(t, <-second, net.ErrClosed)
		require.NoError(t, <-shut)
		require.Equal(t, "1", scene.Written(peer))
	})
}

// bars is the Framer of a user: each message has exactly eight bytes.
type bars struct{}

func (bars) AppendFrame(dst, message []byte) ([]byte, error) {
	if len(message) != 8 {
		return dst, errors.New("a bar has eight bytes")
	}
	return append(dst, message...), nil
}

func (bars) ReadFrame(r *bufio.Reader, buf []byte, _ int) ([]byte, error) {
	return conn.ReadBody(r, buf[:0], 8)
}
