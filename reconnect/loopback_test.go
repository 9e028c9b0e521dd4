package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// feed is a handler that wants a login, sends three messages and hangs up.
func feed(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	_, login, err := c.Read(r.Context())
	if err != nil || string(login) != "me" {
		return
	}
	for i := range 4 {
		if err := c.Write(r.Context(), websocket.MessageText, fmt.Append(nil, i)); err != nil {
			return
		}
	}
}

// Promises 4, 5 and 11, over real TCP and TLS.
func TestMessagesOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(feed))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a dial that Close cuts is no news
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := &dialer.WebSocket{
		URL: "wss" + strings.TrimPrefix(server.URL, "https"),
		TLS: server.Client().Transport.(*http.Transport).TLSClientConfig,
	}
	o := run(every(time.Millisecond))
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		if err := op.Write(text("me")); err != nil {
			return err
		}
		_, err := op.Read()
		return err
	}
	c, err := reconnect.New(d, &o)
	require.NoError(t, err)
	defer quit(c)

	var got []string
	for m, err := range c.Messages(ctx) {
		var seam *reconnect.Seam
		switch {
		case errors.As(err, &seam):
			got = append(got, fmt.Sprint("seam ", seam.Session))
		case err != nil:
			got = append(got, err.Error())
		default:
			got = append(got, fmt.Sprintf("%d: %s", m.Session, m.Data))
		}
		if len(got) == 8 {
			break
		}
	}
	require.Equal(t, []string{"1: 1", "1: 2", "1: 3", "seam 1", "2: 1", "2: 2", "2: 3", "seam 2"}, got)
}

// What is promised of goroutines in doc.go, and promise 11: none is left.
func TestAReadyConnectionOwnsOneGoroutine(t *testing.T) {
	const conns = 50
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, o := range map[string]*reconnect.Options{"push": {OnMessage: func(context.Context, reconnect.Message) {}}, "pull": {}} {
		o.OnSession = func(context.Context, *reconnect.Opening) error { return nil }
		d := &dialer.WebSocket{URL: startPeer(t)}
		before := runtime.NumGoroutine()
		var open []*reconnect.Conn
		for range conns {
			c, err := reconnect.New(d, o)
			require.NoError(t, err)
			defer quit(c)
			open = append(open, c)
			require.NoError(t, c.Await(ctx, reconnect.StateReady))
		}
		wantGoroutines(ctx, t, before+conns, name)
		for _, c := range open {
			quit(c)
		}
		wantGoroutines(ctx, t, before, name)
	}
}

// wantGoroutines waits until there are exactly so many: those of a handshake may
// take a moment to end.
func wantGoroutines(ctx context.Context, t *testing.T, want int, name string) {
	t.Helper()
	for runtime.NumGoroutine() != want {
		if ctx.Err() != nil {
			require.Equal(t, want, runtime.NumGoroutine(), name)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
