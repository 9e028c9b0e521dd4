package live_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// answerLate makes a server answer each ping after a while, and read on meanwhile.
func answerLate(server *scene.WSServer, late time.Duration) {
	server.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, OnPingReceived: func(ctx context.Context, payload []byte) bool {
		pong := conntest.Frame{Head: conntest.Fin | 0xA, Payload: bytes.Clone(payload)}.Bytes()
		pipe := conntest.PipeOf(ctx)
		time.AfterFunc(late, func() { pipe.Server().Write(pong) })
		return false
	}}
}

// Promise 8: a peer that is alive and answers late, such as one that is busy while its caller is
// silent, costs a few sessions and then none.
func TestAPeerThatAnswersLateKeepsItsSessionInTheEnd(t *testing.T) {
	for late, sessions := range map[time.Duration]uint64{
		21 * time.Second: 2, 25 * time.Second: 2, 30 * time.Second: 2, 60 * time.Second: 3, 150 * time.Second: 4,
	} {
		t.Run(late.String(), func(t *testing.T) {
			scene.InEachWSForm(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
				answerLate(server, late+time.Millisecond) // else the last moment decides
				c := server.Ready(t, nil)
				sessions := server.Form.Rotations + sessions
				time.Sleep(time.Hour)
				require.Equal(t, sessions, c.Stats().Sessions)
				time.Sleep(time.Hour)
				require.Equal(t, sessions, c.Stats().Sessions, "none in the second hour")
				require.Equal(t, reconnect.StateReady, c.State())
			})
		})
	}
}

// dies is a handler that sends a message each second, and after a minute its path is dead.
func dies(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	ctx = c.CloseRead(ctx)
	for range 60 {
		time.Sleep(time.Second)
		if c.Write(ctx, websocket.MessageText, []byte("x")) != nil {
			return
		}
	}
	conntest.PipeOf(ctx).Stall(conntest.Both)
	<-ctx.Done()
}

// Promise 8: each loss is noticed after Limit, because the peer answers the probe with which the next
// session begins.
func TestADeadPathIsNoticedInTimeAgainAndAgain(t *testing.T) {
	scene.InEachWSForm(t, dies, func(t *testing.T, server *scene.WSServer) {
		var last time.Time
		var silent []time.Duration
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnMessage = func(context.Context, reconnect.Message) { last = time.Now() }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) {
			if s.Reason != backoff.ReasonSilent {
				return // a rotation, or the end of the test
			}
			silent = append(silent, time.Since(last))
		}
		server.Ready(t, &o)
		time.Sleep(10 * 91 * time.Second)
		synctest.Wait()
		require.Len(t, silent, 10)
		for _, d := range silent {
			require.Equal(t, 30*time.Second, d)
		}
	})
}

// grown returns a Conn whose session was silent, and the peer of the next: see scene.AcceptLate.
func grown(s *scene.Scene, o *reconnect.Options, answers time.Duration) (*reconnect.Conn, *conntest.Fake) {
	c, peer := s.Ready(o)
	peer.Mute()
	return c, scene.AcceptLate(s.WantDial(), answers)
}

// Promise 8: the session after a silent one is probed at once, and has twice the limit until the
// peer has answered in time.
func TestASessionAfterASilentOneIsProbedAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		answers time.Duration
		limit   time.Duration
	}{"in time": {20*time.Second - 1, 30 * time.Second}, "late": {20*time.Second + 1, 60 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.WithPolicy(scene.Every(0))
				c, peer := grown(s, &o, test.answers)
				began := s.Now()
				for range 30 { // it talks all the time
					time.Sleep(time.Second)
					peer.Hear()
				}
				require.Equal(t, 1, peer.Pings())
				peer.Mute()
				require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
				require.Equal(t, began+30*time.Second+test.limit, s.Now())
			})
		})
	}
}

// Promise 8: a limit that has grown does not change what Check promises.
func TestCheckDoesNotBecomePatient(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(0))
		o.Liveness.Limit = 9 * time.Second
		c, _ := grown(s, &o, -1)
		time.Sleep(time.Second)
		c.Check()
		checked := s.Now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
		require.Equal(t, checked+3*time.Second, s.Now())
	})
}

// With Probe any byte after a probe is its answer, because nobody can tell which message it is.
func TestPatienceEndsWithWhateverAnswersAProbe(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{9 * time.Second: 30 * time.Second, 21 * time.Second: 60 * time.Second} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = conntest.FakeOptions{Transport: true}
			o := scene.WithPolicy(scene.Every(0))
			o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
				return write(scene.Text("?"))
			}
			c, peer := grown(s, &o, 0)
			synctest.Wait()
			require.Equal(t, 1, strings.Count(scene.Written(peer), "?"))
			time.Sleep(late)
			peer.Hear()
			heard := s.Now()
			require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
			require.Equal(t, heard+want, s.Now())
		})
	}
}

// A session that has ended otherwise, and did not need it, brings the first limit back.
func TestPatienceIsForSilentSessionsInARow(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(0))
		c, peer := grown(s, &o, -1)
		time.Sleep(time.Second)
		peer.Fail(scene.ErrLost)
		began := s.WantDial()
		scene.AcceptLate(began, -1)
		require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
		require.Equal(t, began.At+30*time.Second, s.Now())
	})
}

// A session that lives longer than the first limit by patience leaves it to the next one.
func TestPatienceThatWasNeededStays(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(0))
		c, peer := grown(s, &o, -1)
		for range 10 {
			time.Sleep(50 * time.Second)
			peer.Hear()
		}
		require.Equal(t, reconnect.StateReady, c.State())
		peer.Fail(scene.ErrLost)
		began := s.WantDial()
		scene.AcceptLate(began, -1)
		require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
		require.Equal(t, began.At+60*time.Second, s.Now())
	})
}
