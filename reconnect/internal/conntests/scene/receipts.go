package scene

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// ReceiptLog is an Outbox.OnReceipt that keeps each receipt.
type ReceiptLog struct {
	mu       sync.Mutex // guards what follows
	receipts []reconnect.Receipt
}

func (l *ReceiptLog) Add(_ context.Context, r reconnect.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receipts = append(l.receipts, r)
}

// All returns the receipts until now, in order.
func (l *ReceiptLog) All() []reconnect.Receipt {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]reconnect.Receipt(nil), l.receipts...)
}

// Want asserts the receipts until now. Each is a line like "order: written 1": the message, its
// fate and its session.
func (l *ReceiptLog) Want(t *testing.T, lines ...string) {
	t.Helper()
	got := []string{}
	for _, r := range l.All() {
		got = append(got, fmt.Sprintf("%s: %v %d", r.Outgoing.Data, r.Fate, r.Session))
	}
	require.Equal(t, append([]string{}, lines...), got)
}

// Last returns the newest receipt.
func (l *ReceiptLog) Last(t *testing.T) reconnect.Receipt {
	t.Helper()
	all := l.All()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// Receipts returns the lines of receipts of s.Session.
func (s *Scene) Receipts(lines ...string) []string {
	for i, line := range lines {
		lines[i] = fmt.Sprint(line, " ", s.Session)
	}
	return lines
}
