package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

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

func blob(size int) conn.Message { return conn.Message{Type: conn.Binary, Data: make([]byte, size)} }

// Promise 10: what was read makes room again, in bytes as well.
func TestWhatWasReadMakesRoomInBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100})
		peer.Deliver(blob(60), blob(60), blob(60), blob(60))
		synctest.Wait()
		for received := uint64(2); received <= 4; received++ {
			require.Equal(t, received, c.Stats().Received)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
	})
}

// Promise 10.
func TestTheOldestBytesAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: reconnect.OverflowDropOldest})
		peer.Deliver(blob(40), blob(40), blob(40), blob(20))
		synctest.Wait()
		require.Equal(t, 1, wantSeam(t, c).Dropped)
		for _, size := range []int{40, 40, 20} {
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, size)
		}
	})
}

// A single message may be larger than the inbox.
func TestAMessageLargerThanTheInboxIsKept(t *testing.T) {
	for _, full := range []reconnect.Overflow{reconnect.OverflowBlock, reconnect.OverflowDropOldest, reconnect.OverflowDisconnect} {
		inBubble(t, func(t *testing.T, s *scene) {
			c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: full})
			peer.Deliver(blob(200))
			synctest.Wait()
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, 200)
		})
	}
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

// Promises 5 and 10: a reader that is away for very long does not cost memory without end,
// and still learns how many connections were lost.
func TestManyUnreadSeamsAreJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		const losses = 100
		for range losses {
			s.wantDial().accept().Fail(errLost)
		}
		s.wantDial().accept().Deliver(text("a"))
		synctest.Wait()
		seams, lost := 0, 0
		for lost < losses {
			seams++
			lost += wantSeam(t, c).Lost
		}
		require.Equal(t, 64, seams)
		wantMessage(t, c, losses+1, "a")
	})
}

// Promise 10: nor does one that is away while messages are dropped.
func TestManyUnreadDropsAreJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.Inbox = reconnect.Inbox{Messages: 2, Overflow: reconnect.OverflowDropOldest}
		c := s.open(&o)
		const losses, each = 100, 5
		for range losses {
			peer := s.wantDial().accept()
			deliver(peer, 1, each)
			peer.Fail(errLost)
		}
		s.wantDial().accept()
		seams, lost, got := 0, 0, 0
		for lost < losses {
			m, err := c.Read(t.Context(), nil)
			var seam *reconnect.Seam
			if errors.As(err, &seam) {
				seams++
				lost += seam.Lost
				got += seam.Dropped
			} else if require.NoError(t, err); len(m.Data) > 0 {
				got++
			}
		}
		require.Equal(t, losses*each, got, "each message was read or counted")
		require.LessOrEqual(t, seams, 64)
	})
}

// hoard is a conn.BlockNotifier that says that it waits when the test wants it to.
type hoard struct {
	*conntest.Fake
	tell func()
}

func (h *hoard) BeforeBlock(f func()) bool { h.tell = f; return true }

// hoarding returns a Conn over a hoard, and what comes of one Read of it.
func hoarding(t *testing.T, in reconnect.Inbox) (*hoard, <-chan string) {
	h := &hoard{Fake: conntest.NewFake(nil)}
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return h, nil }), &reconnect.Options{Inbox: in})
	require.NoError(t, err)
	t.Cleanup(func() { quit(c) })
	got := make(chan string, 1)
	go func() {
		m, err := c.Read(context.Background(), nil)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(m.Data)
	}()
	synctest.Wait()
	return h, got
}

// What comes in one burst wakes the reader once: when the connection waits.
func TestMessagesAreCollectedUntilTheConnectionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 15)
		require.Empty(t, got)
		h.tell()
		require.Equal(t, "1", <-got)
	})
}

func TestABatchIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 16)
		require.Equal(t, "1", <-got)
	})
}

// A full inbox is told at once, since the supervisor may block on it.
func TestAFullInboxIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{Messages: 2})
		deliver(h.Fake, 1, 2)
		require.Equal(t, "1", <-got)
	})
}

// Promise 5.
func TestALossIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 1)
		h.Fail(errLost)
		require.Equal(t, "1", <-got)
	})
}

// A connection that cannot tell when it waits has nothing collected.
func TestWithoutAWaiterEachMessageIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		got := make(chan string, 1)
		go func() {
			m, _ := c.Read(context.Background(), nil)
			got <- string(m.Data)
		}()
		deliver(s.wantDial().accept(), 1, 1)
		require.Equal(t, "1", <-got)
	})
}

// told is a conn.BlockNotifier over a Fake.
type told struct {
	*conntest.Fake
	f func()
}

func (w *told) BeforeBlock(f func()) bool { w.f = f; return true }

func (w *told) Read(buf []byte) (conn.Message, error) {
	if w.f != nil {
		w.f()
	}
	return w.Fake.Read(buf)
}

// What OnSession delivers does not wait for the session to be ready.
func TestWhatALaterSessionDeliversIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		fakes := make(chan *conntest.Fake, 2) // one for each session
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			w := &told{Fake: conntest.NewFake(nil)}
			fakes <- w.Fake
			return w, nil
		})
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(text("early"))
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		c, err := reconnect.New(dial, &o)
		require.NoError(t, err)
		defer quit(c)
		(<-fakes).Fail(errLost)
		synctest.Wait()
		wantSeam(t, c)
		m, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "early", string(m.Data))
		require.Equal(t, time.Second, s.now().Truncate(time.Millisecond))
	})
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

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // what lies in a sync.Pool survives one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
