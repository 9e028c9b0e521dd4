package receive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 10.
func TestAFullInboxBlocks(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 3})
		scene.Deliver(peer, 1, 10)
		require.Equal(t, uint64(3), c.Stats().Received, "no more is read")
		for i := 1; i <= 10; i++ {
			scene.WantMessage(t, c, 1, fmt.Sprint(i))
			synctest.Wait()
			require.Equal(t, uint64(min(3+i, 10)), c.Stats().Received, "each Read makes room for one more")
		}
		scene.WantNothing(t, c)
	})
}

// Promise 10.
func TestAFullInboxDropsTheOldest(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 3, Overflow: reconnect.InboxDropOldest})
		scene.Deliver(peer, 1, 10)
		seam := scene.WantSeam(t, c)
		require.Equal(t,
			reconnect.Seam{Session: 1, Cause: reconnect.ErrInboxFull, Reason: backoff.ReasonSlowReader, Dropped: 7},
			*seam)
		for i := 8; i <= 10; i++ {
			scene.WantMessage(t, c, 1, fmt.Sprint(i))
		}
		scene.WantNothing(t, c)
	})
}

// Promise 5: messages that are dropped before and after a loss are counted in a seam before it
// and one after it.
func TestDropsOfTwoSessionsAreToldApart(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 2, Overflow: reconnect.InboxDropOldest})
		scene.Deliver(peer, 1, 3) // 1 is dropped
		peer.Fail(scene.ErrLost)
		scene.Deliver(s.WantDial().Accept(), 4, 7) // 2 to 5 are dropped
		require.Equal(t,
			reconnect.Seam{Session: 1, Cause: reconnect.ErrInboxFull, Reason: backoff.ReasonSlowReader, Dropped: 3},
			*scene.WantSeam(t, c))
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, scene.ErrLost)
		require.Equal(t,
			reconnect.Seam{Session: 2, Cause: reconnect.ErrInboxFull, Reason: backoff.ReasonSlowReader, Dropped: 2},
			*scene.WantSeam(t, c))
		scene.WantMessage(t, c, 2, "6")
		scene.WantMessage(t, c, 2, "7")
		scene.WantNothing(t, c)
	})
}

// Promise 10.
func TestAFullInboxEndsTheSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 3, Overflow: reconnect.InboxDisconnect})
		scene.Deliver(peer, 1, 4)
		require.True(t, peer.Closed())
		for i := 1; i <= 3; i++ {
			scene.WantMessage(t, c, 1, fmt.Sprint(i))
		}
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, reconnect.ErrInboxFull)
		scene.Deliver(s.WantDial().Accept(), 5, 5)
		scene.WantMessage(t, c, 2, "5")
	})
}

// Promise 10.
func TestTheInboxIsBoundedInBytes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: 100})
		for range 5 {
			peer.Deliver(conn.Message{Type: conn.Binary, Data: make([]byte, 60)})
		}
		synctest.Wait()
		require.Equal(t, uint64(2), c.Stats().Received)
	})
}

// Promise 10: a message that was read makes room again, in bytes as well.
func TestWhatWasReadMakesRoomInBytes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: 100})
		peer.Deliver(scene.Blob(60), scene.Blob(60), scene.Blob(60), scene.Blob(60))
		synctest.Wait()
		for received := uint64(2); received <= 4; received++ {
			require.Equal(t, received, c.Stats().Received)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
	})
}

// Promise 10: the reader takes many messages at once, but those that Read has not returned yet
// count as unread, and the others do not.
func TestWhatWasReadOfABatchMakesRoom(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 4, Bytes: 60})
		for range 3 {
			peer.Deliver(scene.Blob(10))
		}
		synctest.Wait()
		for range 2 {
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		require.Equal(t, uint64(1), c.Stats().Unread)
		require.Equal(t, uint64(10), c.Stats().UnreadBytes)
		for range 4 {
			peer.Deliver(scene.Blob(20))
		}
		synctest.Wait()
		require.Equal(t, uint64(6), c.Stats().Received, "there is room for three")
		require.Equal(t, uint64(4), c.Stats().Unread)
		require.Equal(t, uint64(70), c.Stats().UnreadBytes)
	})
}

