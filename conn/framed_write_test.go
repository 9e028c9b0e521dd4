package conn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// writing writes one message of n bytes, without its frame, in the background.
func (s *strand) writing(n int) (wait func() error) {
	return background(func() error { return s.Write(conn.Message{Data: make([]byte, n)}) })
}

// oneByOne is a connection that notes what each Write was given.
type oneByOne struct {
	endless
	writes []string
	err    error
	took   int // of the Write that fails
	closed bool
}

func (o *oneByOne) Write(p []byte) (int, error) {
	o.writes = append(o.writes, string(p))
	if o.err != nil {
		return o.took, o.err
	}
	return len(p), nil
}

func (o *oneByOne) Close() error { o.closed = true; return nil }

func TestAMessageIsOneWrite(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.LengthPrefix{Size: 1}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	for _, text := range []string{"one", "", "three"} {
		require.NoError(t, c.Write(bytesOf(text)))
	}
	require.Equal(t, []string{"\x03one", "\x00", "\x05three"}, nc.writes)
}

func TestARefusedMessageHarmsNothing(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	err := s.Write(bytesOf("a\nb"))
	require.EqualError(t, err, "write: not written: bad message: a line feed inside a line")
	require.ErrorIs(t, err, conn.ErrBadMessage)
	require.ErrorIs(t, err, conn.ErrNotWritten)
	require.NoError(t, s.Write(bytesOf("ab")))
	require.EqualValues(t, 3, s.pipe.Written(conntest.ToServer))
}

// picky refuses in words of its own.
type picky struct{ conn.Lines }

func (picky) AppendFrame([]byte, []byte) ([]byte, error) { return nil, errors.New("not today") }

func TestARefusedMessageIsNoWrite(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, picky{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	require.Error(t, c.Write(bytesOf("a")))
	require.Empty(t, nc.writes, "over TLS it would be an empty record")
}

func TestAnyErrorOfAFramerIsErrBadMessage(t *testing.T) {
	err := framed(t, picky{}, nil).Write(bytesOf("a"))
	require.EqualError(t, err, "write: not written: bad message: not today")
	require.ErrorIs(t, err, conn.ErrBadMessage)
	require.ErrorIs(t, err, conn.ErrNotWritten)
}

// raw is a framer of messages that have their frame already: it returns them as they are.
type raw struct{ conn.Lines }

func (raw) AppendFrame(_, message []byte) ([]byte, error) { return message, nil }

// A message belongs to the caller of Write, whatever the Framer does with it.
func TestAWrittenMessageIsNotKept(t *testing.T) {
	mine := []byte("mine\n")
	require.NoError(t, framed(t, raw{}, nil).Write(conn.Message{Data: mine}))
	for range 10 {
		require.NoError(t, framed(t, conn.Lines{}, nil).Write(bytesOf("x")))
	}
	require.Equal(t, "mine\n", string(mine))
}

// Promises 3 and 6: the kernel has some of it.
func TestAStuckFrameIsCutAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		read := s.reading()
		s.pipe.Window(conntest.ToServer, 10)
		takes(t, 10*second, func() {
			err := s.writing(100)()
			require.EqualError(t, err, "write: a part of a message was not written within 10s")
			require.NotErrorIs(t, err, conn.ErrNotWritten)
			require.ErrorAs(t, err, new(*conn.SlowMessageError))
		})
		err := read()
		require.EqualError(t, err, "read: a part of a message was not written within 10s")
		require.NotErrorIs(t, err, net.ErrClosed)
	})
}

// Promise 6: no byte of the message fitted, nor of the one behind it.
func TestAStuckFrameOfWhichNothingWasTakenIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.pipe.Window(conntest.ToServer, 0)
		first := s.writing(1)
		synctest.Wait()
		second := s.writing(1)
		for _, err := range []error{first(), second()} {
			require.ErrorIs(t, err, conn.ErrNotWritten)
			require.ErrorAs(t, err, new(*conn.SlowMessageError))
		}
	})
}

func TestFramedWriteTimeoutIsOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.pipe.Window(conntest.ToServer, 0)
		var writers sync.WaitGroup
		for range 5 {
			writers.Go(func() { require.NoError(t, s.Write(conn.Message{Data: make([]byte, 99)})) })
		}
		for i := range 5 {
			time.Sleep(9 * second)
			s.pipe.Window(conntest.ToServer, 100*(i+1))
			synctest.Wait()
		}
		takes(t, 0, writers.Wait)
	})
}

func TestNegativeFramedWriteTimeoutIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{WriteTimeout: -1}})
		s.pipe.Window(conntest.ToServer, 0)
		write := s.writing(1)
		time.Sleep(24 * time.Hour)
		s.pipe.Window(conntest.ToServer, -1)
		require.NoError(t, write())
	})
}

// Promise 6: the number of bytes that the net.Conn reports decides.
func TestTheFateOfAFailedWriteIsTheNumberOfItsBytes(t *testing.T) {
	for took, notWritten := range map[int]bool{0: true, 1: false, 3: false} {
		nc := &oneByOne{err: syscall.EPIPE, took: took}
		c, err := conn.NewFramed(nc, conn.Lines{}, nil)
		require.NoError(t, err)
		err = c.Write(bytesOf("abc"))
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, notWritten, errors.Is(err, conn.ErrNotWritten), took)
		require.True(t, nc.closed, "a stream is never spliced")

		nc.err = nil
		err = c.Write(bytesOf("next"))
		require.ErrorIs(t, err, conn.ErrNotWritten)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Len(t, nc.writes, 1)
		require.NoError(t, c.CloseNow())
	}
}

