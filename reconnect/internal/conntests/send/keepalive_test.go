package send_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A service that wants to hear something every 8 s does, from the last message on.
func TestSomethingIsWrittenWhenNothingWasForAWhile(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.KeepAlive = reconnect.KeepAlive{
			Every:   8 * time.Second,
			Message: func() conn.Message { return scene.Text("idle") },
		}
		c, peer := s.Ready(o)
		wait := func(d time.Duration) []string {
			time.Sleep(d)
			synctest.Wait()
			return scene.Texts(peer)
		}
		require.Empty(t, wait(7*time.Second))
		require.NoError(t, c.Write(t.Context(), scene.Text("a")))
		require.Equal(t, []string{"a"}, wait(7*time.Second))
		scene.Queue(t, c, "b")
		require.Equal(t, []string{"a", "b"}, wait(7*time.Second))
		require.Equal(t, []string{"a", "b", "idle"}, wait(time.Second))
		require.Equal(t, []string{"a", "b", "idle", "idle"}, wait(8*time.Second))
		require.Equal(t, uint64(2), c.Stats().KeepAliveMessages)
		require.Equal(t, uint64(4), c.Stats().Written)
	})
}

// A connection that cannot be written to is lost, whoever writes.
func TestAKeepAliveThatFailsEndsTheSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.KeepAlive = reconnect.KeepAlive{
			Every:   time.Second,
			Message: func() conn.Message { return scene.Text("idle") },
		}
		c, peer := s.Ready(&o)
		peer.FailWrite(scene.ErrLost)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
	})
}

func TestHalfAKeepAliveIsRefused(t *testing.T) {
	for _, o := range []reconnect.KeepAlive{{Every: 1}, {Message: func() conn.Message { return scene.Text("a") }}} {
		_, err := reconnect.New(scene.New(t), &reconnect.Options{KeepAlive: o})
		require.ErrorContains(t, err, "Options.KeepAlive")
	}
}
