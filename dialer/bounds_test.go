package dialer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// bound is a limit that an option sets, or that the documentation names.
type bound struct {
	name string
	n    int

	// within uses k of what is bounded, and reports whether that was within the bound.
	within func(t *testing.T, v *wsServer, n, k int) bool
}

var bounds = []bound{
	{"header of an answer", 64 << 10, func(t *testing.T, v *wsServer, _, k int) bool {
		const before, after = "HTTP/1.1 401 X\r\nX: ", "\r\n\r\n"
		v.Next(conntest.Garbage([]byte(before + strings.Repeat("x", k-len(before+after)) + after)))
		return v.fail(t, t.Context(), 0).StatusCode == 401
	}},
	{"text of an error", 256, func(t *testing.T, v *wsServer, _, k int) bool {
		v.dialer.Prepare = func(context.Context, *Request) error { return errors.New(strings.Repeat("x", k)) }
		return strings.HasSuffix(v.fail(t, t.Context(), 0).Error(), ": "+strings.Repeat("x", k))
	}},
	{"body of a refusal", 1024, func(t *testing.T, v *wsServer, _, k int) bool {
		v.Next(refuse("text/plain", "a\n"+strings.Repeat("x", k-2)))
		return strings.HasSuffix(v.fail(t, t.Context(), 0).Error(), `Unauthorized: "a"`)
	}},
	{"first line of a refusal", 200, func(t *testing.T, v *wsServer, _, k int) bool {
		v.Next(text(401, strings.Repeat("x", k)))
		return strings.HasSuffix(v.fail(t, t.Context(), 0).Error(), `Unauthorized: "`+strings.Repeat("x", k)+`"`)
	}},
	{"user for SOCKS5", 255, func(t *testing.T, v *wsServer, _, k int) bool {
		return reachesSOCKS5(t, v, "ws://host.example", url.UserPassword(strings.Repeat("u", k), "p"))
	}},
	{"password for SOCKS5", 255, func(t *testing.T, v *wsServer, _, k int) bool {
		return reachesSOCKS5(t, v, "ws://host.example", url.UserPassword("u", strings.Repeat("p", k)))
	}},
	{"host for SOCKS5", 255, func(t *testing.T, v *wsServer, _, k int) bool {
		return reachesSOCKS5(t, v, "ws://"+strings.Repeat("h", k), nil)
	}},
	{"calls of a Dialer that wait for one address", 8, func(t *testing.T, v *wsServer, _, k int) bool {
		ctx, cancel := context.WithCancel(t.Context())
		d, ended := &Dialer{DialOnce: v.network.DialContext}, make(chan bool, k)
		for range k {
			go func() {
				_, _ = d.DialContext(ctx, "tcp", "away.test:1")
				ended <- true
			}()
		}
		synctest.Wait()
		within := len(ended) == 0
		for cancel(); k > 0; k-- {
			<-ended
		}
		return within
	}},
	{"WebSocket.Conn.Limits.ReadLimit", 1000, func(t *testing.T, v *wsServer, n, k int) bool {
		v.dialer.Conn.ReadLimit = int64(n)
		return readsAll(t, v, strings.Repeat("x", k), 1)
	}},
	{"WebSocket.Split.Parts", 3, func(t *testing.T, v *wsServer, n, k int) bool {
		v.dialer.Split = conn.Split{Func: bufio.ScanLines, Parts: n}
		return readsAll(t, v, strings.Repeat("x\n", k), k)
	}},
	{"Framed.Conn.Limits.ReadLimit", 1000, func(t *testing.T, v *wsServer, n, k int) bool {
		d := framedAt(v)
		d.Conn.ReadLimit = int64(n)
		c, p := open(t, v, d)
		defer c.CloseNow()
		p.Inject(conntest.ToClient, []byte(strings.Repeat("x", k)+"\n"))
		_, err := c.Read(nil)
		return err == nil
	}},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				withServer(t, func(t *testing.T, v *wsServer) {
					require.Equal(t, k <= b.n, b.within(t, v, b.n, k), "%d of %d", k, b.n)
				})
			}
		})
	}
}

