//go:build !js

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/examples/internal/program"
	"github.com/redial-go/redial/examples/internal/terminal"
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
		s := &scripted{t: t, dials: make(chan ends), out: program.NewOutput(t)}
		dial := reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			ours, theirs := conntest.Pair(nil)
			select {
			case s.dials <- ends{theirs, ours}:
				return ours, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		var err error
		s.client, err = newClient(dial, "ann", time.Minute, terminal.NewPlain(s.out), o())
		require.NoError(t, err)
		s.screen.Start(func() string { return "" })
		defer s.screen.Close()
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
	peer := s.dialed()
	s.want(peer, message{Type: "hello"})
	peer.Write(encode(m))
	return peer
}

// dialed returns the next connection. The screen always has a timer, so that a test without this
// limit would not end if there were no connection.
func (s *scripted) dialed() ends {
	s.t.Helper()
	select {
	case peer := <-s.dials:
		return peer
	case <-time.After(time.Hour):
		s.t.Fatal("no dial within a virtual hour")
		panic("unreachable")
	}
}

func (s *scripted) want(peer ends, want message) {
	s.t.Helper()
	m, err := next(peer)
	require.NoError(s.t, err)
	got, err := decode(m.Data)
	require.NoError(s.t, err)
	require.Equal(s.t, want.Type, got.Type)
	require.Equal(s.t, want.ID, got.ID)
	require.Equal(s.t, want.Text, got.Text)
}

// next returns the next message of the client, or an error if there is none in a virtual hour.
func next(peer ends) (conn.Message, error) {
	limit := time.AfterFunc(time.Hour, func() { peer.CloseNow() })
	defer limit.Stop()
	return peer.Read(nil)
}

func (s *scripted) say(text string) {
	s.t.Helper()
	s.client.say(s.t.Context(), text)
}

// shows asserts that the user sees text now.
func (s *scripted) shows(text string) {
	s.t.Helper()
	synctest.Wait()
	require.Contains(s.t, s.out.String(), text)
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
		peer = s.accept(2)
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

// Such as a server whose log has lost its end. It must not be told again what is acknowledged, and
// needs what is not.
func TestAServerThatHasForgottenLinesGetsThoseThatItDidNotAcknowledge(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		for id, text := range []string{"one", "two", "three"} {
			s.say(text)
			s.want(peer, message{Type: "say", ID: uint64(id + 1), Text: text})
		}
		peer.Write(encode(message{Type: "ack", ID: 2}))
		peer.CloseNow()
		peer = s.accept(1)
		s.want(peer, message{Type: "say", ID: 3, Text: "three"})
		s.say("four")
		s.want(peer, message{Type: "say", ID: 4, Text: "four"})
	})
}

func TestAServerThatHasMoreLinesThanWereSentIsDialedAgain(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.accept(0).CloseNow()
		s.accept(1)
		peer := s.accept(0)
		s.say("one")
		peer.Write(encode(message{Type: "ack", ID: 2}))
		peer = s.accept(0)
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
	})
}

// The room may have it or not, so that the user must not be told that it was not sent.
func TestAWrittenLineThatIsNeverAcknowledgedIsPerhapsNotSent(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		s.say("one")
		s.want(peer, message{Type: "say", ID: 1, Text: "one"})
		peer.CloseNow()
		s.say("two")
		time.Sleep(s.keep)
		s.shows("-- perhaps not sent: no answer: \"one\"\n")
		s.shows("-- not sent: it waited for more than 1m0s: \"two\"\n")
		peer = s.accept(0)
		s.say("three")
		s.want(peer, message{Type: "say", ID: 3, Text: "three"})
		peer.Write(encode(message{Type: "ack", ID: 3}))
		synctest.Wait()
		require.Equal(t, 2, s.unsaid())
	})
}

func TestALineThatIsTypedAfterTheEndIsShown(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.conn.Close()
		<-s.conn.Done()
		s.say("one")
		s.shows("-- not sent: the end came first: \"one\"\n")
		require.Equal(t, 1, s.unsaid())
	})
}

func TestOnlySoManyLinesMayWait(t *testing.T) {
	withClient(t, func(s *scripted) {
		for range maxUnsaid {
			s.say("x")
		}
		ctx, cancel := context.WithTimeoutCause(s.t.Context(), time.Second, errors.New("Ctrl-C"))
		defer cancel()
		begun := time.Now()
		s.client.say(ctx, "one too many")
		require.Equal(t, time.Second, time.Since(begun))
		s.shows("-- not sent: Ctrl-C: \"one too many\"\n")
		s.accept(0).Write(encode(message{Type: "ack", ID: 1}))
		s.say("y")
		require.Equal(t, 1, s.refused)
	})
}

// An invalid message of the server ends the session, not the program.
func TestAServerThatLeavesALineOutIsDialedAgain(t *testing.T) {
	withClient(t, func(s *scripted) {
		peer := s.accept(0)
		peer.Write(encode(message{Type: "line", Seq: 2, From: "1", ID: 1, Name: "bob", Text: "hello"}))
		_, err := next(peer)
		require.ErrorContains(t, err, "closed by the peer: 1000")
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
		s.shows("bob: again\n")
		require.Equal(t, []string{"hello", "again"}, heard(s.out, "bob"))
		require.Contains(t, s.out.String(), "-- the server has forgotten what was said before\n")
	})
}

func TestLinesThatWereMissedAreCounted(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.accept(0).CloseNow()
		peer := s.welcome(message{Type: "welcome", Room: "r", Seq: 40, Missed: 37})
		peer.Write(encode(message{Type: "line", Seq: 41, From: "1", ID: 1, Name: "bob", Text: "hello"}))
		s.shows("bob: hello\n")
		require.Contains(t, s.out.String(), "-- 37 lines missed\n")
	})
}

func TestAnEmptyLineDialsAtOnce(t *testing.T) {
	withClient(t, func(s *scripted) {
		s.accept(0).CloseNow()
		synctest.Wait()
		begun := time.Now()
		s.say(" ")
		s.accept(0)
		require.Equal(t, begun, time.Now())
	})
}

// The first of these lines waits for room in the ledger, and the others are read and wait behind it.
func TestEachLineThatWasReadByTheEndIsNamed(t *testing.T) {
	withClient(t, func(s *scripted) {
		ctx, interrupt := context.WithCancel(s.t.Context())
		more, keyboard := io.Pipe()
		talked := make(chan error)
		go func() {
			talked <- s.talk(ctx, io.MultiReader(strings.NewReader(strings.Repeat("x\n", maxUnsaid)+"one\ntwo\nthree\nhalf"), more))
		}()
		synctest.Wait()
		require.Equal(t, maxUnsaid, s.unsaid())
		interrupt()
		require.NoError(t, <-talked)
		require.NoError(t, keyboard.Close())
		require.Equal(t, maxUnsaid+3, s.unsaid())
		for _, text := range []string{"one", "two", "three"} {
			s.shows(`-- not sent: context canceled: "` + text + `"`)
		}
	})
}
