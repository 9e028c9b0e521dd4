package reconnect

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// What was queued may be written, so that Shutdown closes the session, while the supervisor still has to
// find out that there is nothing more for it to close. The peer's answers come after that. The test is in no
// bubble, because a goroutine that waits for a lock keeps a bubble from going on.
func TestShutdownClosesSessionOnceWhileItGetsReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var c *Conn
	made, opened, ready := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var got []string
	c, err = New(
		DialFunc(func(ctx context.Context) (conn.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
			if err != nil {
				return nil, err
			}
			return conn.NewFramed(nc, conn.Lines{}, nil)
		}),
		&Options{
			WhenDown: WhenDownKeep,
			OnSession: func(context.Context, *Opening) error {
				<-made
				c.state.mu.Lock() // for which the supervisor waits between two steps
				close(opened)
				return nil
			},
			OnMessage: func(_ context.Context, m Message) { got = append(got, string(m.Data)) },
			Outbox:    Outbox{OnReceipt: func(context.Context, Receipt) {}},
			Run:       RunOptions{Trace: &Trace{SessionReady: func(*Session) { close(ready) }}},
		})
	require.NoError(t, err)
	close(made)
	defer c.Close()
	peer, err := l.Accept()
	require.NoError(t, err)
	defer peer.Close()
	require.NoError(t, peer.SetDeadline(time.Now().Add(20*time.Second)))
	<-opened
	unlock := sync.OnceFunc(c.state.mu.Unlock)
	defer unlock()
	require.NoError(t, c.Send(Outgoing{Message: conn.TextMessage("question")}))
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }() // <-ended waits for it
	question := make([]byte, 100)
	n, err := peer.Read(question)
	require.NoError(t, err)
	require.Equal(t, "question\n", string(question[:n]))
	_, err = peer.Read(question)
	require.Error(t, err, "Shutdown has ended its direction")
	unlock()
	<-ready
	_, err = peer.Write([]byte("answer\n"))
	require.NoError(t, err)
	require.NoError(t, peer.Close())
	require.NoError(t, <-ended)
	require.Equal(t, []string{"answer"}, got)
}
