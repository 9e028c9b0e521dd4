package link

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/internal/chunk"
)

// The sizes of chunks are 2, 8 and 64 KiB. Size 0 says that the message may be as large as the one before, and -1 asks for little.
func TestAPageHasRoomForTheNextMessage(t *testing.T) {
	const small, medium, large = 2 << 10, 8 << 10, chunk.Largest
	p := NewPage(newWorld(nil, noLimit).Link)
	var before []byte
	for _, step := range []struct {
		size, room, read int
	}{
		{0, small, 10}, // nothing came before
		{small, small, small},
		{small + 1, medium, 5000},
		{100, medium, medium + 1}, // the message is larger than it said
		{-1, medium, medium + 1},
		{0, large, large + 1},
		{large + 1, 0, large + 1},
		{-1, small, large + 1},
		{0, large, 10},
		{0, large, 10},
	} {
		room := p.room(step.size)
		require.Equal(t, step.room, cap(room), "%+v", step)
		if cap(room) > 0 && cap(room) == cap(before) {
			require.Same(t, &before[:1][0], &room[:1][0], "it is used again")
		}
		before = room
		p.Done(conn.Message{Data: make([]byte, step.read)})
	}
	p.Free()
	p.Free() // there is none
	require.Nil(t, p.chunk)
}

// deaf is a Transport that does not announce its waits.
type deaf struct {
	conn.Conn
	conn.Transport
}

func (deaf) BeforeBlock(func()) bool { return false }

// The memory is kept until the connection waits, so that a burst allocates once. A connection that announces no wait may wait after
// each message. One that is no Transport holds the memory while it waits.
func TestAPageKeepsMemoryAndPauseUntilTheConnectionWaits(t *testing.T) {
	type row struct {
		wrap           func(f *conntest.Fake) conn.Conn
		paused, memory bool // after a message
		holds          bool // memory, while the connection waits
	}
	each(t, noLimit, map[string]row{
		"announced":     {func(f *conntest.Fake) conn.Conn { return f.Conn() }, true, true, false},
		"not announced": {func(f *conntest.Fake) conn.Conn { return deaf{f, f.Conn().(conn.Transport)} }, false, false, false},
		"no Transport":  {func(f *conntest.Fake) conn.Conn { return f }, false, true, true},
	}, func(t *testing.T, w *world, row row) {
		peer := conntest.NewFake(transport)
		w.Begin(row.wrap(peer), w.Life(), noLimit)
		peer.Deliver(messages("ab")...)
		p := NewPage(w.Link)
		for range 2 {
			m, err := p.Read()
			require.NoError(t, err)
			w.Pause(Handling)
			p.Done(m)
			require.Equal(t, row.paused, w.Turn().Does() != Reading)
			require.Equal(t, row.memory, p.chunk != nil)
		}
		go p.Read()
		synctest.Wait()
		require.Equal(t, Reading, w.Turn().Does())
		require.Equal(t, row.holds, p.chunk != nil)
	})
}

// A Conn that is no Transport asks for memory before it knows the size.
func TestALinkReadsIntoTheMemoryOfItsCaller(t *testing.T) {
	for want, o := range map[int]*conntest.FakeOptions{-1: nil, 4: transport} {
		w, memory := newWorld(o, noLimit), make([]byte, 9)
		w.peer.Deliver(conn.TextMessage("four"))
		m, err := w.Read(func(size int) []byte { require.Equal(t, want, size); return memory })
		require.NoError(t, err)
		require.Equal(t, "four", string(m.Data))
		require.Same(t, &memory[0], &m.Data[0])
	}
}
