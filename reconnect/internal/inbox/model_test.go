package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/inbox"
)

// model is an inbox that is one list, and a producer and a reader that take turns.
type model struct {
	*testing.T
	r        *rand.Rand
	o        inbox.Options
	in       *inbox.Inbox
	counts   inbox.Counts
	list     []entry // what is published and not read
	pending  []inbox.Item
	session  uint64
	marked   bool
	read     []inbox.Item    // with the slices that the reader got, and keeps
	beside   bool            // messages come beside the link's, too
	collects bool            // as the last Collect has said
	waiting  <-chan struct{} // the reader waits here
	room     <-chan struct{} // the producer waits here
	bytes    uint64          // of all messages
	skipped  uint64
	put      uint64
}

// entry is a message or a seam.
type entry struct {
	inbox.Item
	seam *inbox.Seam
}

func (m *model) depth() (messages, bytes int) {
	for _, e := range m.list {
		if e.seam == nil {
			messages++
			bytes += len(e.Data)
		}
	}
	return messages, bytes
}

func (m *model) full() bool {
	messages, bytes := m.depth()
	return messages >= m.o.Messages || bytes >= m.o.Bytes
}

// message makes a message with random data.
func (m *model) message(into func(size int) []byte) conn.Message {
	size := []int{0, 1, m.r.IntN(100), m.r.IntN(3000), 2048, 8192, 64 << 10, 70_000}[m.r.IntN(8)]
	if m.r.IntN(4) > 0 {
		size = m.r.IntN(300)
	}
	data := into(size)
	if cap(data) < size {
		data = make([]byte, 0, size)
	}
	for first := m.r.Uint32(); len(data) < size; {
		data = append(data, byte(first)+byte(len(data)))
	}
	return conn.Message{Data: data}
}

// fromLink is a message that comes by the link: into memory of the inbox if its size, or what is guessed, has room there.
func (m *model) fromLink() {
	said := m.r.IntN(3)
	msg := m.message(func(size int) []byte {
		switch said {
		case 0:
			size = 0 // the size is not known
		case 1:
			size = -1
		}
		return m.in.Buffer(size)
	})
	m.published() // the next message may need other memory
	if m.r.IntN(10) == 0 {
		m.in.Publish() // the link waits in the middle of the message
		m.published()
		require.Empty(m, m.pending)
	}
	if m.r.IntN(4) == 0 {
		m.take()
	}
	switch m.r.IntN(20) {
	case 0:
		m.in.End()
		m.published()
		require.Empty(m, m.pending)
		return
	case 1:
		m.in.Skip(msg)
		m.skipped++
		m.bytes += uint64(len(msg.Data))
		m.published()
		return
	}
	refused := m.o.Overflow == inbox.Disconnect && m.full()
	err := m.in.Put(inbox.Item{Message: msg, Session: m.session})
	require.Equal(m, refused, errors.Is(err, inbox.ErrFull))
	m.bytes += uint64(len(msg.Data))
	if refused {
		m.skipped++
	} else {
		m.put++
		m.pending = append(m.pending, m.copy(msg))
	}
	m.published()
	require.True(m, !refused || len(m.pending) == 0)
}

// copy returns an item with a copy of the data, because the inbox may use the memory again.
func (m *model) copy(msg conn.Message) inbox.Item {
	msg.Data = slices.Clone(msg.Data)
	return inbox.Item{Message: msg, Session: m.session}
}

// published moves what is published, as the counts say, and drops what is too much.
func (m *model) published() {
	left := int(m.put + m.skipped - m.counts.Messages.Load())
	require.Less(m, left, 16, "so many are published although more are at hand")
	require.True(m, left == 0 || m.collects, "nothing is kept back")
	messages, bytes := m.depth()
	for _, item := range m.pending[:len(m.pending)-left] {
		m.list = append(m.list, entry{Item: item})
	}
	m.pending = slices.Clone(m.pending[len(m.pending)-left:])
	size := 0
	for _, item := range m.pending {
		size += len(item.Data)
	}
	if left > 0 && !m.beside {
		require.Less(m, messages+left, m.o.Messages, "no more is kept back than there is room for")
		require.Less(m, bytes+size, m.o.Bytes)
	}
	require.Equal(m, m.bytes-uint64(size), m.counts.Bytes.Load())
	m.drop()
}

// drop drops the oldest messages, if that is the policy: a seam takes their place.
func (m *model) drop() {
	for m.o.Overflow == inbox.DropOldest {
		messages, bytes := m.depth()
		if messages <= m.o.Messages && (bytes <= m.o.Bytes || messages <= 1) {
			return
		}
		i := slices.IndexFunc(m.list, func(e entry) bool { return e.seam == nil })
		session := m.list[i].Session
		if i > 0 && m.list[i-1].seam.Dropped > 0 && m.list[i-1].seam.Session == session {
			m.list[i-1].seam.Dropped++
			m.list = slices.Delete(m.list, i, i+1)
		} else {
			m.list[i] = entry{seam: &inbox.Seam{
				Session: session, Cause: inbox.ErrFull, Reason: backoff.ReasonSlowReader, Dropped: 1, Refetch: m.marked,
			}}
		}
	}
}

