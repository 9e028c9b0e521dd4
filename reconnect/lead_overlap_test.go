package reconnect_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// behind lets 300 messages come, of which the reader reads 100 by itself. Then a next session is ready, and old is the one before.
func behind(t *testing.T, c *reconnect.Conn, s *wsServer, whole *atomic.Int32, ends func(old *websocket.Conn)) {
	t.Helper()
	before, old := whole.Load(), s.Conns()[0]
	for range 300 {
		require.NoError(t, old.Write(t.Context(), websocket.MessageText, []byte("hello")))
	}
	ends(old)
	synctest.Wait()
	for range 100 {
		wantMessage(t, c, 1, "hello")
	}
	require.EqualValues(t, 100, whole.Load()-before)
	c.Rotate(1, reconnect.Advice{})
	synctest.Wait()
	require.EqualValues(t, 2, c.Status().Session)
}

// The time of the old session is over while its reader, which reads a burst by itself, has much of that before it.
func TestASessionWhoseReaderIsBehindABurstHasNotOverlapped(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap, Drain: 5 * time.Millisecond}}
			withReader(t, o, func(t *testing.T, c *reconnect.Conn, s *wsServer, whole *atomic.Int32, _ func(string)) {
				behind(t, c, s, whole, func(*websocket.Conn) {})
				time.Sleep(time.Minute)
				seam := wantSeam(t, c)
				require.True(t, seam.Planned)
				require.False(t, seam.Overlapped, "200 messages are missing")
			})
		})
	}
}

// The peer has closed the old session before the next one is ready, and its reader sees that later, behind a burst.
func TestASessionThatHasEndedBehindABurstHasNotOverlapped(t *testing.T) {
	withReader(t, nil, func(t *testing.T, c *reconnect.Conn, s *wsServer, whole *atomic.Int32, _ func(string)) {
		closed := make(chan struct{})
		behind(t, c, s, whole, func(old *websocket.Conn) {
			go func() { old.Close(websocket.StatusNormalClosure, ""); close(closed) }()
		})
		for range 200 {
			wantMessage(t, c, 1, "hello")
		}
		<-closed
		synctest.Wait()
		seam := wantSeam(t, c)
		require.Equal(t, backoff.ReasonCloseNormal, seam.Reason)
		require.False(t, seam.Overlapped, "something may be missing after the close frame")
	})
}

// The reader was behind a burst once, and the supervisor has read the rest.
func TestASessionThatIsReadInTimeAgainHasOverlapped(t *testing.T) {
	o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapMix}}
	withReader(t, o, func(t *testing.T, c *reconnect.Conn, s *wsServer, _ *atomic.Int32, _ func(string)) {
		burst(t, c, s, slowly)
		c.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Minute)
		require.True(t, wantSeam(t, c).Overlapped)
	})
}