// A message that the reader has taken with others, but that Read has not returned, is dropped
// before a newer one.
func TestTheOldestOfABatchIsDropped(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 3, Overflow: reconnect.InboxDropOldest})
		scene.Deliver(peer, 1, 3)
		scene.WantMessage(t, c, 1, "1")
		scene.Deliver(peer, 4, 6) // 2 and 3 are dropped
		require.Equal(t, 2, scene.WantSeam(t, c).Dropped)
		for i := 4; i <= 6; i++ {
			scene.WantMessage(t, c, 1, fmt.Sprint(i))
		}
		scene.WantNothing(t, c)
	})
}

// Promise 10.
func TestTheOldestBytesAreDropped(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: reconnect.InboxDropOldest})
		peer.Deliver(scene.Blob(40), scene.Blob(40), scene.Blob(40), scene.Blob(20))
		synctest.Wait()
		require.Equal(t, 1, scene.WantSeam(t, c).Dropped)
		for _, size := range []int{40, 40, 20} {
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, size)
		}
	})
}

// A single message may be larger than the inbox.
func TestAMessageLargerThanTheInboxIsKept(t *testing.T) {
	for _, full := range []reconnect.InboxOverflow{
		reconnect.InboxBlock, reconnect.InboxDropOldest, reconnect.InboxDisconnect,
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: full})
			peer.Deliver(scene.Blob(200))
			synctest.Wait()
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, 200)
		})
	}
}

// The ring is reused, and no message overwrites another.
func TestTheRingKeepsMessagesApart(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 21})
		next := 0
		for batch := 1; batch < 40; batch++ {
			scene.Deliver(peer, next, next+batch-1)
			for range batch {
				scene.WantMessage(t, c, 1, fmt.Sprint(next))
				synctest.Wait()
				next++
			}
		}
	})
}

// Memory is used again when all messages in it were read, and no sooner, however those lie.
func TestMemoryInUseIsNotWrittenTo(t *testing.T) {
	scene.WithWSServer(t, conntest.NeverRead, func(t *testing.T, server *scene.WSServer) {
		c, pipe := server.Ready(t, nil), server.Pipe(t)
		r := rand.New(rand.NewPCG(1, 2))
		sent, read, buf := 0, 0, make([]byte, 2000)
		size := func(i int) int { return 100 + i*i%1500 }
		for sent < 5000 {
			for range r.IntN(60 - (sent - read)) {
				f := conntest.Frame{
					Head:    conntest.Fin | conntest.TextFrame,
					Payload: scene.Named(fmt.Sprint(sent), size(sent)).Data,
				}
				pipe.Inject(conntest.ToClient, f.Bytes())
				sent++
			}
			synctest.Wait()
			for range r.IntN(sent - read + 1) {
				m, err := c.Read(t.Context(), buf)
				require.NoError(t, err)
				require.Equal(t, string(scene.Named(fmt.Sprint(read), size(read)).Data), string(m.Data))
				read++
			}
		}
	})
}

// Promises 5 and 10: a reader that is away for very long costs a bounded amount of memory, and
// still learns how many connections were lost.
func TestManyUnreadSeamsAreJoined(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		const losses = 100
		for range losses {
			s.WantDial().Accept().Fail(scene.ErrLost)
		}
		s.WantDial().Accept().Deliver(scene.Text("a"))
		synctest.Wait()
		seams, lost := 0, 0
		for lost < losses {
			seams++
			lost += scene.WantSeam(t, c).Lost
		}
		require.Equal(t, 64, seams)
		scene.WantMessage(t, c, losses+1, "a")
	})
}

