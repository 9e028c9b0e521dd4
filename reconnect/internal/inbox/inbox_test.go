package inbox_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/inbox"
)

// Two messages are in a chunk. The reader has read the first when a message needs another chunk.
func TestAChunkIsNotWrittenToWhileAMessageInItIsUnread(t *testing.T) {
	for range 20 { // the pool of free chunks may forget one
		in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20, Overflow: inbox.DropOldest}, new(inbox.Counts))
		put := func(letter string, size int) {
			data := append(in.Buffer(size), bytes.Repeat([]byte(letter), size)...)
			require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: data}}))
		}
		buf := make([]byte, 2000)
		take := func(letter string) {
			var m inbox.Item
			seam, empty := in.Take(t.Context(), &m, buf)
			require.Nil(t, seam)
			require.Nil(t, empty)
			require.Equal(t, letter, string(m.Data[:1]))
		}
		in.Take(t.Context(), new(inbox.Item), buf) // the reader has a buffer
		put("a", 100)
		put("b", 100)
		put("c", 1900) // the first chunk has no room for it
		take("a")
		put("d", 1900) // the second one neither
		take("b")
		take("c")
		take("d")
	}
}

// The messages of two sessions overlap, so that no seam is between them.
func TestEachSessionHasASeamForItsDroppedMessages(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20, Overflow: inbox.DropOldest}, new(inbox.Counts))
	for _, session := range []uint64{1, 2, 2, 2} {
		require.NoError(t, in.Put(inbox.Item{Session: session}))
	}
	for _, n := range []int{1, 2} { // session n has lost n messages
		seam, _ := in.Take(t.Context(), new(inbox.Item), nil)
		require.EqualValues(t, n, seam.Session)
		require.Equal(t, n, seam.Dropped)
	}
}

func TestTheEndOfASessionTakesItsMarkBack(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20}, new(inbox.Counts))
	in.PutMark(&inbox.Seam{Session: 1, Refetch: true})
	end := &inbox.Seam{Session: 1}
	in.PutSeam(end)
	seam, _ := in.Take(t.Context(), new(inbox.Item), nil)
	require.Same(t, end, seam)
	_, empty := in.Take(t.Context(), new(inbox.Item), nil)
	require.NotNil(t, empty)
}

func TestNoInboxIsEmpty(t *testing.T) {
	messages, bytes := (*inbox.Inbox)(nil).Depth()
	require.Zero(t, messages)
	require.Zero(t, bytes)
}

// seams reads all that is there, and returns the seams and how many messages there are.
func seams(in *inbox.Inbox) (all []inbox.Seam, messages int) {
	for {
		switch seam, empty := in.Take(context.Background(), new(inbox.Item), nil); {
		case empty != nil:
			return all, messages
		case seam != nil:
			all = append(all, *seam)
		default:
			messages++
		}
	}
}

// While nobody reads and the server flaps, the inbox keeps 64 seams. All further seams are joined into the newest, which says what any of them says.
func TestSeamsWithoutAMessageBetweenThemAreJoined(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20}, new(inbox.Counts))
	good := inbox.Seam{Planned: true, Overlapped: true, Resumed: true}
	for n := range 66 {
		s := good
		s.Session, s.Lost, s.Dropped = uint64(n), 1, 2
		in.PutSeam(&s)
	}
	for n, s := range []inbox.Seam{{Overlapped: true, Resumed: true}, {Resumed: true}, {}} {
		s.Session = uint64(66 + n)
		in.PutSeam(&s)
	}
	all, _ := seams(in)
	require.Len(t, all, 64)
	require.Equal(t, inbox.Seam{Session: 62, Lost: 1, Dropped: 2, Planned: true, Overlapped: true, Resumed: true}, all[62])
	require.Equal(t, inbox.Seam{Session: 68, Lost: 3, Dropped: 6}, all[63], "sessions 63 to 65, and the last three")

	for _, one := range []inbox.Seam{{Planned: true}, {Overlapped: true}, {Resumed: true}, {Refetch: true, Lost: 1}} { // the newest says it, one before does not
		for range 64 {
			in.PutSeam(&inbox.Seam{})
		}
		in.PutSeam(&one)
		all, _ = seams(in)
		require.Equal(t, inbox.Seam{Lost: one.Lost}, all[63])
	}
}

