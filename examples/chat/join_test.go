//go:build !js

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

func TestThePromptSaysWhatTheConnectionIsDoing(t *testing.T) {
	var leave func(backoff.Verdict)
	o := func() reconnect.RunOptions {
		gate, err := budget.NewGate(&budget.GateOptions{LineOptions: budget.LineOptions{Concurrent: 1}})
		require.NoError(t, err)
		leave, err = gate.Acquire(t.Context(), "room") // as for another connection
		require.NoError(t, err)
		return reconnect.RunOptions{Policy: every(148 * time.Second), Gate: gate, Host: "room"}
	}
	withOptions(t, o, func(s *scripted) {
		synctest.Wait()
		require.Equal(t, "       at the gate > ", s.prompt())
		leave(backoff.Verdict{})
		synctest.Wait()
		require.Equal(t, "           dialing > ", s.prompt())
		peer := s.dialed()
		s.want(peer, message{Type: "hello"})
		require.Equal(t, "           joining > ", s.prompt())
		peer.Write(encode(message{Type: "welcome", Room: "r"}))
		synctest.Wait()
		require.Equal(t, "             ready > ", s.prompt())
		peer.CloseNow()
		synctest.Wait()
		require.Equal(t, " next try in 148 s > ", s.prompt())
		time.Sleep(145 * time.Second)
		require.Equal(t, "   next try in 3 s > ", s.prompt())
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, "           dialing > ", s.prompt())
		s.conn.Close()
		<-s.conn.Done()
		require.Equal(t, "            closed > ", s.prompt())
	})
}

func TestThePromptHasOneWidth(t *testing.T) {
	require.Len(t, "next try in "+seconds(time.Hour+10*time.Second), promptWidth, "the longest: a server may ask for an hour")
	require.Equal(t, "1 s", seconds(0), "there is no try in 0 s")
}