// Promise 10: a reader that is away while messages are dropped costs a bounded amount of memory
// too.
func TestManyUnreadDropsAreJoined(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Inbox = reconnect.Inbox{Messages: 2, Overflow: reconnect.InboxDropOldest}
		c := s.Open(&o)
		// Lose many sessions in each of which messages are dropped.
		const losses, each = 100, 5
		for range losses {
			peer := s.WantDial().Accept()
			scene.Deliver(peer, 1, each)
			peer.Fail(scene.ErrLost)
		}
		s.WantDial().Accept()
		// Read it all: each loss and each message is accounted for by few seams.
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

// faked is a Fake that is a Transport, of which a test replaces some methods.
type faked struct {
	*conntest.Fake
	conn.Transport
}

func newFaked() faked {
	f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	return faked{f, f.Conn().(conn.Transport)}
}

// batchingConn is a connection that announces a wait when the test calls flush.
type batchingConn struct {
	faked
	flush func()
}

func (c *batchingConn) BeforeBlock(f func()) bool { c.flush = f; return true }

// openBatching opens a Conn over a batchingConn, and returns that and what one Read returns.
func openBatching(t *testing.T, in reconnect.Inbox) (*batchingConn, <-chan string) {
	peer := &batchingConn{faked: newFaked()}
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }), &reconnect.Options{Inbox: in})
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c) })
	got := make(chan string, 1)
	go func() {
		m, err := c.Read(context.Background(), make([]byte, 16))
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(m.Data)
	}()
	synctest.Wait()
	return peer, got
}

// Messages that come in one burst wake the reader once: when the connection is about to wait.
func TestMessagesAreCollectedUntilTheConnectionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, got := openBatching(t, reconnect.Inbox{})
		scene.Deliver(peer.Fake, 1, 15)
		require.Empty(t, got)
		peer.flush()
		require.Equal(t, "1", <-got)
	})
}

// A batch of 16 messages wakes the reader, though the connection does not wait.
func TestABatchIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, got := openBatching(t, reconnect.Inbox{})
		scene.Deliver(peer.Fake, 1, 16)
		require.Equal(t, "1", <-got)
	})
}

// A full inbox wakes the reader at once, because the supervisor may block on it.
func TestAFullInboxIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, got := openBatching(t, reconnect.Inbox{Messages: 2})
		scene.Deliver(peer.Fake, 1, 2)
		require.Equal(t, "1", <-got)
	})
}

// Promise 5: a loss wakes the reader at once.
func TestALossIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, got := openBatching(t, reconnect.Inbox{})
		scene.Deliver(peer.Fake, 1, 1)
		peer.Fail(scene.ErrLost)
		require.Equal(t, "1", <-got)
	})
}

// A connection that cannot announce its waits gets no batches.
func TestWithoutATransportEachMessageWakesTheReader(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		got := make(chan string, 1)
		go func() {
			m, _ := c.Read(context.Background(), nil)
			got <- string(m.Data)
		}()
		scene.Deliver(s.WantDial().Accept(), 1, 1)
		require.Equal(t, "1", <-got)
	})
}

// eagerConn is a connection that announces a wait before each Read.
type eagerConn struct {
	faked
	f func()
}

func (c *eagerConn) BeforeBlock(f func()) bool { c.f = f; return true }

func (c *eagerConn) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	if c.f != nil {
		c.f()
	}
	return c.faked.ReadBuffer(buffer)
}

func (c *eagerConn) Read(buf []byte) (conn.Message, error) {
	return c.ReadBuffer(func(int) []byte { return buf })
}

// A message that OnSession delivers does not wait until the session is ready.
func TestWhatALaterSessionDeliversWakesTheReaderAtOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		fakes := make(chan *conntest.Fake, 2) // one for each session
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			c := &eagerConn{faked: newFaked()}
			fakes <- c.Fake
			return c, nil
		})
		// OnSession of the second session delivers a message and goes on for 20 s.
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(scene.Text("early"))
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		c, err := reconnect.New(dial, &o)
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		// The first session is lost.
		(<-fakes).Fail(scene.ErrLost)
		synctest.Wait()
		scene.WantSeam(t, c)
		// The message is there when the second session opens.
		m, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "early", string(m.Data))
		require.Equal(t, time.Second, s.Now().Truncate(time.Millisecond))
	})
}

// Promise 10: the messages that the connection has at hand are collected, but never beyond the room
// that the messages of OnSession have left.
func TestTheInboxIsBoundedAfterWhatALaterSessionDelivers(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Pings: true, Transport: true}
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Inbox = reconnect.Inbox{Messages: 8}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			for range 6 * (op.Session - 1) {
				op.Deliver(scene.Text("early"))
			}
			return nil
		}
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("first"))
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		d, next := s.WantDial(), conntest.NewFake(&s.Fake)
		next.Deliver(scene.Text("1"), scene.Text("2"), scene.Text("3"), scene.Text("4"), scene.Text("5"))
		d.Answer <- func() (conn.Conn, error) { return next.Conn(), nil }
		synctest.Wait()
		require.Equal(t, uint64(8), c.Stats().Unread)
	})
}

