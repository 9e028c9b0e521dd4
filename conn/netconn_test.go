package conn_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// inNetConn runs test in a bubble, with a NetConn over a Fake.
func inNetConn(t *testing.T, test func(t *testing.T, nc net.Conn, peer *conntest.Fake)) {
	synctest.Test(t, func(t *testing.T) {
		peer := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		nc := conn.NetConn(conntest.Poison(peer.Conn()), conn.Binary)
		defer nc.Close()
		test(t, nc, peer)
	})
}

// The bytes of the messages are one stream, whatever the sizes of messages and reads are.
func TestANetConnReadsAStream(t *testing.T) {
	sizes := []int{1, 0, 7, 40_000, 3, 100, 40_000, 1, 1}
	want := bytes.Repeat([]byte("0123456789a"), 10_000)
	total := 0
	for _, n := range sizes {
		total += n
	}
	want = want[:total]
	v := newWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		rest := want
		for i, n := range sizes {
			if err := c.Write(ctx, websocket.MessageType(1+i%2), rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"as it is": func(r io.Reader) io.Reader { return r }, "one byte at a time": iotest.OneByteReader, "halves": iotest.HalfReader,
	} {
		c, _ := v.dial(t, nil, nil)
		nc := conn.NetConn(c, conn.Binary)
		got, err := io.ReadAll(reader(nc))
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(want, got), name)
		require.NoError(t, nc.Close())
		require.ErrorIs(t, nc.Close(), net.ErrClosed)
	}
}

func TestANetConnWritesEachWriteAsOneMessage(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, peer *conntest.Fake) {
		for _, p := range []string{"one", "", "two"} {
			n, err := nc.Write([]byte(p))
			require.NoError(t, err)
			require.Equal(t, len(p), n)
		}
		require.Equal(t, []conn.Message{{Type: conn.Binary, Data: []byte("one")}, {Type: conn.Binary, Data: []byte("two")}}, peer.Written())
	})
}

func TestAReadDeadlineCostsNothingButTheCall(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, peer *conntest.Fake) {
		buf := make([]byte, 3)
		start := time.Now()
		require.NoError(t, nc.SetReadDeadline(start.Add(time.Second)))
		_, err := nc.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		peer.Deliver(conn.TextMessage("abcd")) // comes after the deadline, and before the next call
		synctest.Wait()
		_, err = nc.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, nc.SetReadDeadline(time.Time{}))
		n, err := nc.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "abc", string(buf[:n]))
		n, err = nc.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "d", string(buf[:n]))
	})
}

func TestADeadlineEndsACallThatWaitsAlready(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, _ *conntest.Fake) {
		ended := make(chan error, 1)
		go func() { _, err := nc.Read(make([]byte, 1)); ended <- err }()
		synctest.Wait()
		require.NoError(t, nc.SetDeadline(time.Now().Add(time.Hour)))
		require.NoError(t, nc.SetDeadline(time.Unix(1, 0)))
		synctest.Wait()
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	})
}

func TestADeadlineThatHasPassedMayBeSetAgain(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, _ *conntest.Fake) {
		for range 2 {
			require.NoError(t, nc.SetDeadline(time.Unix(1, 0)))
			_, err := nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
	})
}

// gated is a connection whose writes wait until the gate is open.
type gated struct {
	conn.Conn
	gate chan struct{}
}

func (g gated) Write(m conn.Message) error {
	<-g.gate
	return g.Conn.Write(m)
}

// The message that was being written counts as written, and is written later. The next message, which waited for that,
// is not written.
func TestAWriteDeadlineCostsNothingButTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := conntest.NewFake(nil)
		g := gated{peer, make(chan struct{})}
		nc := conn.NetConn(g, conn.Binary)
		defer nc.Close()
		require.NoError(t, nc.SetWriteDeadline(time.Now().Add(time.Second)))
		p := []byte("one")
		n, err := nc.Write(p)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 3, n)
		copy(p, "xxx") // Write keeps nothing
		n, err = nc.Write([]byte("two"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		close(g.gate)
		require.NoError(t, nc.SetWriteDeadline(time.Time{}))
		_, err = nc.Write([]byte("three"))
		require.NoError(t, err)
		require.Equal(t, []conn.Message{conn.BinaryMessage([]byte("one")), conn.BinaryMessage([]byte("three"))}, peer.Written())
	})
}

