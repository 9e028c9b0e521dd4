package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// callbacks has a dial for each function that a user can give to a dialer, in which
// that function calls leave.
var callbacks = map[string]func(t *testing.T, leave func()) func(context.Context) error{
	"Prepare": func(t *testing.T, leave func()) func(context.Context) error {
		return opening(&WebSocket{URL: "ws://127.0.0.1:1", Prepare: func(context.Context, *Request) error { leave(); return nil }})
	},
	"Proxy": func(t *testing.T, leave func()) func(context.Context) error {
		return opening(&WebSocket{URL: "ws://127.0.0.1:1", Proxy: func(*http.Request) (*url.URL, error) { leave(); return nil, nil }})
	},
	"WebSocket.DialContext": func(t *testing.T, leave func()) func(context.Context) error {
		return opening(&WebSocket{URL: "ws://127.0.0.1:1", DialContext: leaving(leave)})
	},
	"Framed.DialContext": func(t *testing.T, leave func()) func(context.Context) error {
		return opening(&Framed{Address: "127.0.0.1:1", Framer: conn.Lines{}, DialContext: leaving(leave)})
	},
	"LookupNetIP": func(t *testing.T, leave func()) func(context.Context) error {
		return opening(&Framed{Address: "x.example:1", Framer: conn.Lines{}, TCP: TCPOptions{LookupNetIP: resolver(leave).LookupNetIP}})
	},
	"Control": func(t *testing.T, leave func()) func(context.Context) error {
		options := TCPOptions{
			LookupNetIP: (&names{addrs: addrs("127.0.0.1", "127.0.0.2")}).LookupNetIP, // a race
			Control:     func(string, string, syscall.RawConn) error { leave(); return nil },
		}
		return opening(&Framed{Address: "x.example:" + listen(t, "127.0.0.1:0"), Framer: conn.Lines{}, TCP: options})
	},
	"DialOnce": func(t *testing.T, leave func()) func(context.Context) error {
		d := &Dialer{Policy: backoff.Limit(nil, 0, 1), DialOnce: leaving(leave)}
		return func(ctx context.Context) error { _, err := d.DialContext(ctx, "tcp", "127.0.0.1:1"); return err }
	},
	"Dialer's Control": func(t *testing.T, leave func()) func(context.Context) error {
		d := &Dialer{Policy: backoff.Limit(nil, 0, 1)}
		d.TCP.Control = func(string, string, syscall.RawConn) error { leave(); return nil }
		return func(ctx context.Context) error { _, err := d.DialContext(ctx, "tcp", "127.0.0.1:1"); return err }
	},
}

func opening(d dials) func(context.Context) error {
	return func(ctx context.Context) error { _, err := d.Dial(ctx); return err }
}

func leaving(leave func()) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { leave(); return nil, errFell }
}

type resolver func()

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r()
	return nil, errFell
}

// sockets returns how many files this process has open, where the system tells it.
func sockets() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

func TestACallbackThatDoesNotReturnIsAnError(t *testing.T) {
	for name, dial := range callbacks {
		t.Run(name, func(t *testing.T) {
			run := dial(t, runtime.Goexit)
			open := sockets()
			err := run(t.Context())
			require.ErrorIs(t, err, errGoexit)
			require.ErrorContains(t, err, "runtime.Goexit")
			require.LessOrEqual(t, sockets(), open, "a socket is left open")
		})
	}
}

func TestAPanicOfACallbackReachesTheCallerOfDial(t *testing.T) {
	for name, dial := range callbacks {
		t.Run(name, func(t *testing.T) {
			errBoom := errors.New("boom")
			run := dial(t, func() { panic(errBoom) })
			open := sockets()
			defer func() {
				err, _ := recover().(error)
				require.ErrorIs(t, err, errBoom)
				require.ErrorContains(t, err, "call_test.go", "with the stack of the panic")
				require.LessOrEqual(t, sockets(), open, "a socket is left open")
			}()
			t.Error("no panic, but", run(t.Context()))
		})
	}
}

// A function that panics when a socket is open: here in TLS.
func TestAPanicClosesTheSocket(t *testing.T) {
	withSecureServer(t, func(t *testing.T, v *wsServer) {
		boom := true
		v.dialer.TLS.VerifyConnection = func(tls.ConnectionState) error {
			if boom {
				panic("boom")
			}
			return nil
		}
		require.Panics(t, func() { v.dialer.Dial(t.Context()) })
		synctest.Wait()
		require.Zero(t, v.network.Count("").Open)
		time.Sleep(time.Hour) // no limit is left that could strike
		boom = false
		v.dial(t).CloseNow()
	})
}

func TestANilPanicIsAPanic(t *testing.T) {
	_, err := call(func() (int, error) { panic(nil) })
	require.ErrorAs(t, err, new(*runtime.PanicNilError))
	require.Panics(t, func() { raise(err) })
	require.NotPanics(t, func() { raise(errGoexit) })
}
