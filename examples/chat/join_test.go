//go:build !js

package main

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

func TestThePromptSaysWhatTheConnectionIsDoing(t *testing.T) {
	withOptions(t, func() reconnect.RunOptions { return reconnect.RunOptions{Policy: every(148 * time.Second)} }, func(s *scripted) {
		synctest.Wait()
		require.Equal(t, "        connecting", terminal.State(s.conn.Status()))
		peer := s.dialed()
		s.want(peer, message{Type: "hello"})
		require.Equal(t, "           opening", terminal.State(s.conn.Status()))
		peer.Write(encode(message{Type: "welcome", Room: "r"}))
		synctest.Wait()
		require.Equal(t, "             ready", terminal.State(s.conn.Status()))
		peer.CloseNow()
		synctest.Wait()
		require.Equal(t, " next try in 148 s", terminal.State(s.conn.Status()))
		time.Sleep(145 * time.Second)
		require.Equal(t, "   next try in 3 s", terminal.State(s.conn.Status()))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, "        connecting", terminal.State(s.conn.Status()))
		s.conn.Close()
		<-s.conn.Done()
		require.Equal(t, "            closed", terminal.State(s.conn.Status()))
	})
}

// A server that does not answer the close frame is left after command.InterruptLimit, if it has acknowledged
// every line.
func TestAMuteServerIsLeftSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(conntest.Network)
		over := make(chan struct{})
		welcomed := make(chan struct{})
		welcome := func(ctx context.Context, ws *websocket.Conn, _ *http.Request) {
			ws.Read(ctx) // the hello
			ws.Write(ctx, websocket.MessageText, encode(message{Type: "welcome", Room: "r"}).Data)
			close(welcomed)
			<-over
		}
		server := conntest.NewServer(network, "chat.test:80", welcome)
		defer server.Close()
		defer close(over)
		screen := terminal.NewPlain(io.Discard)
		d := &dialer.WebSocket{URL: "ws://chat.test/", DialContext: network.DialContext}
		c, err := newClient(d, "ann", time.Minute, screen, reconnect.RunOptions{})
		require.NoError(t, err)
		screen.Start(func() string { return "" })
		defer screen.Close()
		<-welcomed
		synctest.Wait()
		begun := time.Now()
		c.leave(t.Context())
		require.Equal(t, command.InterruptLimit, time.Since(begun))
	})
}
