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

// The next session of a rotation becomes ready while the old one does not answer the goodbye.
func TestShutdownSaysGoodbyeToNextSession(t *testing.T) {
	for name, mute := range map[string]bool{"answers": false, "mute": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				c := s.open(nil)
				old := s.wantDial().accept()
				old.Mute()
				c.Rotate(1, reconnect.Advice{})
				d := s.wantDial()
				go c.Shutdown(context.Background()) // returns when Done is closed
				synctest.Wait()
				next := d.accept()
				if mute {
					next.Mute()
				}
				<-c.Done()
				for _, peer := range []*conntest.Fake{old, next} {
					code, _, closed := peer.ClosedWith()
					require.True(t, closed)
					require.Equal(t, 1000, code)
				}
				require.LessOrEqual(t, s.now(), 11*time.Second)
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
		inBubble(t, func(t *testing.T, _ *scene) {
			old, next := conntest.NewFake(&alive), conntest.NewFake(&alive)
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
			next.Deliver(text("a"), text("b"))
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