// reachesSOCKS5 reports whether a SOCKS5 proxy is asked for the host of a URL.
func reachesSOCKS5(t *testing.T, v *wsServer, to string, user *url.Userinfo) bool {
	p := v.proxy(t, "socks5", &proxyServer{reply: 1})
	p.user, p.password = "", ""
	if user != nil {
		p.user = user.Username()
		p.password, _ = user.Password()
	}
	v.dialer.URL = to
	v.dialer.Proxy = http.ProxyURL(&url.URL{Scheme: "socks5", Host: proxyAddr, User: user})
	v.fail(t, t.Context(), 0)
	return len(p.targets) == 1
}

// readsAll reports whether a message of the server is read as n messages.
func readsAll(t *testing.T, v *wsServer, message string, n int) bool {
	v.Next(v.AcceptWith(func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_ = c.Write(ctx, websocket.MessageText, []byte(message))
		<-ctx.Done()
	}))
	c, err := v.dialer.Dial(t.Context())
	require.NoError(t, err)
	defer c.CloseNow()
	for range n {
		if _, err := c.Read(nil); err != nil {
			return false
		}
	}
	return true
}

// framedAddress is the address at which connections are accepted, and nothing more.
const framedAddress = "framed.test:7"

func framedAt(v *wsServer) *Framed {
	return &Framed{Address: framedAddress, Framer: conn.Lines{}, DialContext: v.network.DialContext}
}

// open opens a connection, and returns it with the pipe under it. The caller closes it.
func open(t *testing.T, v *wsServer, d dials) (conn.Conn, *conntest.Pipe) {
	addr := serverAddr
	if _, ok := d.(*Framed); ok {
		addr = framedAddress
		listenOn(t, v, addr)
	}
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	synctest.Wait()
	return c, v.network.Conns(addr)[0]
}

// listenOn accepts connections at addr, which get no answer.
func listenOn(t *testing.T, v *wsServer, addr string) {
	l, err := v.network.Listen(addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
}

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // the event has happened at n itself

	// happened waits for k if that is what is bounded, and reports whether the event has happened.
	happened func(t *testing.T, v *wsServer, n, k time.Duration) bool
}