// Promise 10: an inbox that is empty again keeps next to nothing, however large the messages
// were, and however many waited.
func TestAnEmptyInboxKeepsLittle(t *testing.T) {
	t.Run("Conn", func(t *testing.T) { testEmptyInbox(t, func(c *sizedConn) conn.Conn { return c }) })
	t.Run("Transport", func(t *testing.T) {
		testEmptyInbox(t, func(c *sizedConn) conn.Conn { return lateSizedConn{c, newFaked()} })
	})
}

func testEmptyInbox(t *testing.T, connOver func(*sizedConn) conn.Conn) {
	const conns, burst = 50, 1000
	var all []*reconnect.Conn
	var peers []*sizedConn
	// Open the connections.
	for range conns {
		peer := &sizedConn{conntest.NewFake(nil), make(chan int)}
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return connOver(peer), nil }),
			&reconnect.Options{Inbox: reconnect.Inbox{Messages: 2 * burst}})
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		defer close(peer.sizes)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		all, peers = append(all, c), append(peers, peer)
	}
	// By each come many small messages and some large ones, and are read.
	before := heap()
	buf := make([]byte, 0, 64<<10)
	for i, c := range all {
		for n := range burst + 20 {
			peers[i].sizes <- map[bool]int{true: 1, false: 40_000}[n < burst]
		}
		for range burst + 20 {
			_, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
		}
	}
	// Little of that is kept.
	kept := (int64(heap()) - int64(before)) / conns
	t.Logf("%d bytes more in each", kept)
	require.Less(t, kept, int64(4<<10))
	runtime.KeepAlive(buf)
}

// sizedConn is a connection that receives messages of the sizes in a channel, and keeps none.
type sizedConn struct {
	*conntest.Fake
	sizes chan int
}

func (c *sizedConn) Read(buf []byte) (conn.Message, error) {
	n, ok := <-c.sizes
	if !ok {
		return conn.Message{}, io.EOF
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	return conn.Message{Type: conn.Binary, Data: buf[:n]}, nil
}

// A reader without a buffer gets the very slice that the connection has read into, so that
// nothing is copied.
func TestWithoutABufferNothingIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := &exactConn{sizedConn: sizedConn{conntest.NewFake(nil), make(chan int)}, Transport: newFaked()}
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }), nil)
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		defer close(peer.sizes)
		for i, buf := range [][]byte{nil, nil, make([]byte, 4000), make([]byte, 4000)} {
			peer.sizes <- 3000
			synctest.Wait()
			m, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
			require.Equal(t, i == 1, &peer.last[0] == &m.Data[0], "what the reader wants is known after its first Read")
			require.Equal(t, i == 1 || i == 2, peer.own)
		}
	})
}

// exactConn is a sizedConn that announces the size of a message, and keeps the last.
type exactConn struct {
	sizedConn
	conn.Transport
	last []byte
	own  bool // last is in a slice that the connection has made
}

func (*exactConn) BeforeBlock(func()) bool { return false }

func (c *exactConn) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	n, ok := <-c.sizes
	if !ok {
		return conn.Message{}, io.EOF
	}
	buf := buffer(n)
	if c.own = cap(buf) < n; c.own {
		buf = make([]byte, n)
	}
	c.last = buf[:n]
	return conn.Message{Type: conn.Binary, Data: c.last}, nil
}

// lateSizedConn is a sizedConn that asks for a buffer when a message comes.
type lateSizedConn struct {
	*sizedConn
	conn.Transport
}

func (lateSizedConn) BeforeBlock(func()) bool { return false }

func (c lateSizedConn) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	n, ok := <-c.sizes
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
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 1 << 20, Bytes: 1 << 20}})
		peer := s.WantDial().Accept()
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
	for range 3 { // because what is in a sync.Pool survives one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
