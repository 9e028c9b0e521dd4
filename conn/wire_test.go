package conn

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// closes counts how often a connection is closed.
type closes struct {
	net.Conn
	n atomic.Int32
}

func (c *closes) Close() error { c.n.Add(1); return nil }

func TestCutClosesOnceHoweverOften(t *testing.T) {
	var w Wire
	var raw closes
	tapped := w.Tap(&raw)
	w.Cut()
	w.Cut()
	require.ErrorIs(t, tapped.Close(), net.ErrClosed)
	require.EqualValues(t, 1, raw.n.Load())
}

func TestCutBeforeTapClosesWhatIsTapped(t *testing.T) {
	var w Wire
	var raw closes
	w.Cut()
	w.Tap(&raw)
	require.EqualValues(t, 1, raw.n.Load())
}

func TestSecondTapClosesTheFirst(t *testing.T) {
	var w Wire
	var first, second closes
	w.Tap(&first)
	w.Tap(&second)
	require.EqualValues(t, 1, first.n.Load())
	w.Cut()
	require.EqualValues(t, 1, first.n.Load())
	require.EqualValues(t, 1, second.n.Load())
}

func TestTransportLeavesOtherResponsesAlone(t *testing.T) {
	var w Wire
	body := http.NoBody
	for _, status := range []int{200, 101} { // 101 with a body that cannot be written
		rt := w.Transport(handshake(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: body}, nil
		}))
		resp, err := rt.RoundTrip(nil)
		require.NoError(t, err)
		require.Equal(t, body, resp.Body)
	}
}

// Promise 3: any byte received counts as life, also that of half a message or header.
func TestAnyByteIsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := l.reading()
		for _, bytes := range []string{"\x81", "\x02", "h", frame(fin|ping, "p"), frame(fin|pong, "")} {
			sleep(t, 7*second)
			require.Equal(t, 7*second, l.Silence())
			if bytes[0] == 0x89 {
				l.send("i") // completes the message
				require.NoError(t, wait())
				wait = l.reading()
			}
			l.send(bytes)
			synctest.Wait()
			require.Zero(t, l.Silence())
		}
		require.NoError(t, l.CloseNow())
		require.ErrorIs(t, wait(), net.ErrClosed)
	})
}
