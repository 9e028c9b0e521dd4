package reconnect_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// receiptLog is an Outbox.OnReceipt that keeps each receipt.
type receiptLog struct {
	mu       sync.Mutex // guards what follows
	receipts []reconnect.Receipt
}

func (l *receiptLog) add(_ context.Context, r reconnect.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receipts = append(l.receipts, r)
}

// all returns the receipts until now, in order.
func (l *receiptLog) all() []reconnect.Receipt {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]reconnect.Receipt(nil), l.receipts...)
}

// want asserts the receipts until now. Each is a line like "order: written 1": the message, its
// fate and its session.
func (l *receiptLog) want(t *testing.T, lines ...string) {
	t.Helper()
	got := []string{}
	for _, r := range l.all() {
		got = append(got, fmt.Sprintf("%s: %v %d", r.Outgoing.Data, r.Fate, r.Session))
	}
	require.Equal(t, append([]string{}, lines...), got)
}

// last returns the newest receipt.
func (l *receiptLog) last(t *testing.T) reconnect.Receipt {
	t.Helper()
	all := l.all()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// sending returns options for Send that redial after a second, and the log of their receipts.
func sending(down reconnect.WhenDown) (*reconnect.Options, *receiptLog) {
	l, o := new(receiptLog), withPolicy(every(time.Second))
	o.WhenDown, o.Outbox.OnReceipt = down, l.add
	return &o, l
}

// receipts returns the lines of receipts of s.session.
func (s *scene) receipts(lines ...string) []string {
	for i, line := range lines {
		lines[i] = fmt.Sprint(line, " ", s.session)
	}
	return lines
}

// queue sends each of the messages, which must be accepted.
func queue(t *testing.T, c *reconnect.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text(m)}))
	}
}

// out returns a message for Send.
func out(data string) reconnect.Outgoing { return reconnect.Outgoing{Message: text(data)} }

// repeatable returns a message that may be sent twice.
func repeatable(data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: text(data), Repeatable: true}
}

// pinned returns a message for one session only.
func pinned(session uint64, data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: text(data), Session: session}
}

// keyed returns a message with a key.
func keyed(key, data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: text(data), Key: key}
}

// startWrite begins a Write. The channel gets its error.
func startWrite(ctx context.Context, c *reconnect.Conn, data string) <-chan error {
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(ctx, text(data)) }()
	synctest.Wait()
	return wrote
}

// startShutdown begins a Shutdown. The channel gets its error.
func startShutdown(ctx context.Context, c *reconnect.Conn) <-chan error {
	shut := make(chan error, 1)
	go func() { shut <- c.Shutdown(ctx) }()
	synctest.Wait()
	return shut
}

// sendAndLose sends messages, and loses the session while the first is being written.
func sendAndLose(t *testing.T, c *reconnect.Conn, peer *conntest.Fake, messages ...reconnect.Outgoing) {
	t.Helper()
	peer.Hold()
	for _, m := range messages {
		require.NoError(t, c.Send(m))
		synctest.Wait()
	}
	peer.Fail(errLost)
	synctest.Wait()
}

// errNotBegun is the error of a write of which not a byte has left.
var errNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost)

// wantFate asserts the fate and the session in the error of a write.
func wantFate(t *testing.T, err error, fate reconnect.Fate, session uint64) {
	t.Helper()
	var w *reconnect.WriteError
	require.ErrorAs(t, err, &w)
	require.Equal(t, fate, w.Fate, err)
	require.Equal(t, session, w.Session, err)
}

// wantUnsent asserts which messages a Shutdown has left, and why.
func wantUnsent(t *testing.T, err error, cause error, messages ...string) {
	t.Helper()
	var unsent *reconnect.UnsentError
	require.ErrorAs(t, err, &unsent)
	got := []string{}
	for _, r := range unsent.Unsent {
		got = append(got, string(r.Outgoing.Data))
		require.NotEqual(t, reconnect.FateWritten, r.Fate)
	}
	require.Equal(t, messages, got)
	require.Equal(t, cause, unsent.Err)
}

// written returns what was written to a fake, in one line.
func written(peer *conntest.Fake) string {
	synctest.Wait()
	data := []string{}
	for _, m := range peer.Written() {
		data = append(data, string(m.Data))
	}
	return strings.Join(data, " ")
}

// refuseFirst is an OnSession that fails in the first session.
func refuseFirst(_ context.Context, op *reconnect.Opening) error {
	if op.Session == 1 {
		return errLost
	}
	return nil
}

// slowConn is a connection whose writes take a second each.
type slowConn struct{ conn.Conn }

func (s slowConn) Write(m conn.Message) error {
	time.Sleep(time.Second)
	return s.Conn.Write(m)
}
