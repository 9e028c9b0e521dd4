package conn_test

import (
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
)

// layer is a connection over another, as TLS is.
type layer struct {
	net.Conn
	closes *[]string
}

func (l layer) NetConn() net.Conn { return floor(l) }
func (l layer) Close() error      { *l.closes = append(*l.closes, "layer"); return nil }

type floor struct {
	net.Conn
	closes *[]string
}

func (f floor) Close() error { *f.closes = append(*f.closes, "floor"); return f.Conn.Close() }

// over is a layer over the connection that it has.
type over struct{ layer }

func (o over) NetConn() net.Conn { return o.Conn }

// The connection at the bottom is closed first, and each is closed once.
func TestCloseNowClosesFromTheBottomUp(t *testing.T) {
	for name, build := range map[string]func(nc net.Conn, closes *[]string) net.Conn{
		"untapped": func(nc net.Conn, closes *[]string) net.Conn { return layer{nc, closes} },
		"tapped at the bottom": func(nc net.Conn, closes *[]string) net.Conn {
			return over{layer{new(conn.Wire).Tap(floor{nc, closes}), closes}}
		},
	} {
		client, _, _ := connect(t)
		var closes []string
		c, err := conn.NewFramed(build(client, &closes), conn.Lines{}, nil)
		require.NoError(t, err)
		require.NoError(t, c.CloseNow())
		require.NoError(t, c.CloseNow())
		require.Equal(t, []string{"floor", "layer"}, closes, name)
	}
}

func TestCloseNowClosesConnectionWithoutLayersOnce(t *testing.T) {
	for name, tap := range map[string]func(net.Conn) net.Conn{
		"tapped":   new(conn.Wire).Tap,
		"untapped": func(nc net.Conn) net.Conn { return nc },
	} {
		client, _, _ := connect(t)
		var closes []string
		c, err := conn.NewFramed(tap(floor{client, &closes}), conn.Lines{}, nil)
		require.NoError(t, err)
		require.NoError(t, c.CloseNow())
		require.Equal(t, []string{"floor"}, closes, name)
	}
}

func TestCutClosesATappedLayerFromTheBottomUp(t *testing.T) {
	client, _, _ := connect(t)
	var closes []string
	var wire conn.Wire
	c, err := conn.NewFramed(wire.Tap(layer{client, &closes}), conn.Lines{}, nil)
	require.NoError(t, err)
	wire.Cut()
	wire.Cut()
	require.NoError(t, c.CloseNow())
	require.Equal(t, []string{"floor", "layer"}, closes)
}

// TLS that a user's own DialContext made spends up to 5 s on its last record.
func TestCloseNowOfTappedTLSDoesNotWaitForAFullWindow(t *testing.T) {
	config := serverTLS()
	synctest.Test(t, func(t *testing.T) {
		client, server, pipe := connect(t)
		secure, _ := shakeHands(t, client, server, config)
		c, err := conn.NewFramed(new(conn.Wire).Tap(secure), conn.Lines{}, nil)
		require.NoError(t, err)
		pipe.Window(conntest.ToServer, 0)
		takes(t, 0, func() { require.NoError(t, c.CloseNow()) })
	})
}

// itself is a layer that says that it is below itself.
type itself struct{ net.Conn }

func (i *itself) NetConn() net.Conn { return i }

func TestALayerBelowItselfIsTheBottom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := connect(t)
		c, err := conn.NewFramed(&itself{client}, conn.Lines{}, nil)
		require.NoError(t, err)
		_, err = server.Write([]byte("x\n"))
		require.NoError(t, err)
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "x", string(m.Data))
		require.NoError(t, c.CloseNow())
		_, err = client.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Without a Tap below TLS what has been decrypted is life.
func TestALayerThatIsNotTappedIsHeardFromAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := connect(t)
		c, err := conn.NewFramed(layer{client, new([]string)}, conn.Lines{}, nil)
		require.NoError(t, err)
		defer c.CloseNow()
		read := background(func() error { _, err := c.Read(nil); return err })
		time.Sleep(5 * second)
		require.Equal(t, 5*second, c.Silence())
		_, err = server.Write([]byte("x"))
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, c.Silence())
		c.CloseNow()
		require.Error(t, read())
	})
}

func TestATappedConnectionIsHalfClosedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := connect(t)
		c, err := conn.NewFramed(new(conn.Wire).Tap(client), conn.Lines{}, nil)
		require.NoError(t, err)
		time.AfterFunc(3*second, func() { server.Close() })
		takes(t, 3*second, func() { require.NoError(t, c.Close(t.Context(), 0, "")) })
	})
}

// Whatever the layers below call it: net.Pipe says io.ErrClosedPipe.
func TestACloseThatIsCutSaysClosed(t *testing.T) {
	near, far := net.Pipe()
	client, server := shakeHands(t, near, far, serverTLS())
	defer far.Close()
	c, err := conn.NewFramed(client, conn.Lines{}, nil)
	require.NoError(t, err)
	wait := background(func() error { return c.Close(t.Context(), 0, "") })
	_, err = io.ReadAll(server)
	require.NoError(t, err, "our direction is closed")
	require.NoError(t, c.CloseNow())
	require.ErrorIs(t, wait(), net.ErrClosed)
}

// asked notes how much each Read asks for, and gives what it is fed.
type asked struct {
	endless
	feed  []string
	sizes []int
}

func (a *asked) Read(p []byte) (int, error) {
	a.sizes = append(a.sizes, len(p))
	if len(a.feed) == 0 {
		return 0, io.EOF
	}
	n := copy(p, a.feed[0])
	if a.feed[0] = a.feed[0][n:]; a.feed[0] == "" {
		a.feed = a.feed[1:]
	}
	return n, nil
}

// read reads all messages of a, and returns what was asked for by then.
func (a *asked) read(t *testing.T, f conn.Framer, messages int) []int {
	t.Helper()
	c, err := conn.NewFramed(a, f, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	buf := make([]byte, 10_000)
	for range messages {
		_, err := c.Read(buf)
		require.NoError(t, err)
	}
	return a.sizes
}

// An idle connection waits with a small buffer in hand: here each message comes
// alone. The rest of it may be read with a large one.
func TestAnIdleConnectionHoldsASmallBuffer(t *testing.T) {
	for _, f := range []conn.Framer{conn.Lines{}, conn.LengthPrefix{}} {
		message := written(t, f, strings.Repeat("x", 4092))
		sizes := (&asked{feed: []string{message, message, message}}).read(t, f, 3)
		require.Equal(t, []int{509, 64 << 10, 509, 64 << 10, 509, 64 << 10}, sizes)
	}
}

// That the rest of a message fills the room for it is no sign of more.
func TestTheRestOfAMessageIsNoBurst(t *testing.T) {
	message := written(t, conn.LengthPrefix{}, strings.Repeat("x", 1096))
	feed := []string{message[:100], message[100:], message[:100], message[100:], message}
	sizes := (&asked{feed: feed}).read(t, conn.LengthPrefix{}, 3)
	require.Equal(t, []int{509, 1000, 509, 1000, 509, 64 << 10}, sizes)
}

// Where messages fill the small buffer by chance it is no larger one that waits for
// the next.
func TestAFullBufferBetweenMessagesIsNoBurst(t *testing.T) {
	line := strings.Repeat("x", 508) + "\n"
	sizes := (&asked{feed: slices.Repeat([]string{line}, 100)}).read(t, conn.Lines{}, 100)
	require.Equal(t, slices.Repeat([]int{509}, 100), sizes)
}

func TestABurstIsReadInLargePieces(t *testing.T) {
	const lines = 10_000
	sizes := (&asked{feed: []string{strings.Repeat("0123456789abcde\n", lines)}}).read(t, conn.Lines{}, lines)
	require.Less(t, len(sizes), 10)
}

// Large messages that come alone change nothing.
func TestLargeMessagesAloneDoNotHideABurst(t *testing.T) {
	alone := written(t, conn.LengthPrefix{}, strings.Repeat("x", 4092))
	burst := strings.Repeat(written(t, conn.LengthPrefix{}, "0123456789ab"), 4096)
	feed := append(slices.Repeat([]string{alone}, 100), burst)
	sizes := (&asked{feed: feed}).read(t, conn.LengthPrefix{}, 100+4096)
	require.LessOrEqual(t, len(sizes), 2*100+3)
}
