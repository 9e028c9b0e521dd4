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

// journal is an Outbox.OnReceipt that keeps what it is told.
type journal struct {
	mu       sync.Mutex // guards what follows
	receipts []reconnect.Receipt
}

func (d *journal) done(_ context.Context, r reconnect.Receipt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receipts = append(d.receipts, r)
}

// all returns what was told until now, in order.
func (d *journal) all() []reconnect.Receipt {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]reconnect.Receipt(nil), d.receipts...)
}

// want asserts what was told until now: a line like "order: written 1" for each, of
// its message, its fate and the session.
func (d *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	got := []string{}
	for _, r := range d.all() {
		got = append(got, fmt.Sprintf("%s: %v %d", r.Out.Data, r.Fate, r.Session))
	}
	require.Equal(t, append([]string{}, lines...), got)
}

// last returns what was told last.
func (d *journal) last(t *testing.T) reconnect.Receipt {
	t.Helper()
	all := d.all()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// sending returns options for Send that redial after a second, and what OnReceipt is told.
func sending(down reconnect.WhenDown) (*reconnect.Options, *journal) {
	d, o := new(journal), run(every(time.Second))
	o.WhenDown, o.Outbox.OnReceipt = down, d.done
	return &o, d
}

// queue sends each of the messages, which must be accepted.
func queue(t *testing.T, c *reconnect.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		require.NoError(t, c.Send(reconnect.Out{Message: text(m)}))
	}
}

func out(data string) reconnect.Out { return reconnect.Out{Message: text(data)} }

func repeatable(data string) reconnect.Out {
	return reconnect.Out{Message: text(data), Repeatable: true}
}

// pinned is a message for one session only.
func pinned(session uint64, data string) reconnect.Out {
	return reconnect.Out{Message: text(data), Session: session}
}

// keyed is a message about a key.
func keyed(key, data string) reconnect.Out { return reconnect.Out{Message: text(data), Key: key} }

// write begins a Write, whose end the channel tells.
func write(ctx context.Context, c *reconnect.Conn, data string) <-chan error {
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(ctx, text(data)) }()
	synctest.Wait()
	return wrote
}

// shutdown begins a Shutdown, whose end the channel tells.
func shutdown(ctx context.Context, c *reconnect.Conn) <-chan error {
	shut := make(chan error, 1)
	go func() { shut <- c.Shutdown(ctx) }()
	synctest.Wait()
	return shut
}

// leave sends messages of which the first is being written when the session is lost.
func leave(t *testing.T, c *reconnect.Conn, peer *conntest.Fake, messages ...reconnect.Out) {
	t.Helper()
	peer.Hold()
	for _, m := range messages {
		require.NoError(t, c.Send(m))
		synctest.Wait()
	}
	peer.Fail(errLost)
	synctest.Wait()
}

// errNotBegun is how a write fails of which not a byte has left.
var errNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost)

// wantFate asserts how a write ended.
func wantFate(t *testing.T, err error, fate reconnect.Fate, session uint64) {
	t.Helper()
	var w *reconnect.WriteError
	require.ErrorAs(t, err, &w)
	require.Equal(t, fate, w.Fate, err)
	require.Equal(t, session, w.Session, err)
}

// wantUnsent asserts that a Shutdown has left these messages.
func wantUnsent(t *testing.T, err error, cause error, messages ...string) {
	t.Helper()
	var unsent *reconnect.UnsentError
	require.ErrorAs(t, err, &unsent)
	got := []string{}
	for _, r := range unsent.Unsent {
		got = append(got, string(r.Out.Data))
		require.NotEqual(t, reconnect.FateWritten, r.Fate)
	}
	require.Equal(t, messages, got)
	require.Equal(t, cause, unsent.Err)
}

// written is what was written to a fake, in one line.
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

// sluggish is a connection whose writes take a second.
type sluggish struct{ conn.Conn }

func (s sluggish) Write(m conn.Message) error {
	time.Sleep(time.Second)
	return s.Conn.Write(m)
}
