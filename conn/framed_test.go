package conn_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

const second = time.Second

// strand is a Framed over a network in memory, and what it is connected to.
type strand struct {
	*conn.Framed
	raw  net.Conn // under it
	peer net.Conn
	pipe *conntest.Pipe
}

// connect returns both ends of a connection, and the network's view of it.
func connect(t testing.TB) (client, server net.Conn, pipe *conntest.Pipe) {
	const addr = "lines.test:7"
	n := new(conntest.Network)
	l, err := n.Listen(addr)
	require.NoError(t, err)
	client, err = n.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	pipe = n.Conns(addr)[0]
	t.Cleanup(func() { client.Close(); server.Close(); l.Close() })
	return client, server, pipe
}

// framed returns a strand; the cleanup cuts it.
func framed(t testing.TB, f conn.Framer, o *conn.FramedOptions) *strand {
	client, server, pipe := connect(t)
	c, err := conn.NewFramed(client, f, o)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return &strand{c, client, server, pipe}
}

// send writes to the strand.
func (s *strand) send(t testing.TB, text string) {
	t.Helper()
	_, err := s.peer.Write([]byte(text))
	require.NoError(t, err)
}

// reading reads one message in the background.
func (s *strand) reading() (wait func() error) {
	return background(func() error { _, err := s.Read(nil); return err })
}

// background starts f and returns what waits for its result.
func background[T any](f func() T) (wait func() T) {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return func() T { return <-result }
}

// takes asserts that f takes exactly d of virtual time.
func takes(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Equal(t, d, time.Since(start))
}

func bytesOf(text string) conn.Message { return conn.Message{Type: conn.Binary, Data: []byte(text)} }

func TestFramedReadsMessagesAsTheyWereWritten(t *testing.T) {
	for _, f := range []conn.Framer{conn.Lines{}, conn.Lines{CRLF: true}, conn.LengthPrefix{}, conn.LengthPrefix{Varint: true}} {
		s := framed(t, f, nil)
		far, err := conn.NewFramed(s.peer, f, &conn.FramedOptions{Type: conn.Text})
		require.NoError(t, err)
		for _, size := range []int{0, 1, 511, 512, 513, 5000, 60_000} {
			data := []byte(strings.Repeat("x", size))
			require.NoError(t, s.Write(conn.Message{Data: data}))
			m, err := far.Read(nil)
			require.NoError(t, err)
			require.Equal(t, conn.Text, m.Type)
			require.Equal(t, string(data), string(m.Data))
			require.NoError(t, far.Write(m))
			m, err = s.Read(m.Data)
			require.NoError(t, err)
			require.Equal(t, conn.Binary, m.Type)
			require.Equal(t, string(data), string(m.Data))
		}
	}
}

func TestAFramedReadBufferAsksWhenAMessageHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.LengthPrefix{}, nil)
		var asked int
		give := make([]byte, 0, 64)
		read := background(func() string {
			m, err := s.ReadBuffer(func(size int) []byte { asked++; require.Zero(t, size); return give })
			require.NoError(t, err)
			return string(m.Data)
		})
		synctest.Wait()
		require.Zero(t, asked)
		s.send(t, "\x00")
		synctest.Wait()
		require.Equal(t, 1, asked)
		s.send(t, "\x00\x00\x05hello")
		require.Equal(t, "hello", read())
		require.Equal(t, 1, asked)
		require.Equal(t, "hello", string(give[:5]), "the buffer was used")
		require.NoError(t, s.peer.Close())
		_, err := s.ReadBuffer(func(int) []byte { asked++; return nil })
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 1, asked)
	})
}

func TestABurstIsReadInOrder(t *testing.T) {
	s := framed(t, conn.LengthPrefix{}, nil)
	s.pipe.Window(conntest.ToClient, 1<<30)
	var stream []byte
	for i := range 5000 {
		stream, _ = conn.LengthPrefix{}.AppendFrame(stream, []byte(strings.Repeat(string(rune('a'+i%26)), i)))
	}
	s.send(t, string(stream))
	var buf []byte
	for i := range 5000 {
		m, err := s.Read(buf)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(string(rune('a'+i%26)), i), string(m.Data))
		buf = m.Data
	}
}

