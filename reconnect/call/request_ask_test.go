package call_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// A message before the answer to a login is part of the stream.
func TestAskReturnsTheAnswerWhileASessionIsOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var welcome string
		s.open(&reconnect.Options{
			OnSession: func(_ context.Context, o *reconnect.Opening) error {
				m, err := s.client.Ask(o, "1", text("1 login"))
				welcome = string(m.Data)
				return err
			},
			Run: reconnect.RunOptions{Policy: every(time.Second)},
		})
		peer := s.accept()
		wantWritten(t, peer, "1 login")
		answer(peer, "!news", "2 of another", "1 welcome")
		require.Equal(t, "1 welcome", welcome)
		m, err := s.conn.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "!news", string(m.Data))
		require.Equal(t, []string{"2 of another"}, s.late)
		lose(peer)
		welcome = "none"
		peer = s.accept()
		lose(peer) // before the answer
		require.Empty(t, welcome)
		s.accept()
		synctest.Wait()
	})
}

// Options.ID may look at the session, as where each session counts its questions anew.
func TestAskGivesTheSessionOfAnAnswerToID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		id := s.o.ID
		s.o.ID = func(m reconnect.Message) (string, bool) {
			text, ok := id(m)
			return text, ok && m.Session == 1
		}
		s.open(&reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			_, err := s.client.Ask(o, "1", text("1 login"))
			return err
		}})
		answer(s.accept(), "1 welcome")
		require.Equal(t, reconnect.StateReady, s.conn.State())
	})
}

// No answer comes to a question that was not sent.
func TestAskReturnsErrorOfWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.picky = true
		var asked error
		s.open(&reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			_, asked = s.client.Ask(o, "1", conn.Message{Data: []byte("1 login")})
			return nil
		}})
		s.accept()
		require.ErrorIs(t, asked, conn.ErrBadMessage)
		require.Equal(t, reconnect.StateReady, s.conn.State())
	})
}
