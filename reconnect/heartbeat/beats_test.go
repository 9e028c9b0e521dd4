package heartbeat_test

// These tests are about how a connection ends, and about its other methods.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

// dialed returns the connection that answers heartbeats over below.
func dialed(t *testing.T, below conn.Conn, every time.Duration) conn.Conn {
	d := &heartbeat.Dialer{Answer: pong, Every: every, Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return below, nil })}
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	return c
}

func TestTimeInWhichNobodyReadsATransportDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		c := over(t, fake, 10*time.Second).(conn.Transport)
		fake.Deliver(conn.TextMessage("one"))
		buffer := func(int) []byte { return nil }
		_, err := c.ReadBuffer(buffer)
		require.NoError(t, err)
		time.Sleep(time.Hour + time.Second)
		require.False(t, fake.Closed())
		_, err = c.ReadBuffer(buffer)
		require.ErrorIs(t, err, heartbeat.ErrLate)
	})
}

func TestAnAnswerThatIsNoMessageEndsTheConnectionAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c := dialed(t, mute{fake, conn.ErrBadMessage}, 0)
		fake.Deliver(conn.TextMessage("ping"))
		start := time.Now()
		_, err := c.Read(nil)
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.Zero(t, time.Since(start))
	})
}

// slow is a connection that takes a second to close. Another call meanwhile returns at once, as that of a net.Conn does.
type slow struct {
	conn.Conn
	cut  chan struct{}
	once sync.Once
}

func (s *slow) Read([]byte) (conn.Message, error) { <-s.cut; return conn.Message{}, net.ErrClosed }

func (s *slow) CloseNow() error {
	first := false
	s.once.Do(func() { first = true; close(s.cut) })
	if first {
		time.Sleep(time.Second)
	}
	return nil
}

// The next dial begins after CloseNow: until then the old connection must be closed.
func TestCloseNowReturnsWhenTheConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dialed(t, &slow{cut: make(chan struct{})}, time.Second)
		_, err := c.Read(nil)
		require.ErrorIs(t, err, heartbeat.ErrLate)
		start := time.Now()
		require.NoError(t, c.CloseNow())
		require.Equal(t, time.Second, time.Since(start))
	})
}

// The reader has a message that came behind the heartbeat, so no Read sees that the connection is closed.
func TestCloseNowEndsWaitForLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c := dialed(t, mute{fake, errors.New("broken pipe")}, 0)
		fake.Deliver(conn.TextMessage("ping"), conn.TextMessage("one"))
		_, err := c.Read(nil)
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, c.CloseNow())
		require.Zero(t, time.Since(start))
	})
}

// failing is a connection whose writes fail, each with an error of its own.
type failing struct {
	conn.Conn
	n *int
}

func (f failing) Write(conn.Message) error { *f.n++; return fmt.Errorf("write %d fails", *f.n) }

// After an answer that could not be written, no heartbeat is answered.
func TestTheFirstAnswerThatFailsIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, writes := conntest.NewFake(nil), 0
		c := dialed(t, failing{fake, &writes}, 0)
		fake.Deliver(conn.TextMessage("ping"), conn.TextMessage("ping"))
		_, err := c.Read(nil)
		require.EqualError(t, err, "write 1 fails")
		require.Equal(t, 1, writes)
	})
}

// The peer does not answer the close, and sends nothing more.
func TestAConnectionThatIsBeingClosedIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		fake.Mute()
		c := over(t, fake, time.Second)
		read := make(chan error, 1)
		go func() { _, err := c.Read(nil); read <- err }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Error(t, c.Close(ctx, 1000, ""))
		err := <-read
		require.ErrorIs(t, err, net.ErrClosed)
		require.NotErrorIs(t, err, heartbeat.ErrLate)
	})
}

// The peer does not answer the close. The heartbeat comes before the close, or during it.
func TestFailedResponseLeavesCloseItsTime(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			fake := conntest.NewFake(nil)
			fake.Mute()
			c := dialed(t, mute{fake, errors.New("broken pipe")}, 0)
			reads(t, c)
			time.AfterFunc(at, func() { fake.Deliver(conn.TextMessage("ping")) })
			time.Sleep(time.Second / 2)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, c.Close(ctx, 1000, ""), context.DeadlineExceeded)
		})
	}
}

// said is a connection whose last word has come when it is cut.
type said struct {
	conn.Conn
	word error
}

func (s said) Read(buf []byte) (conn.Message, error) {
	m, err := s.Conn.Read(buf)
	if err != nil {
		err = s.word
	}
	return m, err
}

func TestALateServerThatHasSaidWhyItEndsIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		word := errors.New("going away")
		_, err := dialed(t, said{conntest.NewFake(nil), word}, time.Second).Read(nil)
		require.Equal(t, word, err)
	})
}

type half struct{ closed bool }

func (h *half) CloseWrite() error { h.closed = true; return nil }

func TestAConnectionStillClosesItsHalf(t *testing.T) {
	fake, h := conntest.NewFake(&conntest.FakeOptions{Transport: true}), new(half)
	c := dialed(t, struct {
		conn.Conn
		conn.Transport
		conn.HalfCloser
	}{fake, fake.Conn().(conn.Transport), h}, 0)
	require.NoError(t, c.(conn.HalfCloser).CloseWrite())
	require.True(t, h.closed)
	require.NoError(t, c.CloseNow())
}

// hosted is a dialer that has a Host and no Endpoint.
type hosted struct{ dialFunc }

func (hosted) Host() string { return "host.test:443" }

func TestTheEndpointIsTheHostIfThereIsNoOther(t *testing.T) {
	d := &heartbeat.Dialer{Answer: pong, Dialer: hosted{func(context.Context) (conn.Conn, error) { return nil, io.EOF }}}
	require.Equal(t, "host.test:443", d.Endpoint())
}