// lose ends the session: its seam comes after all messages, and takes its mark back.
func (m *model) lose() {
	s := inbox.Seam{Session: m.session, Lost: m.r.IntN(3), Planned: m.r.IntN(2) == 0, Refetch: m.r.IntN(2) == 0}
	mine := s
	m.in.PutSeam(&s)
	m.published()
	require.Empty(m, m.pending)
	m.marked = false
	m.list = slices.DeleteFunc(m.list, func(e entry) bool { return e.seam != nil && e.seam.Marks() })
	for _, e := range m.list {
		if e.seam != nil {
			e.seam.Refetch = false
		}
	}
	m.list = append(m.list, entry{seam: &mine})
	m.session++
}

// mark puts the mark of the session after what is published.
func (m *model) mark() {
	if m.marked || m.r.IntN(2) == 0 {
		return
	}
	m.in.PutMark(&inbox.Seam{Session: m.session, Refetch: true})
	m.marked = true
	m.list = append(m.list, entry{seam: &inbox.Seam{Session: m.session, Refetch: true}})
}

// fromBeside is a message that was counted before.
func (m *model) fromBeside() {
	msg := m.message(func(int) []byte { return nil })
	if m.r.IntN(2) == 0 {
		msg.Data = slices.Grow(msg.Data, 100) // it has room for more
	}
	refused := m.o.Overflow == inbox.Disconnect && m.full()
	err := m.in.PutBeside(inbox.Item{Message: msg, Session: m.session})
	require.Equal(m, refused, errors.Is(err, inbox.ErrFull))
	if !refused {
		m.list = append(m.list, entry{Item: m.copy(msg)})
		m.drop()
	}
}

// take reads one message or seam, with a buffer of some size.
func (m *model) take() {
	var got inbox.Item
	var buf []byte
	if m.r.IntN(3) > 0 {
		buf = make([]byte, m.r.IntN(400))
	}
	seam, empty := m.in.Take(context.Background(), &got, buf)
	if m.waiting = empty; empty != nil {
		require.Empty(m, m.list, "nothing to read")
		select {
		case <-empty: // a wake-up that nobody has heard
		default:
		}
		return
	}
	require.NotEmpty(m, m.list)
	next := m.list[0]
	m.list = m.list[1:]
	require.Equal(m, next.seam, seam)
	if seam != nil {
		return
	}
	require.Equal(m, next.Session, got.Session)
	require.True(m, slices.Equal(next.Data, got.Data), "the data is that of the message")
	switch n := len(got.Data); {
	case n == 0:
	case n <= cap(buf):
		require.Same(m, &buf[:1][0], &got.Data[0], "the data is in the buffer")
	default:
		require.Equal(m, n, cap(got.Data), "the slice has room for nothing else")
		m.read = append(m.read, inbox.Item{Message: got.Message}, inbox.Item{Message: next.Message})
	}
}

// agree asserts that the inbox says what the model says.
func (m *model) agree() {
	require.Empty(m, m.in.Wrong())
	messages, bytes := m.depth()
	gotMessages, gotBytes := m.in.Depth()
	require.Equal(m, []int{messages, bytes}, []int{int(gotMessages), int(gotBytes)})
	require.Equal(m, m.full(), m.in.Full())
	held := max(m.o.Messages, m.o.Bytes/64)
	require.Equal(m, messages-m.o.Messages >= held || bytes-m.o.Bytes >= m.o.Bytes, m.in.Overfull())
	if m.waiting != nil && len(m.list) > 0 {
		require.Len(m, m.waiting, 1, "the reader wakes")
		m.waiting = nil
	}
	if m.room != nil && !m.full() {
		select {
		case <-m.room:
		default:
			m.Fatal("there is room, and nobody was told")
		}
		m.room = nil
	}
	if m.full() {
		m.room = m.in.Room()
	}
}

// The inbox does what one list would do, whatever is put and read, in whatever order.
func TestAnInboxIsAQueue(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			o := inbox.Options{
				Messages: []int{1, 2, 5, 30, 200}[r.IntN(5)], Bytes: []int{100, 1000, 20_000, 1 << 20}[r.IntN(4)],
				Overflow: inbox.Overflow(r.IntN(3)),
			}
			m := &model{T: t, r: r, o: o, session: 1, beside: r.IntN(2) == 0}
			m.in = inbox.New(o, &m.counts)
			eager := r.IntN(4) // how fast the reader is
			for range 300 {
				m.step(r.IntN(20), eager)
				m.agree()
			}
			m.in.Publish()
			m.published()
			for len(m.list) > 0 {
				m.take()
				m.agree()
			}
			for i := 0; i < len(m.read); i += 2 {
				require.True(t, slices.Equal(m.read[i].Data, m.read[i+1].Data), "the reader keeps what it got")
			}
		})
	}
}

// step does one thing.
func (m *model) step(what, eager int) {
	switch {
	case what < 8:
		m.fromLink()
	case what < 10+2*eager:
		m.take()
	case what == 17 && m.beside:
		m.fromBeside()
	case what == 18 && m.r.IntN(3) == 0:
		m.in.Publish()
		m.published()
		require.Empty(m, m.pending)
		m.collects = m.r.IntN(3) > 0
		m.in.Begin(nil, m.collects)
	case what == 19 && m.r.IntN(4) == 0:
		m.lose()
	case what == 19:
		m.mark()
	}
}