var timeBounds = slices.Concat([]timeBound{
	{"WebSocket.ConnectTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		v.dialer.ConnectTimeout = n
		v.network.Fault(serverAddr, conntest.Fault{Hang: true})
		return ends(t, k, v.dialer)
	}},
	{"WebSocket.ConnectTimeout by default", 16 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			v.network.Fault(serverAddr, conntest.Fault{Hang: true})
			return ends(t, k, v.dialer)
		}},
	{"WebSocket.HandshakeTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		v.dialer.HandshakeTimeout = n
		v.Next(conntest.Hang)
		return ends(t, k, v.dialer)
	}},
	{"WebSocket.HandshakeTimeout by default", 30 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			v.Next(conntest.Hang)
			return ends(t, k, v.dialer)
		}},
	{"WebSocket.HandshakeTimeout, of Prepare", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			v.dialer.HandshakeTimeout = n
			v.dialer.Prepare = func(ctx context.Context, _ *Request) error { <-ctx.Done(); return ctx.Err() }
			return ends(t, k, v.dialer)
		}},
	{"Framed.ConnectTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		d := framedAt(v)
		d.ConnectTimeout = n
		v.network.Fault(framedAddress, conntest.Fault{Hang: true})
		return ends(t, k, d)
	}},
	{"Framed.ConnectTimeout by default", 16 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			v.network.Fault(framedAddress, conntest.Fault{Hang: true})
			return ends(t, k, framedAt(v))
		}},
	{"Framed.HandshakeTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		d := framedAt(v)
		d.TLS, d.HandshakeTimeout = new(tls.Config), n
		listenOn(t, v, framedAddress)
		return ends(t, k, d)
	}},
	{"Framed.HandshakeTimeout by default", 30 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			d := framedAt(v)
			d.TLS = new(tls.Config)
			listenOn(t, v, framedAddress)
			return ends(t, k, d)
		}},
	{"Dialer.ConnectTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		return ends(t, k, hanging{&Dialer{ConnectTimeout: n, Policy: backoff.Limit(nil, 0, 1)}, v})
	}},
	{"Dialer.ConnectTimeout by default", 16 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			return ends(t, k, hanging{&Dialer{Policy: backoff.Limit(nil, 0, 1)}, v})
		}},
	{"Dialer.MaxElapsed", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		return ends(t, k, hanging{&Dialer{MaxElapsed: n, ConnectTimeout: -1}, v})
	}},
	{"Dialer.MaxElapsed by default", 127 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			return ends(t, k, hanging{&Dialer{ConnectTimeout: -1}, v})
		}},
	{"Dialer.MaxElapsed, of a wait", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			d := &Dialer{
				MaxElapsed: n,
				Policy:     &backoff.Exponential{Base: k, Cap: k, Jitter: backoff.JitterNone},
				DialOnce:   v.network.DialContext,
			}
			start := time.Now()
			_, err := d.DialContext(t.Context(), "tcp", "away.test:1")
			require.ErrorIs(t, err, backoff.ErrGaveUp)
			return time.Since(start) == 0
		}},
	{"WebSocket.Conn.Limits.MessageTimeout", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			v.dialer.Conn.MessageTimeout = n
			return readEnds(t, v, v.dialer, "\x82\x05x", k)
		}},
	{"Framed.Conn.Limits.MessageTimeout", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			d := framedAt(v)
			d.Conn.MessageTimeout = n
			return readEnds(t, v, d, "x", k)
		}},
	{"WebSocket.Conn.Limits.WriteTimeout", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			v.dialer.Conn.WriteTimeout = n
			return writeEnds(t, v, v.dialer, k)
		}},
	{"Framed.Conn.Limits.WriteTimeout", 3 * time.Second, true,
		func(t *testing.T, v *wsServer, n, k time.Duration) bool {
			d := framedAt(v)
			d.Conn.WriteTimeout = n
			return writeEnds(t, v, d, k)
		}},
	{"connecting to an endpoint that has not answered", 2 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			d := newTwoEndpoints(t, conntest.Fault{Hang: true})
			d.network.Fault("b.test:80", conntest.Fault{Hang: true})
			return during(t, k, d, func(bool) bool { return len(d.network.Dials("")) == 2 })
		}},
	{"handshake that hangs", 3 * time.Second, true, func(t *testing.T, v *wsServer, _, k time.Duration) bool {
		d := newTwoEndpoints(t)
		return during(t, k, untilHung{d}, func(bool) bool { return !d.asksA(t) })
	}},
	{"memory of a handshake that hung", 10 * time.Minute, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			d := newTwoEndpoints(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(10*time.Second, func() { cancel(backoff.ErrHung) })
			_, err := untilHung{d}.Dial(ctx)
			require.ErrorIs(t, err, backoff.ErrHung)
			time.Sleep(k)
			return d.asksA(t)
		}},
	{"memory of an endpoint that was too slow", 10 * time.Minute, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			d := newTwoEndpoints(t, conntest.Fault{Hang: true}, conntest.Fault{})
			for asked := false; !asked; {
				_, asked = d.dial(t)
			}
			time.Sleep(k)
			return d.asksA(t)
		}},
	{"Retry-After of one endpoint", time.Minute, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		d := newTwoEndpoints(t)
		d.a.Next(conntest.Status(503, conntest.RetryAfter(fmt.Sprint(n.Seconds()))), d.a.Accept)
		for asked := false; !asked; {
			_, asked = d.dial(t)
		}
		time.Sleep(k)
		return d.asksA(t)
	}},
	{"lookup", 12 * time.Second, true, func(t *testing.T, v *wsServer, _, k time.Duration) bool {
		v.dialer.DialContext, v.dialer.TCP.LookupNetIP = nil, answersAfter{}.LookupNetIP
		return ends(t, k, v.dialer)
	}},
	{"lookup, of ConnectTimeout", 3 * time.Second, true, func(t *testing.T, v *wsServer, n, k time.Duration) bool {
		v.dialer.DialContext, v.dialer.TCP.LookupNetIP = nil, answersAfter{}.LookupNetIP
		v.dialer.ConnectTimeout = n / 3 * 4
		return ends(t, k, v.dialer)
	}},
	{"lookup, for an endpoint that has not answered", 1500 * time.Millisecond, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			var lookups atomic.Int32
			d := &Framed{Addresses: []string{"a.test:1", "b.test:1"}, Framer: conn.Lines{}, TCP: TCPOptions{
				LookupNetIP: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
					lookups.Add(1)
					<-ctx.Done()
					return nil, ctx.Err()
				},
				LocalAddr: netip.MustParseAddr("127.0.0.1"),
			}}
			return during(t, k, d, func(bool) bool { return lookups.Load() == 2 })
		}},
	{"wait of IPv4 for IPv6", 50 * time.Millisecond, true, func(t *testing.T, v *wsServer, _, k time.Duration) bool {
		var dialed atomic.Bool
		return during(t, k, v.onlyIPv4(func() { dialed.Store(true) }), func(bool) bool { return dialed.Load() })
	}},
	{"wait for IPv6 when IPv4 has failed", 2 * time.Second, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			return ends(t, k, v.onlyIPv4(func() {}))
		}},
	{"head start of an address", 250 * time.Millisecond, true,
		func(t *testing.T, v *wsServer, _, k time.Duration) bool {
			var dialed atomic.Int32
			release := make(chan struct{})
			d := &Framed{Address: "feed.test:1", Framer: conn.Lines{}, TCP: TCPOptions{
				LookupNetIP: answersAfter{"ip4": {0, addrs("127.0.0.2", "127.0.0.3")}}.LookupNetIP,
				LocalAddr:   netip.MustParseAddr("127.0.0.1"), // so that no IPv6 is looked up
				Control: func(string, string, syscall.RawConn) error {
					dialed.Add(1)
					<-release
					return errFell
				},
			}}
			return during(t, k, d, func(bool) bool {
				defer close(release)
				return dialed.Load() == 2
			})
		}},
}, keepAliveBounds("WebSocket"), keepAliveBounds("Framed"), keepAliveBounds("Dialer"))

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				withServer(t, func(t *testing.T, v *wsServer) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, v, b.n, k), "after %v, and the bound is %v", k, b.n)
				})
			}
		})
	}
}