// Promise 6, over TLS: a part of a record, which the peer cannot decrypt, was not sent.
func TestAPartOfATLSRecordIsNotWritten(t *testing.T) {
	config := serverTLS()
	synctest.Test(t, func(t *testing.T) {
		client, server, pipe := connect(t)
		near, far := shakeHands(t, client, server, config)
		c, err := conn.NewFramed(near, conn.Lines{}, nil)
		require.NoError(t, err)
		require.NoError(t, c.Write(bytesOf("whole")))
		synctest.Wait()
		pipe.Window(conntest.ToServer, 50+int(pipe.Written(conntest.ToServer)))
		takes(t, 10*second, func() {
			err := c.Write(conn.Message{Data: make([]byte, 10_000)})
			require.ErrorAs(t, err, new(*conn.SlowMessageError))
			require.ErrorIs(t, err, conn.ErrNotWritten)
		})
		got, err := io.ReadAll(far)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "something of the record did arrive")
		require.Equal(t, "whole\n", string(got))
	})
}

func TestWriteAfterTheEndOfFramedIsNotWritten(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	require.NoError(t, s.CloseNow())
	err := s.Write(bytesOf("x"))
	require.ErrorIs(t, err, conn.ErrNotWritten)
	require.ErrorIs(t, err, net.ErrClosed)
}

// Frames of several writers are never mixed.
func TestManyMayWriteFramesAtOnce(t *testing.T) {
	s := framed(t, conn.LengthPrefix{}, nil)
	far, err := conn.NewFramed(s.peer, conn.LengthPrefix{}, nil)
	require.NoError(t, err)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			data := bytes.Repeat([]byte{byte(i)}, 3000)
			for range 100 {
				require.NoError(t, s.Write(conn.Message{Data: data}))
			}
		})
	}
	for range 800 {
		m, err := far.Read(nil)
		require.NoError(t, err)
		require.Len(t, m.Data, 3000)
		require.Equal(t, 3000, bytes.Count(m.Data, m.Data[:1]))
	}
	writers.Wait()
}

func lettersOf(texts ...string) (ms []conn.Message) {
	for _, text := range texts {
		ms = append(ms, bytesOf(text))
	}
	return ms
}

func TestABatchOfSmallFramesIsOneWrite(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.LengthPrefix{Size: 1}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	n, err := c.WriteBatch(lettersOf("one", "", "three"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, []string{"\x03one\x00\x05three"}, nc.writes)
	n, err = c.WriteBatch(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Len(t, nc.writes, 1)
}

func TestALongBatchIsWrittenInParts(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	ms := slices.Repeat(lettersOf("x"), 100)
	ms = append(ms, lettersOf(strings.Repeat("y", 100_000), strings.Repeat("z", 20_000), "w")...)
	n, err := c.WriteBatch(ms)
	require.NoError(t, err)
	require.Equal(t, len(ms), n)
	var sizes []int
	for _, w := range nc.writes {
		sizes = append(sizes, len(w))
	}
	require.Equal(t, []int{128, 72, 32768, 32768, 32768, 1697, 20_003}, sizes)
	require.Equal(t, strings.Repeat("x\n", 100), nc.writes[0]+nc.writes[1])
	require.True(t, strings.HasSuffix(nc.writes[6], "z\nw\n"))
}

func TestABadMessageEndsABatchOfFramesWithoutHarm(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	n, err := c.WriteBatch(lettersOf("a", "b", "c\nd", "e"))
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, conn.ErrBadMessage)
	require.ErrorIs(t, err, conn.ErrNotWritten)
	require.Equal(t, []string{"a\nb\n"}, nc.writes)
	require.NoError(t, c.Write(bytesOf("e")))
}

// Wherever the net.Conn stops, the number of whole messages is exact, and so is what
// became of the next.
func TestABatchOfFramesThatFailsSaysExactlyHowFarItCame(t *testing.T) {
	ends := []int{2, 5, 6, 11}
	for took := range 12 {
		nc := &oneByOne{err: syscall.EPIPE, took: took}
		c, err := conn.NewFramed(nc, conn.Lines{}, nil)
		require.NoError(t, err)
		n, err := c.WriteBatch(lettersOf("1", "22", "", "4444"))
		whole, begin := 0, 0
		for whole < 3 && ends[whole] <= took {
			begin = ends[whole]
			whole++
		}
		require.Equal(t, whole, n, took)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, took == begin, errors.Is(err, conn.ErrNotWritten), took)
		require.NoError(t, c.CloseNow())
	}
}

// A careless Framer returns what it was given: no message overwrites another.
func TestABatchOfACarelessFramerIsWhole(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, raw{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	mine := []byte("mine\nand more")
	_, err = c.WriteBatch([]conn.Message{{Data: mine[:5]}, {Data: []byte("yours\n")}})
	require.NoError(t, err)
	require.Equal(t, []string{"mine\nyours\n"}, nc.writes)
	require.Equal(t, "mine\nand more", string(mine))
}

func TestABatchOfFramesAllocatesNothing(t *testing.T) {
	if conn.RaceEnabled() {
		return
	}
	c, err := conn.NewFramed(&endless{}, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	ms := slices.Repeat(lettersOf(strings.Repeat("x", 128)), 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := c.WriteBatch(ms); err != nil {
			t.Error(err)
		}
	}))
}
