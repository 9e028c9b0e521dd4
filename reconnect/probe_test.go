package reconnect_test

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

// Promise 11: what watched a connection ends with it.
func TestALostConnectionIsNotProbed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := run(every(time.Hour))
		c := s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(5 * time.Second)
		peer.Fail(errLost)
		time.Sleep(30 * time.Minute)
		require.Zero(t, c.Stats().Probes)
	})
}

// Promise 11: the loss ends the context of a probe, and the probe is waited for.
func TestAProbeEndsWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		ended := false
		o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil
		}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(15 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, 16*time.Second, s.wantDial().at)
		require.True(t, ended)
	})
}

func TestTheContextOfAProbeEndsAfterAThirdOfTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		var took []time.Duration
		o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		o.Run.Trace = &reconnect.Trace{ProbeDone: func(p reconnect.ProbeDone) { took = append(took, p.Took) }}
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
		require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second}, took)
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent, "no answer is silence, and no failure of the probe")
	})
}

// Promise 6: a probe waits its turn, and its context ends that wait.
func TestAProbeDoesNotOvertakeAWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error { return write(text("?")) }
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		time.Sleep(25 * time.Second) // the first probe has given up, the second waits
		require.Equal(t, reconnect.StateReady, c.State())
		peer.Release()
		require.NoError(t, <-wrote)
		synctest.Wait()
		require.Equal(t, []conn.Message{text("x"), text("?")}, peer.Written())
	})
}

// Promise 8: where bytes are not noted, messages are life.
func TestAMessageIsLife(t *testing.T) {
	for name, o := range map[string]*reconnect.Options{
		"push":    {OnMessage: func(reconnect.Message) {}},
		"pull":    {Inbox: reconnect.Inbox{Full: reconnect.DropOldest}},
		"discard": {Inbox: reconnect.Inbox{Full: reconnect.Discard}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = conntest.FakeOptions{Pings: true}
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Mute()
				for range 20 {
					time.Sleep(9 * time.Second)
					deliver(peer, 1, 1)
				}
				require.Equal(t, reconnect.StateReady, c.State())
				require.Zero(t, peer.Pings())
			})
		})
	}
}

// A wall clock that is set back is no sign of anything.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		back := time.Duration(0)
		o := run(every(time.Hour))
		o.Liveness.Now = func() time.Time { back -= time.Hour; return time.Now().Add(back) }
		c := s.open(&o)
		s.wantDial().accept().Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
	})
}