// Messages stay between the seams between which they came.
func TestSeamsWithAMessageBetweenThemStayApart(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 100, Bytes: 1 << 20}, new(inbox.Counts))
	in.PutSeam(&inbox.Seam{Lost: 1}) // no message is between this one and the next
	for n := range 70 {
		in.PutSeam(&inbox.Seam{Session: uint64(n), Lost: 1})
		require.NoError(t, in.Put(inbox.Item{Session: uint64(n)}))
	}
	in.PutSeam(&inbox.Seam{Session: 70, Lost: 1})
	in.PutSeam(&inbox.Seam{Session: 71, Lost: 1}) // no message is between these two
	all, messages := seams(in)
	require.Len(t, all, 71)
	require.Equal(t, 70, messages)
	require.Equal(t, inbox.Seam{Lost: 2}, all[0])
	require.Equal(t, inbox.Seam{Session: 71, Lost: 2}, all[70])
}

// Each message belongs to another session, so that each one that is dropped has a seam of its own. A mark is not joined.
func TestSeamsForDroppedMessagesAreJoinedToo(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20, Overflow: inbox.DropOldest}, new(inbox.Counts))
	for n := range 100 {
		require.NoError(t, in.Put(inbox.Item{Session: uint64(n)}))
	}
	in.PutMark(&inbox.Seam{Refetch: true})
	require.NoError(t, in.Put(inbox.Item{Session: 100}))
	all, messages := seams(in)
	require.Len(t, all, 64)
	require.Equal(t, 1, messages)
	require.Equal(t, inbox.Seam{Refetch: true}, all[63])
	newest := all[62]
	require.EqualValues(t, 99, newest.Session)
	require.Equal(t, 100-62, newest.Dropped, "it stands for those of the sessions 62 to 99")
	for n, s := range all[:62] {
		require.EqualValues(t, n, s.Session)
		require.Equal(t, 1, s.Dropped)
	}
}

// Whoever waits for room learns of each message that is taken, also while the others are larger than Bytes.
func TestRoomIsSignaledAtEachMessageOfFullInbox(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 9, Bytes: 100}, new(inbox.Counts))
	for _, size := range []int{10, 10, 200} {
		data := make([]byte, size)
		require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: data}, Session: 1}))
	}
	in.Publish()
	for n := range 3 {
		require.True(t, in.Full())
		room := in.Room()
		_, empty := in.Take(t.Context(), new(inbox.Item), nil)
		require.Nil(t, empty)
		select {
		case <-room:
		default:
			require.Fail(t, "no signal", "message %d", n)
		}
	}
	require.False(t, in.Full())
}

// Held holds as many messages as the inbox has room for; those without data count as 64 bytes.
func TestHeldIsFullWhenTheInboxWouldBe(t *testing.T) {
	for _, c := range []struct{ messages, bytes, size, full int }{
		{5, 1 << 20, 0, 1 << 14}, {5, 100, 0, 5}, {5, 100, 50, 2}, {5, 640, 0, 10}, {1, 130, 0, 2}, {3, 10_000, 64, 156},
	} {
		var h inbox.Held
		n := 1
		for !h.Add(inbox.Item{Message: conn.Message{Data: make([]byte, c.size)}}, inbox.Options{Messages: c.messages, Bytes: c.bytes}) {
			n++
		}
		require.Equal(t, c.full, n, "%+v", c)
		require.Len(t, h.Take(), n)
		require.Empty(t, h.Take())
	}
}

func TestHeldForgetsASession(t *testing.T) {
	var h inbox.Held
	o := inbox.Options{Messages: 9, Bytes: 100}
	item := func(session uint64) inbox.Item {
		return inbox.Item{Message: conn.Message{Data: make([]byte, 45)}, Session: session}
	}
	require.False(t, h.Add(item(1), o))
	require.False(t, h.Add(item(2), inbox.Options{Messages: 9, Bytes: 91}), "90 bytes are held")
	require.False(t, h.Forget(3))
	require.True(t, h.Forget(1))
	require.False(t, h.Forget(1))
	require.False(t, h.Add(item(2), inbox.Options{Messages: 9, Bytes: 91}), "90 bytes are held again")
	require.True(t, h.Add(item(2), inbox.Options{Messages: 9, Bytes: 135}))
	require.Len(t, h.Take(), 3)
}

// A message goes right into a chunk, unless it is too large, or the reader wants a slice of its own for each and the size is known.
func TestWhichMessagesHaveASliceOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		buffer bool // the reader has one
		size   int
		own    bool
	}{
		{true, -1, false}, {true, 0, false}, {true, 1, false}, {true, 64 << 10, false}, {true, 64<<10 + 1, true},
		{false, -1, false}, {false, 0, false}, {false, 1, true}, {false, 64<<10 + 1, true},
	} {
		in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20}, new(inbox.Counts))
		var buf []byte
		if c.buffer {
			buf = make([]byte, 1)
		}
		in.Take(context.Background(), new(inbox.Item), buf)
		room := in.Buffer(c.size)
		require.Equal(t, c.own, room == nil, "%+v", c)
		require.True(t, c.own || cap(room) >= c.size, "%+v", c)
	}
}