// ends reports whether a dial has ended after k.
func ends(t *testing.T, k time.Duration, d dials) bool {
	return during(t, k, d, func(ended bool) bool { return ended })
}

// during dials, and returns what look returns after k. look is called with whether the dial has ended.
func during(t *testing.T, k time.Duration, d dials, look func(ended bool) bool) bool {
	ctx, cancel := context.WithCancel(t.Context())
	return whileRunning(k, look, cancel, func() {
		if c, err := d.Dial(ctx); err == nil {
			c.CloseNow()
		}
	})
}

// whileRunning runs f, and returns what look returns after k. It calls stop, so that f ends, and waits for f.
func whileRunning(k time.Duration, look func(ended bool) bool, stop, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	defer func() { stop(); <-done }()
	time.Sleep(k)
	synctest.Wait()
	select {
	case <-done:
		return look(true)
	default:
		return look(false)
	}
}

// readEnds reports whether a Read that gets data, and no more, has ended after k.
func readEnds(t *testing.T, v *wsServer, d dials, data string, k time.Duration) bool {
	c, p := open(t, v, d)
	p.Inject(conntest.ToClient, []byte(data))
	stop := func() { c.CloseNow() }
	return whileRunning(k, func(ended bool) bool { return ended }, stop, func() { _, _ = c.Read(nil) })
}

