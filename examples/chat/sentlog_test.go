//go:build !js

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/examples/internal/program"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// scripted is a client. The test plays the server.
type scripted struct {
	*client
	t     *testing.T
	dials chan ends       // the next connection
	out   *program.Output // what the user sees
}

// ends are both ends of a connection. The embedded one is the server's.
type ends struct {
	*conntest.Fake
	client *conntest.Fake
}

// withClient runs play in a bubble. Each wait is a second.
func withClient(t *testing.T, play func(*scripted)) {
	withOptions(t, func() reconnect.RunOptions { return reconnect.RunOptions{Policy: every(time.Second)} }, play)
}

// every returns a policy that always waits the same time.
func every(wait time.Duration) backoff.Policy {
	return &backoff.Exponential{Base: wait, Cap: wait, Factor: 1, Jitter: backoff.JitterNone}
}

// withOptions is withClient with options that it makes in the bubble.
func withOptions(t *testing.T, o func() reconnect.RunOptions, play func(*scripted)) {
	synctest.Test(t, func(t *testing.T) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		require.NoError(t, err)
		defer null.Close()
		s := &scripted{t: t, client: newClient("ann", time.Minute, newScreen(null, null)), dials: make(chan ends)}
		s.out = program.NewOutput(t)
		s.screen.out, s.screen.terminal = s.out, false
		dial := reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			ours, theirs := conntest.Pair(nil)
			select {
			case s.dials <- ends{theirs, ours}:
				return ours, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		require.NoError(t, s.open(dial, o()))
		s.screen.start(func() string { return "" })
		defer s.screen.close()
		defer s.conn.Close()
		play(s)
	})
}

// accept accepts the next connection. Its welcome says that the room has all lines up to id.
func (s *scripted) accept(id uint64) ends {
	s.t.Helper()
	return s.welcome(message{Type: "welcome", Room: "r", ID: id})
}

func (s *scripted) welcome(m message) ends {
	s.t.Helper()
	peer := <-s.dials
	s.want(peer, message{Type: "hello"})
	peer.Write(encode(m))
	return peer
}

func (s *scripted) want(peer ends, want message) {
	s.t.Helper()
	m, err := peer.Read(nil)
	require.NoError(s.t, err)
	got, err := decode(m.Data)
	require.NoError(s.t, err)
	require.Equal(s.t, want.Type, got.Type)
	require.Equal(s.t, want.ID, got.ID)
	require.Equal(s.t, want.Text, got.Text)
}

func (s *scripted) say(text string) {
	s.t.Helper()
	require.NoError(s.t, s.sent.say(text, s.conn.Send))
}

// The fate of the lines is written, and yet the room may not have them.
func TestAWrittenLineWithoutAnAcknowledgementIsSentAgainUnderItsNumber(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		s.say("one")
		s.say("two")
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
		s.want(peer, message{Type: "say", ID: 2, Text: "two"})
		peer.CloseNow()
		synctest.Wait()
		s.say("three")
		peer = s.accept(0)
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
		s.want(peer, message{Type: "say", ID: 2, Text: "two"})
		s.want(peer, message{Type: "say", ID: 3, Text: "three"})
	})
}

func TestALineThatTheRoomHasIsNotSentAgain(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		s.say("one")
		s.say("two")
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
		peer.CloseNow() // before the acknowledgement of line 1
		peer = s.accept(1)
		s.want(peer, message{Type: "say", ID: 2, Text: "two"})
		peer.Write(encode(message{Type: "ack", ID: 2}))
		peer.CloseNow()
		peer = s.accept(1)
		s.say("three")
		s.want(peer, message{Type: "say", ID: 3, Text: "three"})
	})
}

func TestALineWhoseFateIsUnknownIsSentAgainFirst(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		synctest.Wait()
		peer.client.FailWrite(errors.New("reset"))
		s.say("one")
		s.say("two")
		synctest.Wait()
		require.EqualValues(t, 1, s.conn.Stats().Unknown)
		peer = s.accept(0)
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
		s.want(peer, message{Type: "say", ID: 2, Text: "two"})
	})
}

func TestALineThatSendRefusesIsNotInTheSentLog(t *testing.T) {
	j := newSentLog()
	require.ErrorIs(t, j.say("one", func(reconnect.Out) error { return io.ErrShortWrite }), io.ErrShortWrite)
	lines, lost := j.unacknowledged()
	require.Empty(t, lines)
	require.Equal(t, 1, lost)
}

func TestOnlySoManyLinesMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newSentLog()
		for range maxUnsaid {
			require.NoError(t, j.awaitRoom(t.Context()))
			require.NoError(t, j.say("x", func(reconnect.Out) error { return nil }))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, j.awaitRoom(ctx), context.DeadlineExceeded)
		require.Equal(t, 1, j.acknowledged(1))
		require.NoError(t, j.awaitRoom(t.Context()))
	})
}

// An invalid message of the server ends the session, not the program.
func TestAServerThatLeavesALineOutIsDialedAgain(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		peer.Write(encode(message{Type: "line", Seq: 2, From: "1", ID: 1, Name: "bob", Text: "hello"}))
		_, err := peer.Read(nil)
		require.ErrorContains(t, err, "closed with 1000")
		s.accept(0)
	})
}

// Without a log bob sends again what the old server did not acknowledge.
func TestWhatANewRoomRepeatsIsShownOnce(t *testing.T) {
	withClient(t, func(s *scripted) {
		line := message{Type: "line", Seq: 1, From: "1", ID: 7, Name: "bob", Text: "hello"}
		peer := s.accept(0)
		peer.Write(encode(line))
		peer.CloseNow()
		peer = s.welcome(message{Type: "welcome", Room: "another"})
		peer.Write(encode(line))
		line.Seq, line.ID, line.Text = 2, 8, "again"
		peer.Write(encode(line))
		s.out.Await("bob: again\n")
		require.Equal(t, []string{"hello", "again"}, heard(s.out, "bob"))
		require.Contains(t, s.out.String(), "-- the server has forgotten what was said before\n")
	})
}

func TestLinesThatWereMissedAreCounted(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.accept(0).CloseNow()
		peer := s.welcome(message{Type: "welcome", Room: "r", Seq: 40, Missed: 37})
		peer.Write(encode(message{Type: "line", Seq: 41, From: "1", ID: 1, Name: "bob", Text: "hello"}))
		s.out.Await("bob: hello\n")
		require.Contains(t, s.out.String(), "-- 37 lines missed\n")
	})
}

func TestAnEmptyLineDialsAtOnce(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.accept(0).CloseNow()
		synctest.Wait()
		begun := time.Now()
		require.True(t, s.obey(" "))
		s.accept(0)
		require.Equal(t, begun, time.Now())
	})
}
