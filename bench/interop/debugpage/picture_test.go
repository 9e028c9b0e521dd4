package debugpage

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/debug"
)

// world is a program with connections in many conditions, in virtual time.
type world struct {
	t       *testing.T
	network *conntest.Network
	page    *debug.Page
	gate    *budget.Gate
	conns   []*reconnect.Conn
}

// dial opens a Conn and registers it.
func (w *world) dial(name, url string, o reconnect.Options, c *debug.ConnOptions) *reconnect.Conn {
	o.Run.Gate = w.gate
	feed, err := reconnect.New(&dialer.WebSocket{URL: url, DialContext: w.network.DialContext, Proxy: http.ProxyURL(nil)}, &o)
	require.NoError(w.t, err)
	w.page.Register(name, feed, c)
	w.conns = append(w.conns, feed)
	return feed
}

// every calls f again and again until the end of the test.
func every(ctx context.Context, d time.Duration, f func(i int)) {
	go func() { // ends with ctx, and the bubble waits for it
		for i := 0; ; i++ {
			select {
			case <-time.After(d + time.Duration(i*i%7)*d/3):
				f(i)
			case <-ctx.Done():
				return
			}
		}
	}()
}

// push receives and does nothing with it.
var push = reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}}

// live lets connections live for some hours, and returns the pages of all and of one of them.
func live(t *testing.T) (list, one string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{t: t, network: new(conntest.Network)}
		w.page = debug.New(&debug.Options{Title: "trader"})
		var err error
		w.gate, err = budget.NewGate(nil)
		require.NoError(t, err)
		breaker, err := budget.NewBreaker(&budget.BreakerOptions{MinSamples: 4, Open: time.Hour})
		require.NoError(t, err)
		w.page.RegisterGate("venues", w.gate)
		w.page.RegisterBreaker("orders api", breaker)
		w.page.RegisterValues("Order books", func() []debug.Value {
			return []debug.Value{{Name: "books", Text: "412"}, {Name: "stale", Text: "38"}, {Name: "last snapshot", Text: "0.8 s"}}
		})
		servers := w.scene(ctx)
		time.Sleep(3*time.Hour + 17*time.Minute)
		w.trouble(servers, breaker)
		list, one = get(t, w.page, "/"), get(t, w.page, "/?conn=3")
		cancel()
		for _, c := range w.conns {
			c.Close()
			<-c.Done()
		}
		for _, s := range servers {
			s.Close()
		}
		require.NoError(t, w.page.Close())
	})
	return list, one
}

