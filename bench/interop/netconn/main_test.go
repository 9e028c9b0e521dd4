package netconn

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server of coder/websocket, and gives each connection to handle as a net.Conn of
// coder/websocket. It returns the address.
func serve(t *testing.T, handle func(net.Conn)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(1 << 20)
		handle(websocket.NetConn(context.Background(), ws, websocket.MessageBinary))
	}))
	t.Cleanup(s.Close)
	return "ws" + s.URL[len("http"):]
}

// dial returns a NetConn to the address.
func dial(ctx context.Context, d *dialer.WebSocket) (net.Conn, error) {
	c, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return conn.NetConn(c, conn.Binary), nil
}