// A message whose size is not known gets as much room as the one before it had, and if much waits, as much as that.
func TestAnUnknownSizeIsThatOfTheMessageBefore(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20}, new(inbox.Counts))
	in.Take(context.Background(), new(inbox.Item), make([]byte, 1))
	put := func(size int) {
		require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: make([]byte, size)}}))
	}
	require.Equal(t, 2048, cap(in.Buffer(0)))
	put(5000)
	require.Equal(t, 8192, cap(in.Buffer(0)))
	put(20)
	in.PutSeam(&inbox.Seam{})
	in.Buffer(64 << 10)
	put(60_000)
	in.End()
	require.Equal(t, 64<<10, cap(in.Buffer(3000)), "60,000 bytes wait")
	in.End()
	require.Equal(t, 64<<10, cap(in.Buffer(1)), "60,000 bytes wait")
	in.End()
	require.Equal(t, 2048, cap(in.Buffer(-1)), "little room")
	in.End()
	seams(in)
	require.Equal(t, 64<<10, cap(in.Buffer(0)), "60,000 bytes came last")
}

// The next message goes right behind the one before, as long as the chunk has room for all of it.
func TestMessagesLieBehindEachOtherInAChunk(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20}, new(inbox.Counts))
	in.Take(t.Context(), new(inbox.Item), make([]byte, 1))
	for _, c := range []struct{ size, room int }{{1848, 2048}, {100, 200}, {99, 100}, {1, 1}, {1, 2048}} {
		data := in.Buffer(c.size)
		require.Equal(t, c.room, cap(data))
		require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: data[:c.size]}}))
		require.Empty(t, in.Wrong())
	}
}

// A slice that has room for nothing else goes to the reader as it is.
func TestASliceOfItsOwnIsNotCopied(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20}, new(inbox.Counts))
	data := []byte("data")
	require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: data[:4:4]}}))
	var m inbox.Item
	in.Take(t.Context(), &m, nil)
	require.Same(t, &data[0], &m.Data[0])
}

// collected is an inbox whose producer collects what is at hand.
type collected struct {
	*testing.T
	*inbox.Inbox
}

func (c collected) put(size, published int) {
	c.Helper()
	require.NoError(c, c.Put(inbox.Item{Message: conn.Message{Data: make([]byte, size)}}))
	messages, _ := c.Depth()
	require.EqualValues(c, published, messages)
}

// A producer that collects publishes the first message, which shows how much room there is, and then 16 together.
func TestAProducerThatCollectsPublishesBatches(t *testing.T) {
	c := collected{t, inbox.New(inbox.Options{Messages: 100, Bytes: 1 << 20}, new(inbox.Counts))}
	c.put(1, 1)
	c.put(1, 2)
	c.Begin(nil, true)
	c.put(1, 3)
	for range 15 {
		c.put(1, 3)
	}
	c.put(1, 19)
	c.put(1, 19)
	c.Skip(conn.Message{})
	c.put(1, 19)
	c.Begin(nil, true) // the room is not known
	c.put(1, 22)
	c.put(1, 22)
	c.Begin(nil, false)
	c.put(1, 24)
	c.put(1, 25)
}

// What is collected is published when it fills the inbox.
func TestWhatFillsTheInboxIsPublished(t *testing.T) {
	for _, o := range []inbox.Options{{Messages: 3, Bytes: 1 << 20}, {Messages: 10, Bytes: 100}} {
		c := collected{t, inbox.New(o, new(inbox.Counts))}
		c.Begin(nil, true)
		c.put(10, 1)
		c.put(40, 1)
		require.False(t, c.Full())
		c.put(50, 3)
		require.True(t, c.Full())
	}
}

// When a message is skipped, or is refused, nothing is kept for it.
func TestAMessageThatIsNotPutLeavesNoChunk(t *testing.T) {
	c := collected{t, inbox.New(inbox.Options{Messages: 1, Bytes: 100, Overflow: inbox.Disconnect}, new(inbox.Counts))}
	c.Skip(conn.Message{Data: c.Buffer(0)})
	require.Empty(t, c.Wrong())
	c.put(1, 1)
	require.ErrorIs(t, c.Put(inbox.Item{Message: conn.Message{Data: c.Buffer(0)}}), inbox.ErrFull)
	require.Empty(t, c.Wrong())
}
