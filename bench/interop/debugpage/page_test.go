package debugpage

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/debug"
)

// program is a program with a page, and connections to two servers.
type program struct {
	network *conntest.Network
	venue   *conntest.Server
	page    *debug.Page
	url     string
}

// start starts a program. The end of the test ends it.
func start(t *testing.T) *program {
	p := &program{network: new(conntest.Network)}
	p.venue = conntest.NewServer(p.network, "venue:80", conntest.Discard)
	t.Cleanup(p.venue.Close)
	p.page = debug.New(&debug.Options{Title: "program"})
	t.Cleanup(func() { p.page.Close() })
	var err error
	p.url, err = p.page.Listen(":0")
	require.NoError(t, err)
	return p
}

// open opens a connection under a name. The end of the test closes it.
func (p *program) open(t *testing.T, name string) *reconnect.Conn {
	c, err := reconnect.New(&dialer.WebSocket{
		URL: "ws://planted:planted@venue/feed?token=planted", DialContext: p.network.DialContext, Proxy: http.ProxyURL(nil),
	}, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); <-c.Done() })
	p.page.Register(name, c, nil)
	return c
}

// row is an expression for the text of the first row.
const row = `document.querySelector("#conns tbody tr").textContent`

// A connection goes away and comes back on a page that nobody loads again. Meanwhile the
// countdown runs.
func TestAConnectionGoesAwayAndComesBack(t *testing.T) {
	p := start(t)
	const name = `feed <img src=x onerror="document.title='hurt'">`
	c := p.open(t, name)
	require.NoError(t, c.AwaitReady(t.Context()))
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Wait(t, row+`.includes("ready")`)
	tab.Eval(t, `void (window.here = true)`, nil)
	p.network.Fault("venue:80", conntest.Fault{Err: syscall.ECONNREFUSED})
	p.network.ResetAll("venue:80")
	tab.Wait(t, row+`.includes("waiting")`)
	tab.Wait(t, `(() => { const e = document.querySelector("#conns .next"); if (!e) return false
		window.seen = window.seen || new Set(); seen.add(e.textContent); return seen.size >= 3 })()`)
	tab.Wait(t, row+`.includes("refused")`)
	tab.Wait(t, `document.querySelector(".chip.away b").textContent === "1"`)
	p.network.Fault("venue:80")
	tab.Wait(t, row+`.includes("ready")`)
	tab.Wait(t, `document.querySelector(".cells .lost") && document.querySelector(".cells .now") !== null`)
	tab.Wait(t, `window.here`)
	tab.Click(t, "#conns a")
	tab.Wait(t, `document.querySelector(".events") && document.getElementById("live").textContent === "live"`)
	require.Equal(t, "program / "+name, tab.Text(t, "h1"))
	require.Contains(t, tab.Text(t, ".events"), "session_done")
	p.venue.Disconnect(1012, "planted")
	tab.Wait(t, `document.querySelector(".events").textContent.includes("1012 (service restart)")`)
	var source, title string
	tab.Eval(t, `document.documentElement.outerHTML`, &source)
	tab.Eval(t, `document.title`, &title)
	require.NotContains(t, source, "planted")
	require.NotEqual(t, "hurt", title)
	require.Empty(t, tab.Problems())
}

// The page shows the worst hundred, and all if asked.
func TestHundredRowsOrAll(t *testing.T) {
	p := start(t)
	for i := range 230 {
		p.open(t, fmt.Sprintf("conn %03d", i))
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.querySelector(".chip.ready b").textContent === "230" &&
		document.querySelectorAll("#conns tbody tr").length === 100`)
	tab.Wait(t, `document.querySelector(".end").textContent.includes("130 are not shown")`)
	tab.Click(t, ".end a")
	tab.Wait(t, `document.querySelectorAll("#conns tbody tr").length === 230 &&
		document.getElementById("live").textContent === "live"`)
	require.Empty(t, tab.Problems())
}

// Each line above the rows leads to its connections.
func TestTheLinesAboveTheRowsFilter(t *testing.T) {
	p := start(t)
	for i := range 3 {
		require.NoError(t, p.open(t, fmt.Sprint("good ", i)).AwaitReady(t.Context()))
	}
	p.network.Fault("venue:80", conntest.Fault{Err: syscall.ECONNREFUSED})
	for i := range 2 {
		p.open(t, fmt.Sprint("bad ", i))
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.querySelector(".about li")?.innerText.startsWith("2 away from venue:80 for ")`)
	tab.Click(t, ".about a")
	tab.Wait(t, `document.querySelectorAll("#conns tbody tr").length === 2 &&
		document.getElementById("live").textContent === "live"`)
	tab.Click(t, ".chip")
	tab.Wait(t, `document.querySelectorAll("#conns tbody tr").length === 5 &&
		document.getElementById("live").textContent === "live"`)
	p.network.Fault("venue:80")
	tab.Wait(t, `document.querySelector("p.about")?.innerText === "All connections are ready."`)
	require.Empty(t, tab.Problems())
}

