package call_test

import (
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// mirror is a connection whose peer sends back what it gets, and which allocates nothing.
type mirror struct {
	sent   chan []byte // has room for all questions of a benchmark at a time
	spare  chan []byte // likewise
	closed chan struct{}
	once   sync.Once
}

const mirrorSize = 64

func newMirror() *mirror {
	m := &mirror{sent: make(chan []byte, 1024), spare: make(chan []byte, 1024), closed: make(chan struct{})}
	for range cap(m.spare) {
		m.spare <- make([]byte, 0, mirrorSize)
	}
	return m
}

func (m *mirror) Read(buf []byte) (conn.Message, error) {
	select {
	case p := <-m.sent:
		buf = append(buf[:0], p...)
		m.spare <- p
		return conn.Message{Type: conn.Binary, Data: buf}, nil
	case <-m.closed:
		return conn.Message{}, net.ErrClosed
	}
}

func (m *mirror) Write(q conn.Message) error {
	m.sent <- append((<-m.spare)[:0], q.Data...)
	return nil
}

func (m *mirror) Close(context.Context, int, string) error { return m.CloseNow() }

func (m *mirror) CloseNow() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// newBench returns a Client over a mirror. The id is the first 8 bytes of a message.
func newBench(tb testing.TB) *call.Client[uint64] {
	client, err := call.New(&call.Options[uint64]{ID: func(m reconnect.Message) (uint64, bool) {
		return binary.LittleEndian.Uint64(m.Data), true
	}})
	require.NoError(tb, err)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return newMirror(), nil }),
		&reconnect.Options{Layers: []*reconnect.Layer{client.Layer()}, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close(); <-c.Done() })
	require.NoError(tb, c.AwaitReady(tb.Context()))
	return client
}

// asking returns a function that asks one question, which gives the same memory to each.
func asking(tb testing.TB, client *call.Client[uint64], repeatable bool) func() {
	question, ctx := make([]byte, mirrorSize), tb.Context()
	return func() {
		id := client.Next()
		binary.LittleEndian.PutUint64(question, id)
		m, err := client.Do(ctx, call.Request[uint64]{
			ID: id, Message: conn.Message{Type: conn.Binary, Data: question}, Repeatable: repeatable,
		})
		if err != nil || binary.LittleEndian.Uint64(m.Data) != id {
			tb.Error("no answer of its own: ", err)
		}
	}
}

// The question, its channel, and the data of the answer.
func TestADoAllocatesTwoObjectsAndItsAnswer(t *testing.T) {
	ask := asking(t, newBench(t), false)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, ask), 3.0)
}

// It waits in no line while a session is ready.
func TestARepeatableQuestionAllocatesNoMore(t *testing.T) {
	ask := asking(t, newBench(t), true)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, ask), 3.0)
}

func BenchmarkDo(b *testing.B) {
	ask := asking(b, newBench(b), false)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// Many goroutines that share a Client.
func BenchmarkDoParallel(b *testing.B) {
	client := newBench(b)
	b.ReportAllocs()
	b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		ask := asking(b, client, false)
		for pb.Next() {
			ask()
		}
	})
}