// writeEnds reports whether a Write for which there is no room has ended after k.
func writeEnds(t *testing.T, v *wsServer, d dials, k time.Duration) bool {
	c, p := open(t, v, d)
	p.Window(conntest.ToServer, 0)
	stop := func() { c.CloseNow() }
	return whileRunning(k, func(ended bool) bool { return ended }, stop, func() { _ = c.Write(helloMessage) })
}

// hanging is a Dialer for an address that never answers.
type hanging struct {
	*Dialer
	server *wsServer
}

func (h hanging) Dial(ctx context.Context) (conn.Conn, error) {
	h.server.network.Fault("away.test:1", conntest.Fault{Hang: true})
	h.DialOnce = h.server.network.DialContext
	_, err := h.DialContext(ctx, "tcp", "away.test:1")
	return nil, err
}

// untilHung dials until a handshake at a.test hangs.
type untilHung struct{ *twoEndpoints }

func (d untilHung) Dial(ctx context.Context) (conn.Conn, error) {
	d.a.Next(conntest.Hang, d.a.Accept)
	for {
		c, err := d.twoEndpoints.Dial(ctx)
		if err != nil {
			return nil, err
		}
		c.CloseNow()
	}
}

// asksA reports whether one of 20 dials asks a.test.
func (d *twoEndpoints) asksA(t *testing.T) bool {
	for range 20 {
		if _, asked := d.dial(t); asked {
			return true
		}
	}
	return false
}

// onlyIPv4 returns a dialer for a host whose IPv4 address is known immediately and fails, and whose IPv6
// address is never known. It calls dialed with the first socket.
func (v *wsServer) onlyIPv4(dialed func()) *WebSocket {
	v.dialer.DialContext = nil
	v.dialer.TCP.LookupNetIP = answersAfter{"ip4": {0, addrs("127.0.0.1")}}.LookupNetIP
	v.dialer.TCP.Control = func(string, string, syscall.RawConn) error {
		dialed()
		return errFell
	}
	return v.dialer
}

// keepAliveBounds returns the bounds by which UserTimeout leaves room for two probes.
func keepAliveBounds(dialer string) []timeBound {
	valid := func(user, idle, interval time.Duration) bool {
		o := TCPOptions{UserTimeout: user}
		o.KeepAlive.Enable, o.KeepAlive.Idle, o.KeepAlive.Interval = true, idle, interval
		return map[string]interface{ Validate() error }{
			"WebSocket": &WebSocket{URL: serverURL, TCP: o},
			"Framed":    &Framed{Address: framedAddress, Framer: conn.Lines{}, TCP: o},
			"Dialer":    &Dialer{TCP: o},
		}[dialer].Validate() == nil
	}
	const s = time.Second
	return []timeBound{
		{dialer + ".TCP.UserTimeout", 3 * s, true, func(_ *testing.T, _ *wsServer, _, k time.Duration) bool {
			return valid(k, s, s)
		}},
		{dialer + ".TCP.KeepAlive.Idle", 3 * s, false, func(_ *testing.T, _ *wsServer, _, k time.Duration) bool {
			return !valid(5*s, k, s)
		}},
		{dialer + ".TCP.KeepAlive.Interval", 2 * s, false, func(_ *testing.T, _ *wsServer, _, k time.Duration) bool {
			return !valid(5*s, s, k)
		}},
	}
}

// unbounded are the numeric options that are no bounds, or that only the kernel counts.
var unbounded = []string{
	"WebSocket.Compression", "Framed.Conn.Type", // kinds
	"WebSocket.TCP.KeepAlive.Count", "Framed.TCP.KeepAlive.Count", "Dialer.TCP.KeepAlive.Count",
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	tested := slices.Clone(unbounded)
	for _, b := range bounds {
		tested = append(tested, b.name)
	}
	for _, b := range timeBounds {
		tested = append(tested, b.name)
	}
	for _, options := range []any{&WebSocket{}, &Framed{}, &Dialer{}} {
		v := reflect.ValueOf(options).Elem()
		fields := numbers(v, v.Type().Name()+".")
		require.NotEmpty(t, fields)
		for name := range fields {
			require.Contains(t, tested, name)
		}
	}
}
