package receive_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 11, for the Conn of a New that fails: what a layer has begun with it ends. Its methods
// return.
func TestConnOfFailedNewEnds(t *testing.T) {
	for name, closes := range map[string]bool{"closed by layer": true, "not closed": false} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				bad := errors.New("used already")
				var kept *reconnect.Conn
				read := make(chan error, 1)
				o.Layers = []*reconnect.Layer{
					{Start: func(c *reconnect.Conn) error {
						kept = c
						require.NoError(t, c.Send(scene.Out("a")))
						go func() { // ends with the Conn, and then sends to read
							_, err := c.Read(context.Background(), nil)
							read <- err
						}()
						if closes {
							c.Close()
						}
						return nil
					}},
					{Start: func(*reconnect.Conn) error { return bad }},
				}
				_, err := reconnect.New(s, o)
				require.ErrorIs(t, err, bad)
				<-kept.Done()
				require.ErrorIs(t, kept.Err(), bad)
				require.ErrorIs(t, kept.Err(), net.ErrClosed)
				require.ErrorIs(t, <-read, net.ErrClosed)
				require.Equal(t, reconnect.StateClosed, kept.State())
				require.ErrorIs(t, kept.Write(t.Context(), scene.Text("b")), net.ErrClosed)
				require.Len(t, receipts.All(), 1)
				_ = kept.Shutdown(t.Context())
				kept.Close()
				s.WantNoDial()
			})
		})
	}
}
