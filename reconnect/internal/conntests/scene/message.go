package scene

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Text returns a text message.
func Text(s string) conn.Message { return conn.Message{Type: conn.Text, Data: []byte(s)} }

// Blob returns a binary message of size bytes.
func Blob(size int) conn.Message { return conn.Message{Type: conn.Binary, Data: make([]byte, size)} }

// Queue sends each of the messages, which must be accepted.
func Queue(t *testing.T, c *reconnect.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		require.NoError(t, c.Send(reconnect.Outgoing{Message: Text(m)}))
	}
}

// Out returns a message for Send.
func Out(data string) reconnect.Outgoing { return reconnect.Outgoing{Message: Text(data)} }

// Repeatable returns a message that may be sent twice.
func Repeatable(data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: Text(data), Repeatable: true}
}

// StartWrite begins a Write. The channel gets its error.
func StartWrite(ctx context.Context, c *reconnect.Conn, data string) <-chan error {
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(ctx, Text(data)) }()
	synctest.Wait()
	return wrote
}

// StartShutdown begins a Shutdown. The channel gets its error.
func StartShutdown(ctx context.Context, c *reconnect.Conn) <-chan error {
	shut := make(chan error, 1)
	go func() { shut <- c.Shutdown(ctx) }()
	synctest.Wait()
	return shut
}

// SendAndLose sends messages, and loses the session while the first is being written.
func SendAndLose(t *testing.T, c *reconnect.Conn, peer *conntest.Fake, messages ...reconnect.Outgoing) {
	t.Helper()
	peer.Hold()
	for _, m := range messages {
		require.NoError(t, c.Send(m))
		synctest.Wait()
	}
	peer.Fail(ErrLost)
	synctest.Wait()
}

// ErrNotBegun is the error of a write of which no byte was written.
var ErrNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, ErrLost)

// WantFate asserts the fate and the session in the error of a write.
func WantFate(t *testing.T, err error, fate reconnect.Fate, session uint64) {
	t.Helper()
	var w *reconnect.WriteError
	require.ErrorAs(t, err, &w)
	require.Equal(t, fate, w.Fate, err)
	require.Equal(t, session, w.Session, err)
}

// WantUnsent asserts which messages a Shutdown has left, and why.
func WantUnsent(t *testing.T, err error, cause error, messages ...string) {
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

// Written returns what was written to a fake, in one line.
func Written(peer *conntest.Fake) string {
	synctest.Wait()
	data := []string{}
	for _, m := range peer.Written() {
		data = append(data, string(m.Data))
	}
	return strings.Join(data, " ")
}

// Texts returns what a peer got.
func Texts(peer *conntest.Fake) (list []string) {
	for _, m := range peer.Written() {
		list = append(list, string(m.Data))
	}
	return list
}

// Deliver makes the peer send the numbers from one to the other, a message each.
func Deliver(peer *conntest.Fake, from, to int) {
	for i := from; i <= to; i++ {
		peer.Deliver(Text(fmt.Sprint(i)))
	}
	synctest.Wait()
}

// WantMessage reads the next message, which must be there now.
func WantMessage(t *testing.T, c *reconnect.Conn, session uint64, data string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	m, err := c.Read(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, data, string(m.Data))
	require.Equal(t, session, m.Session)
}

// WantSeam reads the next thing, which must be a seam.
func WantSeam(t *testing.T, c *reconnect.Conn) *reconnect.Seam {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	_, err := c.Read(ctx, nil)
	var seam *reconnect.Seam
	require.ErrorAs(t, err, &seam)
	return seam
}

// WantNothing asserts that there is nothing to read now.
func WantNothing(t *testing.T, c *reconnect.Conn) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	m, err := c.Read(ctx, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded, "got %q", m.Data)
}

// Named returns a message of size bytes that begins with its name.
func Named(name string, size int) conn.Message {
	return Text(name + " " + strings.Repeat("x", size-len(name)-1))
}

// ReadInbox opens a Conn with this inbox and returns its first connection.
func ReadInbox(t *testing.T, s *Scene, in reconnect.Inbox) (*reconnect.Conn, *conntest.Fake) {
	o := WithPolicy(Every(time.Second))
	o.Inbox = in
	c := s.Open(&o)
	return c, s.WantDial().Accept()
}
