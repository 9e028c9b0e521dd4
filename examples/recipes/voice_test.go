//go:build linux

package recipes_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// The caller hangs up, and the connection is lost before the service says goodbye. The call is hung up by
// the next connection, or the service has forgotten it: it is never opened again.
func TestVoiceNeverOpensACallAgainThatWasHungUp(t *testing.T) {
	for name, forgets := range map[string]bool{
		"the service keeps the call":   false,
		"the service forgets the call": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setups := make(chan string, 100)
			url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
				_, m, err := c.Read(ctx)
				if err != nil {
					return
				}
				setups <- string(m)
				if n > 1 && forgets {
					c.Close(4004, "unknown")
					return
				}
				send(ctx, c, fmt.Sprintf(`{"type":"ready","handle":"call-%d"}`, n))
				for {
					kind, m, err := c.Read(ctx)
					if err != nil {
						return
					} else if kind == websocket.MessageText && strings.Contains(string(m), "hangUp") {
						if n > 1 {
							send(ctx, c, `{"type":"goodbye"}`)
						}
						return // of the first connection: it is lost
					}
				}
			})
			p := start(t, "voice", "-url", url)
			p.Await("session ready")
			_, err := p.Stdin.Write(bytes.Repeat([]byte{0x7f}, 160*50))
			require.NoError(t, err)
			p.CloseInput()
			require.Equal(t, 0, p.ExitCode())
			require.Equal(t, `{"type":"setup"}`, <-setups)
			require.Equal(t, `{"type":"setup","handle":"call-1"}`, <-setups)
			require.Empty(t, setups)
		})
	}
}

// An answer to the setup that is not "ready" makes no session: the next dial sets the same call up.
func TestVoiceWaitsForReady(t *testing.T) {
	setups := make(chan string, 100)
	url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
		_, m, _ := c.Read(ctx)
		setups <- string(m)
		switch n {
		case 1:
			send(ctx, c, `{"type":"ready","handle":"call"}`)
			return // the connection is lost
		case 2:
			send(ctx, c, `{"type":"error"}`)
		default:
			send(ctx, c, `{"type":"ready","handle":"call"}`)
		}
		drain(ctx, c)
	})
	p := start(t, "voice", "-url", url)
	require.Equal(t, `{"type":"setup"}`, <-setups)
	for range 2 {
		select {
		case setup := <-setups:
			require.Equal(t, `{"type":"setup","handle":"call"}`, setup)
		case <-p.Ended(): // it is killed after a minute
			t.Fatal("no dial after the wrong answer")
		}
	}
	p.Interrupt()
	require.Zero(t, p.ExitCode())
}

// The input ends before there is a call: none is opened.
func TestVoiceOpensNoCallAfterTheInput(t *testing.T) {
	p := start(t, "voice", "-url", "ws://127.0.0.1:1")
	p.CloseInput()
	require.Equal(t, 1, p.ExitCode())
	p.Await("connection refused")
}

// Ctrl-C hangs up.
func TestVoiceHangsUpAtAnInterrupt(t *testing.T) {
	hungUp := make(chan struct{})
	url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
		c.Read(ctx) // the setup
		send(ctx, c, `{"type":"ready","handle":"call"}`)
		for {
			_, m, err := c.Read(ctx)
			if err != nil {
				return
			} else if strings.Contains(string(m), "hangUp") {
				close(hungUp)
				return
			}
		}
	})
	p := start(t, "voice", "-url", url)
	p.Await("session ready")
	p.Interrupt()
	require.Zero(t, p.ExitCode())
	<-hungUp
}
