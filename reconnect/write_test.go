package reconnect_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// wantFate asserts how a write ended.
func wantFate(t *testing.T, err error, fate reconnect.Fate, session uint64) {
	t.Helper()
	var w *reconnect.WriteError
	require.ErrorAs(t, err, &w)
	require.Equal(t, fate, w.Fate, err)
	require.Equal(t, session, w.Session, err)
}

// Promise 6.
func TestWriteFailsWhileNoSessionIsReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		err := c.Write(t.Context(), text("x"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		s.wantDial().refuse(errLost)
		err = c.Write(t.Context(), text("x"))
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.ErrorIs(t, err, errLost, "and why there is none")
	})
}

func TestWriteWaitsForTheNextSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.open(&o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept()
		require.NoError(t, <-wrote)
		require.Equal(t, []conn.Message{text("x")}, peer.Written())
	})
}

// Promise 7.
func TestTheContextOfAWriteEndsItsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.open(&o)
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
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
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

// Promise 6.
func TestAWriteWhoseConnectionDiesIsOfUnknownFate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		peer.Fail(errLost)
		wantFate(t, <-wrote, reconnect.FateUnknown, 1)
		next := s.wantDial().accept()
		require.Empty(t, next.Written(), "it is not sent again")
	})
}

// Promise 6: what was not begun may be sent by the next session.
func TestAWriteThatWasNotBegunWaitsForTheNextSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Hold()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Write(t.Context(), text("1")) }()
		synctest.Wait()
		go func() { second <- c.Write(t.Context(), text("2")) }()
		synctest.Wait()
		peer.Fail(errLost)
		wantFate(t, <-first, reconnect.FateUnknown, 1)
		next := s.wantDial().accept()
		require.NoError(t, <-second)
		require.Equal(t, []conn.Message{text("2")}, next.Written())
	})
}

// A write error costs the connection at once, also while the handler is busy.
func TestAFailedWriteEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		busy := make(chan struct{})
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Deliver(text("m"))
		peer.FailWrite(errLost)
		synctest.Wait()
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateUnknown, 1)
		require.True(t, peer.Closed())
		require.NotEqual(t, reconnect.StateReady, c.State())
		require.ErrorIs(t, c.Write(t.Context(), text("y")), reconnect.ErrNotReady)
		close(busy)
		s.wantDial()
	})
}

// No session can come while the handler runs, but its context ends with the one that
// was lost.
func TestAWriteInTheHandlerEndsWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		result := make(chan error, 1)
		var c *reconnect.Conn
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) {
			c.Redial(1, errLost)
			result <- c.Write(ctx, text("x"))
		}
		c = s.open(&o)
		s.wantDial().accept().Deliver(text("m"))
		err := <-result
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, context.Canceled)
		s.wantDial()
	})
}

func TestWriteInTheHandlerGoesOut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		c = s.open(&reconnect.Options{OnMessage: func(_ context.Context, m reconnect.Message) {
			require.NoError(t, c.Write(context.Background(), m.Message))
		}})
		peer := s.wantDial().accept()
		peer.Deliver(text("echo"))
		synctest.Wait()
		require.Equal(t, []conn.Message{text("echo")}, peer.Written())
	})
}

func TestWriteAfterCloseIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{WhenDown: reconnect.WhenDownWait})
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

// Promise 7.
func TestTheContextOfAReadEndsOnlyThatRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
			_, err := c.Read(ctx, nil)
			require.ErrorIs(t, err, errLost)
			cancel()
		}
		require.False(t, peer.Closed())
		deliver(peer, 1, 1)
		wantMessage(t, c, 1, "1")
	})
}

// Promise 7: a reader that waits for its turn is no prisoner either.
func TestReadersTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		got := make(chan string, 3)
		for range 2 {
			go func() {
				m, err := c.Read(t.Context(), nil)
				require.NoError(t, err)
				got <- string(m.Data)
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Read(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		deliver(peer, 1, 2)
		require.ElementsMatch(t, []string{"1", "2"}, []string{<-got, <-got})
	})
}

// lossy is a connection whose reader learns of the loss first, and whose writes
// were not begun.
type lossy struct{ *conntest.Fake }

func (l lossy) Write(m conn.Message) error {
	l.Fail(errLost)
	synctest.Wait()
	return l.Fake.Write(m)
}

// Promise 6: not even then is the fate of what was not begun unknown.
func TestWhatWasNotBegunIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		dial := func(context.Context) (conn.Conn, error) { return lossy{conntest.NewFake(nil)}, nil }
		c, err := reconnect.New(reconnect.DialFunc(dial), nil)
		require.NoError(t, err)
		defer quit(c)
		synctest.Wait()
		wantFate(t, c.Write(t.Context(), text("x")), reconnect.FateDropped, 1)
	})
}

// Promise 7: a context that has ended writes nothing.
func TestAWriteWhoseContextHasEndedIsDropped(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c := s.open(o)
			peer := s.wantDial().accept()
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

// The limit of a dial is not the deadline of a Write.
func TestARefusedWriteIsNotTakenForTheEndOfItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Minute))
		c := s.open(&o)
		s.wantDial() // and no answer: the dial runs into its limit
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		err := c.Write(context.Background(), text("m"))
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "deadline exceeded", "but the text says why")
		var limit interface{ Timeout() bool }
		require.ErrorAs(t, err, &limit, "and the cause can be had")
	})
}

// The end of one connection's context is not the end of that of a message.
func TestAWriteCutByAnotherContextIsNotTakenForTheEndOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Hold()
		wrote := write(t.Context(), c, "x")
		c.Redial(1, context.DeadlineExceeded)
		s.wantDial()
		err := <-wrote
		wantFate(t, err, reconnect.FateUnknown, 1)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
	})
}

// WriteTo is for an answer, which goes by the session that asked.
func TestWriteToWritesByOneSessionOnly(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c := s.open(o)
			peer := s.wantDial().accept()
			require.NoError(t, c.WriteTo(t.Context(), 1, text("a")))
			for _, other := range []uint64{2, 99} {
				err := c.WriteTo(t.Context(), other, text("b"))
				wantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, reconnect.ErrSessionLost)
			}
			require.Equal(t, "a", written(peer))
			peer.Fail(errLost)
			require.ErrorIs(t, c.WriteTo(t.Context(), 2, text("c")), reconnect.ErrSessionLost)
			next := s.wantDial().accept()
			require.ErrorIs(t, c.WriteTo(t.Context(), 1, text("d")), reconnect.ErrSessionLost)
			require.NoError(t, c.WriteTo(t.Context(), 2, text("e")))
			require.Equal(t, "e", written(next))
		})
	}
}

// Also a WriteTo that waits for its turn does not go by another session.
func TestAQueuedWriteToIsDroppedWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		synctest.Wait()
		wrote := make(chan error, 1)
		go func() { wrote <- c.WriteTo(t.Context(), 1, text("b")) }()
		synctest.Wait()
		peer.Fail(errLost)
		err := <-wrote
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Empty(t, written(s.wantDial().accept()))
	})
}

// Promise 11: a Write that waits for another is refused once Shutdown has begun.
func TestAWriteThatWaitsForAnotherDoesNotGoOutAfterShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Hold()
		first := write(t.Context(), c, "1")
		second := write(t.Context(), c, "2")
		shut := shutdown(t.Context(), c)
		peer.Release()
		require.NoError(t, <-first)
		require.ErrorIs(t, <-second, net.ErrClosed)
		require.NoError(t, <-shut)
		require.Equal(t, "1", written(peer))
	})
}