// The end of the stream is no end of a message.
func TestFramedTellsWhereTheStreamEnded(t *testing.T) {
	for stream, want := range map[string]error{
		"": io.EOF, "whole\n": io.EOF,
		"whole\nha": io.ErrUnexpectedEOF, "whole\nh": io.ErrUnexpectedEOF, "ha": io.ErrUnexpectedEOF,
	} {
		s := framed(t, conn.Lines{}, nil)
		s.send(t, stream)
		s.peer.Close()
		var err error
		for range strings.Count(stream, "\n") {
			_, err = s.Read(nil)
			require.NoError(t, err)
		}
		for range 2 { // again and again
			_, err = s.Read(nil)
			require.ErrorIs(t, err, want, "%q", stream)
		}
		if want == io.EOF {
			require.EqualError(t, err, "read: the peer hung up: EOF")
		} else {
			require.EqualError(t, err, "read: the peer hung up inside a message: unexpected EOF")
		}
	}
}

// What comes with a large message is not in the buffer of the Framer when that message was read.
func TestAStreamThatEndsInAMessageBehindALargeOneIsUnexpected(t *testing.T) {
	for _, half := range []string{"\x00", "\x00\x00\x00\x05ha"} {
		s := framed(t, conn.LengthPrefix{}, nil)
		s.send(t, written(t, conn.LengthPrefix{}, strings.Repeat("x", 5000))+half)
		s.peer.Close()
		_, err := s.Read(nil)
		require.NoError(t, err)
		_, err = s.Read(nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%q", half)
	}
}

// lastWords gives all it has and its end in one Read, as crypto/tls does.
type lastWords struct {
	endless
	words string
}

func (l *lastWords) Read(p []byte) (int, error) {
	n := copy(p, l.words)
	l.words = l.words[n:]
	return n, io.EOF
}

func TestAnEndThatComesWithHalfAFrameIsUnexpected(t *testing.T) {
	c, err := conn.NewFramed(&lastWords{words: "abc"}, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	_, err = c.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAResetInsideAMessageIsAReset(t *testing.T) {
	s := framed(t, conn.LengthPrefix{}, nil)
	s.send(t, "\x00\x00\x00\x05abc")
	s.pipe.Reset()
	_, err := s.Read(nil)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorAs(t, err, new(*conn.ProtocolError))
}

// peeker is a framer of a careless user: it takes the end of the stream for the
// end of a message.
type peeker struct{ conn.Lines }

func (peeker) ReadFrame(r *bufio.Reader, buf []byte, _ int) ([]byte, error) {
	line, _ := r.ReadSlice('\n')
	return append(buf, line...), nil
}

// A message that never completed is never delivered, whatever the Framer says.
func TestAFramerThatSwallowsTheEndDeliversNoHalf(t *testing.T) {
	s := framed(t, peeker{}, nil)
	s.send(t, "whole\nha")
	s.peer.Close()
	m, err := s.Read(nil)
	require.NoError(t, err)
	require.Equal(t, "whole\n", string(m.Data))
	_, err = s.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	s = framed(t, peeker{}, nil)
	s.peer.Close()
	_, err = s.Read(nil)
	require.ErrorIs(t, err, io.EOF)
}

func TestAFramerThatIgnoresTheLimitDeliversNothingOverIt(t *testing.T) {
	s := framed(t, peeker{}, &conn.FramedOptions{Limits: conn.Limits{ReadLimit: 5}})
	s.send(t, "12345\n")
	_, err := s.Read(nil)
	var big *conn.TooBigError
	require.ErrorAs(t, err, &big)
	require.EqualValues(t, 5, big.Limit)
}

func TestAMessageOverTheReadLimitEndsTheConnection(t *testing.T) {
	s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{ReadLimit: 5}})
	s.send(t, "12345\n123456\nx\n")
	_, err := s.Read(nil)
	require.NoError(t, err)
	for range 2 {
		_, err = s.Read(nil)
		require.EqualError(t, err, "read: message larger than the read limit of 5 bytes")
	}
	require.ErrorIs(t, s.Write(bytesOf("x")), conn.ErrNotWritten)
}

func TestABrokenFrameIsAProtocolError(t *testing.T) {
	s := framed(t, conn.LengthPrefix{Varint: true}, nil)
	s.send(t, strings.Repeat("\xff", 10))
	_, err := s.Read(nil)
	require.EqualError(t, err, "read: protocol error: binary: varint overflows a 64-bit integer")
	var protocol *conn.ProtocolError
	require.ErrorAs(t, err, &protocol)
	require.Equal(t, 1002, protocol.CloseCode())
}

// strict is a framer that returns errors of this package.
type strict struct{ conn.Lines }

func (strict) ReadFrame(r *bufio.Reader, _ []byte, _ int) ([]byte, error) {
	_, _ = r.ReadSlice('\n')
	return nil, fmt.Errorf("strict: %w", &conn.ProtocolError{Err: errors.New("a bad frame")})
}

func TestAProtocolErrorOfAFramerIsReturnedAsItIs(t *testing.T) {
	s := framed(t, strict{}, nil)
	s.send(t, "x\n")
	_, err := s.Read(nil)
	require.EqualError(t, err, "read: protocol error: a bad frame")
}

func TestReadThatIsCutSaysClosed(t *testing.T) {
	near, far := net.Pipe() // says io.ErrClosedPipe
	defer far.Close()
	var wire conn.Wire
	c, err := conn.NewFramed(wire.Tap(near), conn.Lines{}, nil)
	require.NoError(t, err)
	read := background(func() error { _, err := c.Read(nil); return err })
	wire.Cut()
	require.ErrorIs(t, read(), net.ErrClosed)
	require.NoError(t, c.CloseNow())
}

// Promise 3.
func TestAMessageThatDoesNotCompleteIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		read := s.reading()
		time.Sleep(time.Hour) // between messages there is no limit
		s.send(t, "ha")
		takes(t, 60*second, func() {
			err := read()
			require.EqualError(t, err, "read: a part of a message did not arrive within 1m0s")
			require.ErrorAs(t, err, new(*conn.SlowMessageError))
			require.NotErrorIs(t, err, net.ErrClosed)
		})
	})
}

