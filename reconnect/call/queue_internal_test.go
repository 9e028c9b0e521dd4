package call

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// A request that was admitted first may join the line last, because its goroutine was slow.
func TestOlderRequestBecomesFirstOfLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(&Options[int]{ID: func(reconnect.Message) (int, bool) { return 0, false }})
		require.NoError(t, err)
		accept := make(chan struct{})
		d := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			<-accept
			return conntest.NewFake(nil).Conn(), nil
		})
		o := &reconnect.Options{WhenDown: reconnect.WhenDownWait, Layers: []*reconnect.Layer{c.Layer()}}
		on, err := reconnect.New(d, o)
		require.NoError(t, err)
		defer func() { on.Close(); <-on.Done() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		older, newer := &pending[int]{id: 1, repeatable: true}, &pending[int]{id: 2, repeatable: true}
		require.NoError(t, c.admit(ctx, 1, older))
		require.NoError(t, c.admit(ctx, 2, newer))
		require.Nil(t, c.enqueue(newer), "it is the first while no session is ready")
		close(accept)
		synctest.Wait()
		session, err := c.session(ctx, newer)
		require.NoError(t, err)
		begun := make(chan error, 1)
		go func() { _, err := c.await(ctx, older); begun <- err }()
		synctest.Wait()
		wait, err := c.begin(newer, session, nil)
		require.NoError(t, err)
		require.NotNil(t, wait, "the older one comes before it")
		require.NoError(t, <-begun)
	})
}