// A page in a tab that is hidden is not loaded.
func TestAHiddenTabIsNotLive(t *testing.T) {
	p := start(t)
	p.open(t, "feed")
	browser := chromium.Start(t)
	tab := browser.Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	browser.Open(t, p.url).Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Wait(t, `document.getElementById("live").textContent === "not live while hidden"`)
	tab.Show(t)
	p.open(t, "later")
	tab.Wait(t, `document.getElementById("live").textContent === "live" &&
		document.querySelectorAll("#conns tbody tr").length === 2`)
	require.Empty(t, tab.Problems())
}

// A page whose program has ended says so, and does not go on counting.
func TestAProgramThatHasEndedIsNoticed(t *testing.T) {
	p := start(t)
	p.open(t, "feed")
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Click(t, "#pause")
	tab.Wait(t, `document.getElementById("live").textContent === "paused"`)
	tab.Click(t, "#pause")
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	require.NoError(t, p.page.Close())
	tab.Wait(t, `document.body.classList.contains("stale") &&
		document.getElementById("live").textContent.startsWith("not live")`)
}

// A program that was restarted gives its connections the same numbers again.
func TestRestartedProgramIsLoadedAgain(t *testing.T) {
	p := start(t)
	p.open(t, "before")
	tab := chromium.Start(t).Open(t, p.url+"?conn=1")
	tab.Wait(t, `document.querySelector("h1").innerText === "program / before"`)
	require.NoError(t, p.page.Close())
	tab.Wait(t, `document.getElementById("live").textContent.startsWith("not live")`)
	p.page = debug.New(&debug.Options{Title: "program"})
	t.Cleanup(func() { p.page.Close() })
	p.open(t, "after")
	_, err := p.page.Listen(strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/"))
	require.NoError(t, err)
	tab.Wait(t, `document.querySelector("h1").innerText === "program / after"`)
}

// A page does not change while its text is selected.
func TestSelectedTextStays(t *testing.T) {
	p := start(t)
	p.open(t, "feed")
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Eval(t, `getSelection().selectAllChildren(document.querySelector("#conns"))`, nil)
	tab.Wait(t, `document.getElementById("live").textContent === "not live while text is selected"`)
	tab.Eval(t, `getSelection().removeAllRanges()`, nil)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	require.Empty(t, tab.Problems())
}

// The list of gates, which is scrolled by keys, keeps the focus when the page is updated.
func TestGatesKeepFocus(t *testing.T) {
	p := start(t)
	gate, err := budget.NewGate(nil)
	require.NoError(t, err)
	p.page.RegisterGate("venues", gate)
	for i := range 50 {
		done, err := gate.Acquire(t.Context(), fmt.Sprintf("host-%d:1", i))
		require.NoError(t, err)
		done(backoff.Verdict{})
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	var focused bool
	tab.Eval(t, `(() => { window.before = document.querySelector(".gates"); before.focus(); before.scrollTo(0, 40)
		return document.activeElement === before })()`, &focused)
	require.True(t, focused)
	tab.Wait(t, `!before.isConnected`)
	tab.Wait(t, `document.activeElement.matches(".gates") && document.activeElement.scrollTop === 40`)
	require.Empty(t, tab.Problems())
}

// The page fits a phone: nothing is wider than the screen.
func TestThePageFitsAPhone(t *testing.T) {
	p := start(t)
	p.open(t, "a connection with a name that is longer than the screen of a phone is wide, so that it must be broken")
	tab := chromium.Start(t).Open(t, p.url)
	tab.Phone(t)
	for _, query := range []string{"", "?conn=1"} {
		tab.Navigate(t, p.url+query)
		tab.Wait(t, `document.documentElement.scrollWidth <= innerWidth && innerWidth === 390`)
	}
	require.Empty(t, tab.Problems())
}
