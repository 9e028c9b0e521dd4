package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// acking is a connection that swallows what is written, and acknowledges all before every n-th
// message.
type acking struct {
	conn.Conn
	l       *ledger.Ledger
	n       uint64
	written uint64
}

func (c *acking) Write(conn.Message) error {
	if c.written++; c.written%c.n == 0 {
		return c.l.AckedTo(1, c.written-1)
	}
	return nil
}

// plainEntry encodes without memory of its own.
func plainEntry(e ledger.Entry) (conn.Message, error) { return conn.BinaryMessage(e.Data), nil }

// BenchmarkLedgerAdd is a message from Add to its acknowledgement, without and with a session that
// writes it.
func BenchmarkLedgerAdd(b *testing.B) {
	b.Run("waiting", func(b *testing.B) {
		l, err := ledger.New(&ledger.Options{DropOldest: true, Encode: plainEntry})
		require.NoError(b, err)
		data := make([]byte, 100)
		b.ReportAllocs()
		for b.Loop() {
			l.Add(data)
		}
	})
	for _, n := range []uint64{1, 64} {
		b.Run(fmt.Sprint("acknowledged by ", n), func(b *testing.B) {
			l := newLedgerBench(b, n)
			data := make([]byte, 100)
			b.ReportAllocs()
			for b.Loop() {
				for {
					if _, err := l.Add(data); err == nil {
						break
					}
					runtime.Gosched()
				}
			}
		})
	}
}

// newLedgerBench returns a Ledger whose session is ready, and whose peer acknowledges every n-th
// message.
func newLedgerBench(b *testing.B, n uint64) *ledger.Ledger {
	s := &ledgerScene{dials: make(chan chan conn.Conn)}
	var err error
	s.ledger, err = ledger.New(&ledger.Options{Encode: plainEntry})
	require.NoError(b, err)
	s.conn, err = reconnect.New(reconnect.DialFunc(s.dial), &reconnect.Options{Layers: []*reconnect.Layer{s.ledger.Layer()}})
	require.NoError(b, err)
	a := <-s.dials
	a <- &acking{Conn: conntest.NewFake(nil).Conn(), l: s.ledger, n: n}
	require.NoError(b, s.conn.AwaitReady(b.Context()))
	b.Cleanup(func() {
		s.conn.Close()
		<-s.conn.Done()
	})
	return s.ledger
}

func TestAMessageThatWaitsAllocatesNothing(t *testing.T) {
	l, err := ledger.New(&ledger.Options{Messages: 64, DropOldest: true, Encode: plainEntry})
	require.NoError(t, err)
	data := make([]byte, 100)
	for range 1000 {
		l.Add(data)
	}
	// The outcomes that were not acknowledged are remembered in place.
	require.Less(t, testing.AllocsPerRun(5000, func() { l.Add(data) }), 1.0)
}

// BenchmarkIdleLedger reports what a Ledger weighs whose messages are all acknowledged.
func BenchmarkIdleLedger(b *testing.B) {
	const n = 10000
	ledgers := make([]*ledger.Ledger, n)
	for b.Loop() {
		clear(ledgers)
		before := heap()
		for i := range ledgers {
			l, err := ledger.New(nil)
			require.NoError(b, err)
			ledgers[i] = l
		}
		b.ReportMetric(float64(heap()-before)/n, "B/idle")
	}
	runtime.KeepAlive(ledgers)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