// The time runs from the first byte that Read has, also when that came with the
// message before.
func TestMessageTimeoutRunsFromTheFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{MessageTimeout: 10 * second}})
		s.send(t, "whole\nha")
		_, err := s.Read(nil)
		require.NoError(t, err)
		time.Sleep(time.Hour) // the application is slow, not the peer
		read := s.reading()
		time.Sleep(9 * second)
		s.send(t, "lf") // a trickle does not help
		takes(t, second, func() { require.ErrorAs(t, read(), new(*conn.SlowMessageError)) })
	})
}

func TestMessagesInTimeAreNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{MessageTimeout: 10 * second}})
		for range 20 {
			read := s.reading()
			s.send(t, "ha")
			time.Sleep(9 * second)
			s.send(t, "lf\n")
			require.NoError(t, read())
			time.Sleep(30 * second)
		}
	})
}

func TestNegativeMessageTimeoutIsOffAndTheEndStillKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{MessageTimeout: -1}})
		read := s.reading()
		s.send(t, "ha")
		time.Sleep(24 * time.Hour)
		s.peer.Close()
		require.ErrorIs(t, read(), io.ErrUnexpectedEOF)
	})
}

// Promise 3: any byte counts as life, and nothing else does.
func TestIdleCountsFromTheLastByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		read := s.reading()
		for _, piece := range []string{"a", "b", "c\n"} {
			time.Sleep(7 * second)
			require.Equal(t, 7*second, s.Silence())
			require.NoError(t, s.Write(bytesOf("x")))
			require.Equal(t, 7*second, s.Silence())
			s.send(t, piece)
			synctest.Wait()
			require.Zero(t, s.Silence())
		}
		require.NoError(t, read())
	})
}

func TestBeforeBlockIsCalledBeforeTheNetworkIsAsked(t *testing.T) {
	s := framed(t, conn.Lines{}, nil)
	waits := 0
	require.True(t, s.BeforeBlock(func() { waits++ }))
	s.send(t, "a\nb\nc\n")
	for range 3 {
		_, err := s.Read(nil)
		require.NoError(t, err)
		require.Equal(t, 1, waits)
	}
}

func TestASecondReaderGetsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		read := s.reading()
		synctest.Wait()
		_, err := s.Read(nil)
		require.EqualError(t, err, "read: another Read is under way")
		s.send(t, "x\n")
		require.NoError(t, read())
	})
}