func TestCloseOfANetConnUnblocksEveryCall(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, peer *conntest.Fake) {
		peer.Hold()
		ended := make(chan error, 4)
		for range 2 {
			go func() { _, err := nc.Read(make([]byte, 1)); ended <- err }()
			go func() { _, err := nc.Write([]byte("x")); ended <- err }()
		}
		synctest.Wait()
		require.NoError(t, nc.SetDeadline(time.Now().Add(time.Hour))) // Close stops the timer
		require.NoError(t, nc.Close())
		for range 4 {
			require.ErrorIs(t, <-ended, net.ErrClosed)
		}
		require.ErrorIs(t, nc.SetDeadline(time.Now()), net.ErrClosed)
		require.ErrorIs(t, nc.SetReadDeadline(time.Now()), net.ErrClosed)
		require.ErrorIs(t, nc.SetWriteDeadline(time.Now()), net.ErrClosed)
		_, err := nc.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestReadOfNothingDoesNotWait(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, peer *conntest.Fake) {
		n, err := nc.Read(nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestAnEmptyMessageIsNoRead(t *testing.T) {
	inNetConn(t, func(t *testing.T, nc net.Conn, peer *conntest.Fake) {
		peer.Deliver(conn.BinaryMessage(nil))
		peer.Deliver(conn.BinaryMessage([]byte("x")))
		n, err := nc.Read(make([]byte, 10))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// The end of the stream of a half-closer is that of its direction.
func TestTheEndOfAFramedNetConnIsEOF(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	nc := conn.NetConn(s.Framed, conn.Binary)
	defer nc.Close()
	s.send(t, "x\n")
	s.peer.Close()
	got, err := io.ReadAll(nc)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

// Each Read has a part of a message, and no part comes twice.
func TestReadersOfANetConnTakeTurns(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	nc := conn.NetConn(s.Framed, conn.Binary)
	defer nc.Close()
	go func() {
		for i := range 2000 {
			s.peer.Write([]byte{byte(i % 7), byte(i % 7), '\n'})
		}
		s.peer.Close()
	}()
	var counts [8]atomic.Int64
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for p := []byte{0}; ; {
				n, err := nc.Read(p)
				if err != nil {
					return
				}
				counts[p[0]].Add(int64(n))
			}
		})
	}
	readers.Wait()
	for b := range 7 {
		require.EqualValues(t, 2*((2000+6-b)/7), counts[b].Load(), b)
	}
}

// Only an end on purpose is io.EOF, because many readers take that for success.
func TestTheEndOfANetConn(t *testing.T) {
	ends := map[int]error{1000: io.EOF, 1001: io.EOF, 1011: &conn.CloseError{Code: 1011, Reason: "bye"}}
	for code, want := range ends {
		v := newWSServer(t, func(_ context.Context, c *websocket.Conn, _ *http.Request) {
			_ = c.Close(websocket.StatusCode(code), "bye")
		})
		c, _ := v.dial(t, nil, nil)
		nc := conn.NetConn(c, conn.Binary)
		_, err := nc.Read(make([]byte, 1))
		if want == io.EOF {
			require.Equal(t, want, err)
		} else {
			require.ErrorContains(t, err, want.Error())
		}
		nc.Close()
	}
	v := newWSServer(t, func(ctx context.Context, _ *websocket.Conn, _ *http.Request) { <-ctx.Done() })
	c, pipe := v.dial(t, nil, nil)
	nc := conn.NetConn(c, conn.Binary)
	defer nc.Close()
	require.Equal(t, pipe.Client().LocalAddr(), nc.LocalAddr())
	require.Equal(t, pipe.Client().RemoteAddr(), nc.RemoteAddr())
	pipe.Server().Close()
	_, err := nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NotEqual(t, io.EOF, err)
}

func TestAnAddressThatIsNotKnown(t *testing.T) {
	nc := conn.NetConn(conntest.NewFake(nil), conn.Binary)
	defer nc.Close()
	require.Equal(t, "unknown", nc.LocalAddr().String())
	require.Equal(t, "unknown", nc.RemoteAddr().String())

	near, far := net.Pipe()
	defer far.Close()
	c, err := conn.NewFramed(nowhere{near}, conn.Lines{}, nil)
	require.NoError(t, err)
	nc = conn.NetConn(c, conn.Binary)
	defer nc.Close()
	require.Equal(t, "unknown", nc.LocalAddr().String())
	require.Equal(t, "unknown", nc.RemoteAddr().String())
}

// nowhere is a connection that does not know its addresses.
type nowhere struct{ net.Conn }

func (nowhere) LocalAddr() net.Addr  { return nil }
func (nowhere) RemoteAddr() net.Addr { return nil }

// A reader that keeps up needs no new buffers.
func TestReadOfANetConnReusesItsBuffers(t *testing.T) {
	if conn.RaceEnabled() {
		t.Skip("the race detector allocates")
	}
	v := newWSServer(t, conntest.Echo)
	c, _ := v.dial(t, nil, nil)
	nc := conn.NetConn(c, conn.Binary)
	defer nc.Close()
	buf := make([]byte, 2000)
	ping := testing.AllocsPerRun(200, func() {
		_, _ = nc.Write(buf)
		_, _ = io.ReadFull(nc, buf)
	})
	bare, _ := v.dial(t, nil, nil)
	var m conn.Message
	base := testing.AllocsPerRun(200, func() {
		_ = bare.Write(conn.BinaryMessage(buf))
		m, _ = bare.Read(m.Data)
	})
	require.LessOrEqual(t, ping, base+3) // of Write: its channel and its goroutine
}
