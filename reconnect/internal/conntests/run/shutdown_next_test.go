package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The next session of a rotation becomes ready while the old one does not answer the goodbye.
func TestShutdownSaysGoodbyeToNextSession(t *testing.T) {
	for name, mute := range map[string]bool{"answers": false, "mute": true} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				c := s.Open(nil)
				old := s.WantDial().Accept()
				old.Mute()
				c.Rotate(1, reconnect.Advice{})
				d := s.WantDial()
				go c.Shutdown(context.Background()) // returns when Done is closed
				synctest.Wait()
				next := d.Accept()
				if mute {
					next.Mute()
				}
				<-c.Done()
				for _, peer := range []*conntest.Fake{old, next} {
					code, _, closed := peer.ClosedWith()
					require.True(t, closed)
					require.Equal(t, 1000, code)
				}
				require.LessOrEqual(t, s.Now(), 11*time.Second)
			})
		})
	}
}

// starter is a connection that can be read after its close frame.
type starter struct {
	conn.Conn
	started chan int // gets the code
}

func (c starter) StartClose(code int, _ string) error {
	c.started <- code
	return nil
}

// What comes by that next session before its answer is read, too, also if Shutdown is called again meanwhile.
func TestNextSessionIsReadUntilItAnswersGoodbye(t *testing.T) {
	for _, twice := range []bool{false, true} {
		scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
			old, next := conntest.NewFake(&scene.Alive), conntest.NewFake(&scene.Alive)
			started, dials := make(chan int, 1), make(chan struct{})
			c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
				dials <- struct{}{}
				if _, again := <-dials; again {
					return old.Conn(), nil
				}
				return starter{next.Conn(), started}, nil
			}), nil)
			require.NoError(t, err)
			<-dials
			dials <- struct{}{}
			require.NoError(t, c.AwaitReady(t.Context()))
			old.Mute()
			c.Rotate(1, reconnect.Advice{})
			<-dials
			go c.Shutdown(context.Background()) // returns when Done is closed
			synctest.Wait()
			close(dials)
			synctest.Wait()
			require.Len(t, started, 1)
			require.Equal(t, 1000, <-started)
			if twice {
				go c.Shutdown(context.Background()) // likewise
				synctest.Wait()
			}
			next.Deliver(scene.Text("a"), scene.Text("b"))
			synctest.Wait()
			next.Fail(&conn.CloseError{Code: 1000})
			<-c.Done()
			var got []string
			for m, err := range c.Messages(t.Context()) {
				if err == nil {
					got = append(got, string(m.Data))
				}
			}
			require.Equal(t, []string{"a", "b"}, got)
		})
	}
}

// The error says that the peer has not answered, although the next session has replaced the old one meanwhile.
func TestShutdownSaysThatReplacedPeerIsMute(t *testing.T) {
	for name, reads := range map[string]bool{"read after the close frame": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
				old, next := conntest.NewFake(&scene.Alive), conntest.NewFake(&scene.Alive)
				started, dials := make(chan int, 2), make(chan conn.Conn)
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
					return <-dials, nil
				}), &reconnect.Options{Rotate: reconnect.Rotation{Drain: time.Second}})
				require.NoError(t, err)
				if first := old.Conn(); reads {
					dials <- starter{first, started}
				} else {
					dials <- first
				}
				require.NoError(t, c.AwaitReady(t.Context()))
				old.Mute()
				c.Rotate(1, reconnect.Advice{})
				synctest.Wait()
				failed := make(chan error)
				go func() { failed <- c.Shutdown(context.Background()) }()
				synctest.Wait()
				dials <- next.Conn()
				require.EqualError(t, <-failed, "reconnect: shutdown: the peer has not answered the close frame")
			})
		})
	}
}
