package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

func TestLinesThatWereReadAreSentHoweverItEnds(t *testing.T) {
	for name, over := range map[string]func(interrupt func(), c *reconnect.Conn){
		"Ctrl-C":         func(interrupt func(), _ *reconnect.Conn) { interrupt() },
		"the connection": func(_ func(), c *reconnect.Conn) { c.Close(); <-c.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}), nil)
				require.NoError(t, err)
				defer c.Close()
				more, keyboard := io.Pipe()
				in := terminal.NewInput(io.MultiReader(strings.NewReader(strings.Repeat("x\n", 50)+"half"), more), maxLine)
				synctest.Wait() // so that all are read
				over(interrupt, c)
				sent := 0
				listen(ctx, c, in, func(string) { sent++ })
				require.Equal(t, 50, sent)
				require.NoError(t, keyboard.Close())
			})
		})
	}
}
