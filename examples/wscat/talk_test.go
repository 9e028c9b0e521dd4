//go:build !js

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// The first line is kept, the second one waits for room, and the others are read and wait behind it.
func TestEachLineThatWasReadByTheEndGetsItsFate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, notes := reported(reporter{}, func(r *reporter) {
			c := &client{o: &options{linger: -1, max: 10}, show: r, settled: make(chan struct{}, 1)}
			var err error
			c.conn, err = reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}), &reconnect.Options{WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{OnReceipt: c.settle, Messages: 1}})
			require.NoError(t, err)
			ctx, interrupt := context.WithCancel(t.Context())
			more, keyboard := io.Pipe()
			listened := make(chan struct{})
			go func() {
				defer close(listened)
				c.listen(ctx, io.MultiReader(strings.NewReader("one\ntwo\nthree\nfour\nhalf"), more))
			}()
			synctest.Wait()
			require.Equal(t, 2, c.typed)
			interrupt()
			<-listened
			require.NoError(t, keyboard.Close())
			require.Equal(t, 4, c.typed)
			require.Equal(t, 1, c.unsettled())
			c.conn.Close()
			<-c.conn.Done()
			require.Zero(t, c.unsettled())
		})
		require.Equal(t, `-- not sent: context canceled: "two"
-- not sent: context canceled: "three"
-- not sent: context canceled: "four"
-- not sent: the end came first: "one"
`, notes)
	})
}
