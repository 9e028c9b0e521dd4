package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

func deliver(peer *conntest.Fake, from, to int) {
	for i := from; i <= to; i++ {
		peer.Deliver(text(fmt.Sprint(i)))
	}
	synctest.Wait()
}

func readInbox(t *testing.T, s *scene, in reconnect.Inbox) (*reconnect.Conn, *conntest.Fake) {
	o := run(every(time.Second))
	o.Inbox = in
	c := s.open(&o)
	return c, s.wantDial().accept()
}

// Promise 10.
func TestAFullInboxBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 3})
		deliver(peer, 1, 10)
		require.Equal(t, uint64(3), c.Stats().Received, "no more is read")
		for i := 1; i <= 10; i++ {
			wantMessage(t, c, 1, fmt.Sprint(i))
			synctest.Wait()
		}
		wantNothing(t, c)
	})
}

// Promise 10.
func TestAFullInboxDropsTheOldest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 3, Overflow: reconnect.OverflowDropOldest})
		deliver(peer, 1, 10)
		seam := wantSeam(t, c)
		require.Equal(t, reconnect.Seam{Session: 1, Cause: reconnect.ErrInboxFull, Dropped: 7}, *seam)
		for i := 8; i <= 10; i++ {
			wantMessage(t, c, 1, fmt.Sprint(i))
		}
		wantNothing(t, c)
	})
}

// Promise 5: what is dropped around a loss is told in its place.
func TestDropsOfTwoSessionsAreToldApart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 2, Overflow: reconnect.OverflowDropOldest})
		deliver(peer, 1, 3) // 1 is dropped
		peer.Fail(errLost)
		deliver(s.wantDial().accept(), 4, 7) // 2 to 5 are dropped
		require.Equal(t, reconnect.Seam{Session: 1, Cause: reconnect.ErrInboxFull, Dropped: 3}, *wantSeam(t, c))
		require.ErrorIs(t, wantSeam(t, c).Cause, errLost)
		require.Equal(t, reconnect.Seam{Session: 2, Cause: reconnect.ErrInboxFull, Dropped: 2}, *wantSeam(t, c))
		wantMessage(t, c, 2, "6")
		wantMessage(t, c, 2, "7")
		wantNothing(t, c)
	})
}

// Promise 10.
func TestAFullInboxEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 3, Overflow: reconnect.OverflowDisconnect})
		deliver(peer, 1, 4)
		require.True(t, peer.Closed())
		for i := 1; i <= 3; i++ {
			wantMessage(t, c, 1, fmt.Sprint(i))
		}
		require.ErrorIs(t, wantSeam(t, c).Cause, reconnect.ErrInboxFull)
		deliver(s.wantDial().accept(), 5, 5)
		wantMessage(t, c, 2, "5")
	})
}

func TestDiscardKeepsNothingAndStaysAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Overflow: reconnect.OverflowDiscard})
		deliver(peer, 1, 1000)
		require.Equal(t, uint64(1000), c.Stats().Received)
		_, err := c.Read(t.Context(), nil)
		require.ErrorContains(t, err, "discards")
	})
}

// Promise 10.
func TestTheInboxIsBoundedInBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100})
		for range 5 {
			peer.Deliver(conn.Message{Type: conn.Binary, Data: make([]byte, 60)})
		}
		synctest.Wait()
		require.Equal(t, uint64(2), c.Stats().Received)
	})
}

// A full inbox must not keep a writer's connection from being replaced.
func TestABlockedInboxNoticesThatTheConnectionWasCut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 2})
		deliver(peer, 1, 5)
		peer.FailWrite(errLost)
		require.Error(t, c.Write(t.Context(), text("x")))
		s.wantDial().accept()
		require.Equal(t, uint64(2), c.Status().Session)
		wantMessage(t, c, 1, "1")
		wantMessage(t, c, 1, "2")
		require.ErrorIs(t, wantSeam(t, c).Cause, errLost)
	})
}

// Read copies into the caller's buffer, and makes one of the exact size otherwise.
func TestReadUsesTheBufferOfItsCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{})
		deliver(peer, 1, 1)
		peer.Deliver(text("longer than four"))
		buf := make([]byte, 4)
		m, err := c.Read(t.Context(), buf)
		require.NoError(t, err)
		require.Same(t, &buf[0], &m.Data[0])
		m, err = c.Read(t.Context(), buf)
		require.NoError(t, err)
		require.Equal(t, len(m.Data), cap(m.Data))
	})
}

