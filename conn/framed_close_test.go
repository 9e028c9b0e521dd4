package conn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// closing closes politely in the background, for at most d.
func (s *strand) closing(t *testing.T, d time.Duration) (wait func() error) {
	return background(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return s.Close(ctx, 1000, "ignored")
	})
}

// hear returns all that the peer gets.
func (s *strand) hear(t *testing.T) string {
	t.Helper()
	got, err := io.ReadAll(s.peer)
	require.NoError(t, err)
	return string(got)
}

func TestCloseHalfClosesAndWaitsForThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		require.NoError(t, s.Write(bytesOf("last")))
		wait := s.closing(t, time.Minute)
		require.Equal(t, "last\n", s.hear(t))
		s.send(t, "what is sent now is thrown away\nand so is ha")
		time.Sleep(3 * second)
		require.True(t, s.pipe.Live())
		s.peer.Close()
		takes(t, 0, func() { require.NoError(t, wait()) })
		_, err := s.raw.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = s.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestBeforeBlockIsCalledBeforeAWaitForCloseOfAFramed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		waits := 0
		s.BeforeBlock(func() { waits++ })
		wait := s.closing(t, time.Minute)
		synctest.Wait()
		require.Zero(t, waits, "Close reads")
		read := s.reading()
		synctest.Wait()
		require.Equal(t, 1, waits)
		s.peer.Close()
		require.NoError(t, wait())
		require.ErrorIs(t, read(), net.ErrClosed)
	})
}

// Close ends our direction, too.
func TestCloseWriteEndsItsTurnToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		require.NoError(t, s.CloseWrite())
		s.peer.Close()
		takes(t, 0, func() { require.NoError(t, s.Close(t.Context(), 1000, "")) })
	})
}

// The Read under way sees the end in Close's place, or a last message.
func TestCloseWhileSomebodyReads(t *testing.T) {
	for name, test := range map[string]struct {
		says string
		want error
	}{"hangs up": {"", net.ErrClosed}, "says goodbye": {"bye\nmore\n", nil}, "leaves a half": {"by", net.ErrClosed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := framed(t, conn.Lines{}, nil)
				read := s.reading()
				synctest.Wait()
				wait := s.closing(t, time.Minute)
				s.hear(t)
				s.send(t, test.says)
				s.peer.Close()
				require.NoError(t, wait())
				require.ErrorIs(t, read(), test.want)
			})
		})
	}
}

func TestCloseOfASilentPeerEndsWithItsContext(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := framed(t, conn.Lines{}, nil)
			read := func() error { return net.ErrClosed }
			if reads {
				read = s.reading()
				synctest.Wait()
			}
			takes(t, 7*second, func() { require.ErrorIs(t, s.closing(t, 7*second)(), context.DeadlineExceeded) })
			require.ErrorIs(t, read(), net.ErrClosed)
		})
	}
}

// A peer that floods us is not listened to for ever.
func TestCloseOfAPeerThatDoesNotStopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		flood := background(func() error {
			for {
				if _, err := s.peer.Write(make([]byte, 1000)); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		})
		takes(t, 10*second, func() { require.ErrorIs(t, s.closing(t, 10*second)(), context.DeadlineExceeded) })
		require.Error(t, flood())
	})
}

// A message under way is not cut in two.
func TestCloseWaitsForTheWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.pipe.Window(conntest.ToServer, 10)
		write := s.writing(99)
		synctest.Wait()
		wait := s.closing(t, time.Minute)
		time.Sleep(5 * second)
		s.pipe.Window(conntest.ToServer, -1)
		require.NoError(t, write())
		require.Len(t, s.hear(t), 100)
		s.peer.Close()
		require.NoError(t, wait())
	})
}

func TestCloseEndsWithItsContextBehindAStuckWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.pipe.Window(conntest.ToServer, 10)
		write := s.writing(99)
		synctest.Wait()
		takes(t, 5*second, func() { require.ErrorIs(t, s.closing(t, 5*second)(), context.DeadlineExceeded) })
		require.ErrorIs(t, write(), net.ErrClosed)
	})
}

func TestCloseOfAPeerThatResetsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		wait := s.closing(t, time.Minute)
		synctest.Wait()
		s.pipe.Reset()
		err := wait()
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NotErrorIs(t, err, net.ErrClosed)
	})
}

// After a message has been read, none is under way.
func TestMessageTimeoutDoesNotHoldForTheWaitOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{MessageTimeout: second}})
		s.send(t, "one\n")
		_, err := s.Read(nil)
		require.NoError(t, err)
		wait := s.closing(t, time.Minute)
		time.AfterFunc(10*second, func() { s.peer.Close() })
		takes(t, 10*second, func() { require.NoError(t, wait()) })
	})
}

func TestCloseNowUnblocksEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.pipe.Window(conntest.ToServer, 0)
		read, first, second := s.reading(), s.writing(1), s.writing(1)
		synctest.Wait()
		wait := s.closing(t, time.Minute)
		synctest.Wait()
		takes(t, 0, func() {
			require.NoError(t, s.CloseNow())
			require.NoError(t, s.CloseNow())
			for _, err := range []error{read(), first(), second(), wait()} {
				require.ErrorIs(t, err, net.ErrClosed)
			}
		})
	})
}

func TestCloseNowCutsACloseThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		wait := s.closing(t, time.Minute)
		time.Sleep(second)
		takes(t, 0, func() {
			require.NoError(t, s.CloseNow())
			require.ErrorIs(t, wait(), net.ErrClosed)
		})
	})
}

func TestASecondCloseCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		first := s.closing(t, time.Minute)
		synctest.Wait()
		require.ErrorIs(t, s.closing(t, time.Minute)(), net.ErrClosed)
		require.ErrorIs(t, first(), net.ErrClosed)
	})
}

func TestCloseOfAFramedAfterTheEndReturnsItsCause(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	s.peer.Close()
	_, err := s.Read(nil)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, s.Close(t.Context(), 1000, ""), io.EOF)
	_, err = s.raw.Write(nil)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestCloseUnderAContextThatHasEndedCuts(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Close(ctx, 1000, ""), context.Canceled)
	require.False(t, s.pipe.Live())
}

func TestWhatCannotBeHalfClosedIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := connect(t)
		c, err := conn.NewFramed(struct{ net.Conn }{client}, conn.Lines{}, nil)
		require.NoError(t, err)
		require.NoError(t, c.Write(bytesOf("last")))
		takes(t, 0, func() { require.NoError(t, c.Close(t.Context(), 1000, "")) })
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, "last\n", string(got))
	})
}

// unshut is a connection whose direction cannot be closed.
type unshut struct{ endless }

func (*unshut) CloseWrite() error {
	return &net.OpError{Op: "close", Net: "tcp", Err: syscall.ENOTCONN}
}

func TestCloseWriteThatFailsSaysWhy(t *testing.T) {
	for name, end := range map[string]func(*conn.Framed) error{
		"close write": (*conn.Framed).CloseWrite,
		"close":       func(c *conn.Framed) error { return c.Close(t.Context(), 0, "") },
	} {
		c, err := conn.NewFramed(&unshut{}, conn.Lines{}, nil)
		require.NoError(t, err)
		err = end(c)
		require.ErrorIs(t, err, syscall.ENOTCONN, name)
		require.NotErrorIs(t, err, errors.ErrUnsupported, name)
		require.ErrorContains(t, err, name)
		require.NoError(t, c.CloseNow())
	}
}

func TestCloseWriteOfWhatCannotBeHalfClosedIsUnsupported(t *testing.T) {
	c, err := conn.NewFramed(&endless{}, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	require.ErrorIs(t, c.CloseWrite(), errors.ErrUnsupported)
	require.NoError(t, c.Write(conn.Message{}), "nothing has happened")
}