func TestNewFramedNamesTheOptionThatIsWrong(t *testing.T) {
	require.NoError(t, (&conn.FramedOptions{Type: conn.Binary}).Validate())
	client, _, _ := connect(t)
	for want, f := range map[string]func() (*conn.Framed, error){
		"conn: no net.Conn to frame": func() (*conn.Framed, error) { return conn.NewFramed(nil, conn.Lines{}, nil) },
		"conn: no Framer":            func() (*conn.Framed, error) { return conn.NewFramed(client, nil, nil) },
		"conn: option Lines.Limit is -1: want a size in bytes, or 0 for none but ReadLimit": func() (*conn.Framed, error) {
			return conn.NewFramed(client, conn.Lines{Limit: -1}, nil)
		},
		"conn: option ReadLimit is -1: want a size in bytes, or 0 for 16777216": func() (*conn.Framed, error) {
			return conn.NewFramed(client, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{ReadLimit: -1}})
		},
		"conn: option Type is 3: want Text or Binary, or 0 for Binary": func() (*conn.Framed, error) {
			return conn.NewFramed(client, conn.Lines{}, &conn.FramedOptions{Type: 3})
		},
	} {
		_, err := f()
		require.EqualError(t, err, want)
	}
	_, err := client.Write([]byte("it is left alone"))
	require.NoError(t, err)
}

func TestFramedReadAndWriteAllocateNothing(t *testing.T) {
	for _, f := range []conn.Framer{conn.Lines{}, conn.LengthPrefix{}, conn.LengthPrefix{Varint: true}} {
		stream := written(t, f, strings.Repeat("x", 100), strings.Repeat("y", 4000))
		c, err := conn.NewFramed(&endless{stream: stream}, f, nil)
		require.NoError(t, err)
		defer c.CloseNow()
		buf := make([]byte, 0, 4096)
		race := conn.RaceEnabled()
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			m, err := c.Read(buf)
			if err == nil && !race {
				err = c.Write(m)
			}
			if err != nil {
				t.Error(err)
			}
		}))
	}
}

// endless is a connection that says one thing for ever, and takes everything.
type endless struct {
	net.Conn
	stream string
	at     int
}

func (e *endless) Write(p []byte) (int, error) { return len(p), nil }
func (e *endless) Close() error                { return nil }

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], e.stream[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.stream)
	}
	return n, nil
}

// newlines is a Framer of lines, between which empty lines keep the connection alive.
type newlines struct{ conn.Lines }

func (newlines) Skip(p []byte) int { return len(p) - len(bytes.TrimLeft(p, "\n")) }

// What stands between two messages keeps a connection alive, and begins no message.
func TestSkippedBytesBeginNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		c, err := conn.NewFramed(a, newlines{}, &conn.FramedOptions{Limits: conn.Limits{MessageTimeout: time.Minute}})
		require.NoError(t, err)
		defer c.CloseNow()
		go func() {
			for _, s := range []string{"\n", "\n\n", "\n\none\n", "\n", "\ntwo\n\n\n"} {
				time.Sleep(70 * time.Second)
				b.Write([]byte(s))
			}
			b.Write([]byte("\nhalf"))
		}()
		start, buffers := time.Now(), 0
		read := func() (conn.Message, error) {
			return c.ReadBuffer(func(int) []byte { buffers++; return nil })
		}
		m, err := read()
		require.NoError(t, err)
		require.Equal(t, "one", string(m.Data))
		require.Equal(t, 210*time.Second, time.Since(start))
		require.Equal(t, 1, buffers, "no memory is asked for before a message begins")
		m, err = read()
		require.NoError(t, err)
		require.Equal(t, "two", string(m.Data))
		require.Zero(t, c.Silence())
		_, err = read()
		require.ErrorAs(t, err, new(*conn.SlowMessageError))
		require.Equal(t, 410*time.Second, time.Since(start), "a minute after half a message")
	})
}

func TestOneByteBehindSkippedOnesBeginsAMessage(t *testing.T) {
	s := framed(t, newlines{}, nil)
	s.send(t, "\n\nh")
	s.peer.Close()
	_, err := s.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type greedy struct{ conn.Lines }

func (greedy) Skip(p []byte) int { return len(p) + 1 }

func TestSkipOfTooMuchIsAnError(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c, err := conn.NewFramed(a, greedy{}, nil)
	require.NoError(t, err)
	go b.Write([]byte("x\n"))
	_, err = c.Read(nil)
	require.ErrorContains(t, err, "conn_test.greedy: Skip returned 3 for 2 bytes")
	require.NoError(t, c.CloseNow())
}
