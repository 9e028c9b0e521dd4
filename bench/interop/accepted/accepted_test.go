package accepted

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/drain"
)

// gorilla accepts a connection with gorilla/websocket.
func gorilla(g *drain.Group) http.Handler {
	upgrader := websocket.Upgrader{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		defer g.Add(func(code int, reason string) error {
			deadline := time.Now().Add(5 * time.Second)
			err := c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
			c.SetReadDeadline(deadline) // then the reader ends with the answer, or at the deadline
			return err
		}).Remove()
		for err == nil {
			_, _, err = c.ReadMessage()
		}
	})
}

// events are the callbacks of a gws connection.
type events struct {
	gws.BuiltinEventHandler
	g       *drain.Group
	members sync.Map // by connection
}

func (e *events) OnOpen(c *gws.Conn) {
	e.members.Store(c, e.g.Add(func(code int, reason string) error {
		return c.WriteClose(uint16(code), []byte(reason))
	}))
}

func (e *events) OnClose(c *gws.Conn, _ error) {
	if m, was := e.members.LoadAndDelete(c); was {
		m.(*drain.Member).Remove()
	}
}

// lxzan accepts a connection with lxzan/gws.
func lxzan(g *drain.Group) http.Handler {
	upgrader := gws.NewUpgrader(&events{g: g}, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := upgrader.Upgrade(w, r); err == nil {
			c.ReadLoop()
		}
	})
}

// Clients of ours see the code and the reason, whichever library has accepted them.
func TestConnectionsOfOtherLibrariesClose(t *testing.T) {
	for name, accept := range map[string]func(*drain.Group) http.Handler{"gorilla": gorilla, "gws": lxzan} {
		t.Run(name, func(t *testing.T) {
			g, err := drain.New(&drain.Options{Lead: -1, Window: 500 * time.Millisecond, Advice: drain.Advice{Wait: 12 * time.Second, Spread: 30 * time.Second}})
			require.NoError(t, err)
			server := httptest.NewServer(g.Handler(accept(g)))
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d := &dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}
			ends := make([]error, 50)
			var clients sync.WaitGroup
			for i := range ends {
				c, err := d.Dial(ctx)
				require.NoError(t, err)
				clients.Go(func() {
					_, ends[i] = c.Read(nil)
					c.CloseNow()
				})
			}
			for g.Stats().Added < len(ends) { // gws calls OnOpen when the client has its answer
				require.NoError(t, ctx.Err())
				time.Sleep(time.Millisecond)
			}
			require.NoError(t, g.Drain(ctx))
			clients.Wait()
			for _, err := range ends {
				var closed *conn.CloseError
				require.ErrorAs(t, err, &closed)
				require.Equal(t, "1012 redial/1 wait=12s spread=30s", fmt.Sprint(closed.Code, " ", closed.Reason))
			}
			require.Equal(t, drain.Stats{Added: 50, Closed: 50}, g.Stats())
		})
	}
}
