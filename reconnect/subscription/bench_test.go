package subscription_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// benchKeys is how many keys the benchmarks have, in batches of 50.
const benchKeys = 5000

// benched is a Set whose venue agrees to everything, at once and by the id alone.
type benched struct {
	set   *subscription.Set[string]
	conn  *reconnect.Conn
	peers chan *conntest.Fake
}

func newBenched(b *testing.B, keys []string) *benched {
	x := &benched{peers: make(chan *conntest.Fake, 1)}
	set, err := subscription.New(&subscription.Options[string]{
		Encode: func(r *subscription.Request[string]) (conn.Message, error) {
			return conn.TextMessage(r.ID + " " + strings.Join(r.Keys, " ")), nil
		},
		Answer: func(m reconnect.Message) (subscription.Answer[string], bool) {
			if m.Data[0] < '0' || m.Data[0] > '9' {
				return subscription.Answer[string]{}, false
			}
			return subscription.Answer[string]{ID: string(m.Data)}, true
		},
	})
	require.NoError(b, err)
	x.set = set
	set.Add(keys...)
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		ours, theirs := conntest.Pair(nil)
		x.peers <- theirs
		return ours, nil
	})
	x.conn, err = reconnect.New(dial, &reconnect.Options{
		Layers: []*reconnect.Layer{set.Layer()},
		Run:    reconnect.RunOptions{Policy: &backoff.Exponential{Base: -1}},
	})
	require.NoError(b, err)
	b.Cleanup(func() { x.conn.Close(); <-x.conn.Done() })
	return x
}

// serve answers the requests of one session until all keys are held.
func (x *benched) serve(b *testing.B, peer *conntest.Fake) {
	for range benchKeys / 50 {
		m, err := peer.Read(nil)
		require.NoError(b, err)
		id, _, _ := strings.Cut(string(m.Data), " ")
		require.NoError(b, peer.Write(conn.TextMessage(id)))
	}
	require.NoError(b, x.set.Synced(b.Context()))
}

// BenchmarkResubscribe is the loss of a connection and 5,000 keys in batches of 50, with the other
// end of a pipe in memory for a venue, whose work is in the result.
func BenchmarkResubscribe(b *testing.B) {
	x := newBenched(b, benchNames())
	peer := <-x.peers
	x.serve(b, peer)
	b.ReportAllocs()
	for b.Loop() {
		_ = peer.CloseNow()
		peer = <-x.peers
		x.serve(b, peer)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

// BenchmarkMemory reports what a key costs in memory, wanted and held, without the key itself.
func BenchmarkMemory(b *testing.B) {
	keys := benchNames()
	var perKey float64
	for b.Loop() {
		before := heap()
		x := newBenched(b, keys)
		x.serve(b, <-x.peers)
		perKey = float64(heap()-before) / benchKeys
		x.conn.Close()
		<-x.conn.Done()
	}
	b.ReportMetric(perKey, "B/key")
	runtime.KeepAlive(keys)
}

// BenchmarkStream is a message that is no answer: what the layer adds.
func BenchmarkStream(b *testing.B) {
	x := newBenched(b, benchNames())
	peer := <-x.peers
	x.serve(b, peer)
	m := reconnect.Message{Message: conn.TextMessage("x 42"), Session: 1}
	receive := x.set.Layer().Receive
	b.ReportAllocs()
	for b.Loop() {
		if receive(m) {
			b.Fatal("taken")
		}
	}
}

func benchNames() []string {
	keys := make([]string, benchKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("SYM%05d", i)
	}
	return keys
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
