//go:build !js

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