// The ring is reused, and no message shows through another.
func TestTheRingKeepsMessagesApart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Messages: 21})
		next := 0
		for batch := 1; batch < 40; batch++ {
			deliver(peer, next, next+batch-1)
			for range batch {
				wantMessage(t, c, 1, fmt.Sprint(next))
				synctest.Wait()
				next++
			}
		}
	})
}

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // what lies in a sync.Pool survives one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// hose is a connection by which messages of given sizes come, and that keeps none.
type hose struct {
	*conntest.Fake
	sizes chan int
}

func (h *hose) Read(buf []byte) (conn.Message, error) {
	n, ok := <-h.sizes
	if !ok {
		return conn.Message{}, io.EOF
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	return conn.Message{Type: conn.Binary, Data: buf[:n]}, nil
}

// lateHose is a hose that asks for a buffer when a message comes.
type lateHose struct{ *hose }

func (h lateHose) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	n, ok := <-h.sizes
	if !ok {
		return conn.Message{}, io.EOF
	}
	buf := buffer(0)
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	return conn.Message{Type: conn.Binary, Data: buf[:n]}, nil
}

// Promise 10: an inbox that is empty again keeps next to nothing, however large the
// messages were, and however many waited.
func TestAnEmptyInboxKeepsLittle(t *testing.T) {
	t.Run("Conn", func(t *testing.T) { testEmptyInbox(t, func(h *hose) conn.Conn { return h }) })
	t.Run("BufferReader", func(t *testing.T) { testEmptyInbox(t, func(h *hose) conn.Conn { return lateHose{h} }) })
}

func testEmptyInbox(t *testing.T, connOver func(*hose) conn.Conn) {
	const conns, burst = 50, 1000
	var all []*reconnect.Conn
	var hoses []*hose
	for range conns {
		h := &hose{conntest.NewFake(nil), make(chan int)}
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return connOver(h), nil }),
			&reconnect.Options{Inbox: reconnect.Inbox{Messages: 2 * burst}})
		require.NoError(t, err)
		defer quit(c)
		defer close(h.sizes)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		all, hoses = append(all, c), append(hoses, h)
	}
	before := heap()
	buf := make([]byte, 0, 64<<10)
	for i, c := range all {
		for n := range burst + 20 {
			hoses[i].sizes <- map[bool]int{true: 1, false: 40_000}[n < burst]
		}
		for range burst + 20 {
			_, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
		}
	}
	kept := (int64(heap()) - int64(before)) / conns
	t.Logf("%d bytes more in each", kept)
	require.Less(t, kept, int64(4<<10))
	runtime.KeepAlive(buf)
}

// Promise 10: Inbox.Bytes bounds the memory of what waits.
func TestWhatWaitsToBeReadTakesItsBytesAndLittleMore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 1 << 20, Bytes: 1 << 20}})
		peer := s.wantDial().accept()
		before := heap()
		for range 20_000 {
			peer.Deliver(conn.Message{Type: conn.Binary, Data: make([]byte, 100)})
		}
		synctest.Wait()
		waiting := c.Stats().Unread
		require.Equal(t, uint64(1<<20/100+1), waiting)
		for range 20_000 - int(waiting) { // so that the fake holds nothing
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, waiting, c.Stats().Unread)
		kept := int64(heap()) - int64(before)
		t.Logf("%d messages, %d bytes: %d bytes of memory", waiting, c.Stats().UnreadBytes, kept)
		require.Less(t, kept, int64(3<<20), "with the slots of the ring")
	})
}

// Promise 11: what came before the end of a Shutdown can be read, also by one who
// waits across it.
func TestAReadThatWaitsAcrossAShutdownEndsWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept()
		read := make(chan error, 1)
		go func() { _, err := c.Read(context.Background(), nil); read <- err }()
		synctest.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		var seam *reconnect.Seam
		require.ErrorAs(t, <-read, &seam, "first that the session has ended")
		_, err := c.Read(context.Background(), nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