// scene starts the servers and the connections.
func (w *world) scene(ctx context.Context) map[string]*conntest.Server {
	feed := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		ctx = c.CloseRead(ctx)
		for i := 0; c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"seq":%d,"bid":101.25,"ask":101.5}`, i)) == nil; i++ {
			time.Sleep(700 * time.Millisecond)
		}
	}
	servers := map[string]*conntest.Server{}
	for _, host := range []string{"md.venue-a.example:80", "md.venue-b.example:80", "orders.venue-a.example:80", "chat.example:80", "old.example:80", "risk.example:80"} {
		handler := feed
		if strings.HasPrefix(host, "chat") || strings.HasPrefix(host, "risk") || strings.HasPrefix(host, "orders") {
			handler = conntest.Discard
		}
		servers[host] = conntest.NewServer(w.network, host, handler)
	}
	url := func(host, path string) string { return "ws://" + strings.TrimSuffix(host, ":80") + path }
	subs := func(wanted, held int) *debug.ConnOptions {
		return &debug.ConnOptions{Subscriptions: func() (int, int) { return wanted, held }}
	}
	w.dial("venue-a trades", url("md.venue-a.example:80", "/v2/trades"), push, subs(180, 180))
	w.dial("venue-a depth", url("md.venue-a.example:80", "/v2/depth"), push, subs(180, 180))
	w.dial("venue-b depth", url("md.venue-b.example:80", "/stream"), push, subs(52, 14))
	orders := push
	orders.WhenDown = reconnect.WhenDownKeep
	orders.Outbox = reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}, Age: time.Hour}
	o := w.dial("orders", url("orders.venue-a.example:80", "/orders"), orders, nil)
	rotating := push
	rotating.Rotate.After = 9 * time.Minute
	w.dial("chat", url("chat.example:80", "/room/7"), rotating, nil)
	w.dial("legacy feed", url("old.example:80", "/v1"), push, nil)
	w.dial("risk", url("risk.example:80", "/limits"), push, nil)
	report := w.dial("nightly report", url("risk.example:80", "/report"), push, nil)
	every(ctx, 6*time.Minute, func(i int) { servers["md.venue-b.example:80"].Disconnect(1012, "token=secret") })
	every(ctx, 23*time.Minute, func(i int) { w.network.ResetAll("md.venue-a.example:80") })
	every(ctx, 31*time.Minute, func(i int) { servers["orders.venue-a.example:80"].Disconnect(1001, "") })
	every(ctx, 5*time.Second, func(i int) {
		_ = o.Send(reconnect.Outgoing{Message: conn.TextMessage(fmt.Sprintf(`{"op":"order","id":%d,"px":101.25,"qty":3}`, i))})
	})
	time.AfterFunc(3*time.Hour+15*time.Minute, func() { report.Close() })
	return servers
}

// trouble is what goes wrong in the last minutes.
func (w *world) trouble(servers map[string]*conntest.Server, breaker *budget.Breaker) {
	servers["old.example:80"].Next(conntest.Status(410, nil))
	w.network.ResetAll("old.example:80")
	for range 6 {
		if done, ok := breaker.Admit(backoff.Verdict{}); ok {
			done(backoff.Verdict{Class: backoff.ClassRetry})
		}
	}
	for range 4 {
		time.Sleep(35 * time.Second)
		servers["md.venue-b.example:80"].Disconnect(1013, "")
	}
	busy := make([]conntest.Answer, 40)
	for i := range busy {
		busy[i] = conntest.Status(503, conntest.RetryAfter("20"))
	}
	servers["orders.venue-a.example:80"].Next(busy...)
	servers["orders.venue-a.example:80"].Disconnect(1012, "")
	time.Sleep(95 * time.Second)
}

// get returns a page.
func get(t *testing.T, h http.Handler, path string) string {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:7"
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	require.Equal(t, http.StatusOK, rec.Code)
	return rec.Body.String()
}

// TestPicture makes the pictures, if REDIAL_PICTURES names a directory for them.
func TestPicture(t *testing.T) {
	dir := os.Getenv("REDIAL_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	list, one := live(t)
	require.NotContains(t, list+one, "secret")
	url := still(t, map[string]string{"/": list, "/?conn=3": one})
	p := chromium.Start(t).Open(t, url)
	for _, x := range []picture{
		{"light", "", 1200, false, false}, {"dark", "", 1200, true, false}, {"one", "?conn=3", 1200, false, false},
		{"phone-one-dark", "?conn=3", 0, true, true}, {"phone", "", 0, false, true},
	} {
		shrink(t, x.take(t, p, url, dir))
	}
	require.Empty(t, p.Problems())
}

// still serves pages, by their queries, whose clock stands still.
func still(t *testing.T, pages map[string]string) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, refresh.ReplaceAllString(pages[r.URL.RequestURI()], "${1}3600"))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// refresh is the time after which a page without scripts loads itself again. A picture of many rows may take longer, and a
// page that loads itself in the middle of its picture has none.
var refresh = regexp.MustCompile(`(http-equiv="refresh" content=")\d+`)

// picture is a picture of a page.
type picture struct {
	name        string
	query       string
	width       int
	dark, phone bool
}

// take takes the picture, and returns the path of the file.
func (x picture) take(t *testing.T, p *chromium.Page, url, dir string) (path string) {
	if x.phone {
		p.Phone(t)
	} else {
		p.Size(t, x.width, 500)
	}
	p.Dark(t, x.dark)
	p.Navigate(t, url+x.query)
	p.Wait(t, `document.getElementById("live").textContent === "live" || document.querySelector("noscript meta")`)
	path = filepath.Join(dir, x.name+".png")
	p.Screenshot(t, path)
	return path
}

// shrink writes a picture anew with its 256 most frequent colors.
func shrink(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	full, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	counts := map[color.Color]int{}
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			counts[full.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	small := image.NewPaletted(full.Bounds(), colors[:min(len(colors), 256)])
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			small.Set(x, y, full.At(x, y))
		}
	}
	var b bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}
