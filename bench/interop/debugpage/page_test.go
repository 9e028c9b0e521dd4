package debugpage

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
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

// row returns an expression for the text of a row.
func row(id int) string { return fmt.Sprintf(`document.getElementById("c%d").textContent`, id) }

// A connection goes away and comes back on a page that nobody loads again. Meanwhile the
// countdown runs.
func TestAConnectionGoesAwayAndComesBack(t *testing.T) {
	p := start(t)
	const name = `feed <img src=x onerror="document.title='hurt'">`
	c := p.open(t, name)
	require.NoError(t, c.AwaitReady(t.Context()))
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Wait(t, row(1)+`.includes("ready")`)
	tab.Eval(t, `void (window.here = true)`, nil)
	p.network.Fault("venue:80", conntest.Fault{Refuse: true})
	p.network.ResetAll("venue:80")
	tab.Wait(t, row(1)+`.includes("waiting")`)
	tab.Wait(t, `(() => { const e = document.querySelector("#c1 .next [data-until]"); if (!e) return false
		window.seen = window.seen || new Set(); seen.add(e.textContent); return seen.size >= 3 })()`)
	tab.Wait(t, row(1)+`.includes("refused")`)
	tab.Wait(t, `document.querySelector(".chip.away b").textContent === "1"`)
	p.network.Fault("venue:80")
	tab.Wait(t, row(1)+`.includes("ready")`)
	tab.Wait(t, `document.querySelector("#c1 svg .up") && document.querySelector("#c1 svg .now") !== null`)
	tab.Click(t, "#c1 a")
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

// The program searches and pages, and the page is not loaded again.
func TestSearchAndPages(t *testing.T) {
	p := start(t)
	for i := range 230 {
		p.open(t, fmt.Sprintf("conn %03d", i))
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.querySelector(".chip.ready b").textContent === "230" && document.querySelectorAll("#rows tr").length === 100`)
	tab.Click(t, `a[rel="next"]`)
	tab.Wait(t, `document.getElementById("pager").textContent.includes("101 to 200 of 230")`)
	tab.Wait(t, `document.getElementById("live").textContent === "live"`)
	tab.Eval(t, `(() => { window.here = true; const q = document.getElementById("q"); q.focus(); q.value = "CONN 17"; q.dispatchEvent(new Event("input")) })()`, nil)
	tab.Wait(t, `document.getElementById("pager").textContent.includes("1 to 10 of 10 found") && document.querySelectorAll("#rows tr").length === 10`)
	tab.Wait(t, `window.here && location.search === "?q=CONN+17"`)
	tab.Wait(t, `document.querySelector("footer a").getAttribute("href") === "?q=CONN+17&json"`)
	tab.Eval(t, `(() => { const q = document.getElementById("q"); q.value = "nothing"; q.dispatchEvent(new Event("input")) })()`, nil)
	tab.Wait(t, `document.getElementById("pager").textContent.includes("No connection is like that") && document.querySelectorAll("#rows tr").length === 0`)
	require.Empty(t, tab.Problems())
}

// Each line above the rows leads to its connections, and a search finds causes.
func TestTheLinesAboveTheRowsFilter(t *testing.T) {
	p := start(t)
	for i := range 3 {
		require.NoError(t, p.open(t, fmt.Sprint("good ", i)).AwaitReady(t.Context()))
	}
	p.network.Fault("venue:80", conntest.Fault{Refuse: true})
	for i := range 2 {
		p.open(t, fmt.Sprint("bad ", i))
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.querySelector(".about li")?.innerText.startsWith("2 refused by venue:80 for ")`)
	tab.Click(t, ".about a")
	tab.Wait(t, `document.querySelectorAll("#rows tr").length === 2 && document.querySelector(".chip.filter").innerText.startsWith("only refused by venue:80")`)
	tab.Click(t, ".chip.filter")
	tab.Wait(t, `document.querySelectorAll("#rows tr").length === 5 && document.getElementById("live").textContent === "live"`)
	tab.Eval(t, `(() => { const q = document.getElementById("q"); q.value = "Refused"; q.dispatchEvent(new Event("input")) })()`, nil)
	tab.Wait(t, `document.querySelectorAll("#rows tr").length === 2`)
	p.network.Fault("venue:80")
	tab.Wait(t, `document.querySelector("p.about")?.innerText === "All connections are ready."`)
	require.Empty(t, tab.Problems())
}

// A browser has six connections to a program at most. A page in a tab that is hidden needs none.
func TestTheEighthTabIsLive(t *testing.T) {
	p := start(t)
	p.open(t, "feed")
	browser := chromium.Start(t)
	var tabs []*chromium.Page
	for range 8 {
		tab := browser.Open(t, p.url)
		tab.Wait(t, `document.getElementById("live").textContent === "live"`)
		tabs = append(tabs, tab)
	}
	tabs[0].Wait(t, `document.getElementById("live").textContent === "not live while hidden"`)
	tabs[0].Show(t)
	p.open(t, "later")
	tabs[0].Wait(t, `document.getElementById("live").textContent === "live" && document.querySelectorAll("#rows tr").length === 2`)
	require.Empty(t, tabs[0].Problems())
}

// A page for which there is no stream loads itself again, and takes a stream when one is free.
func TestAPageWithoutAStreamLoadsItselfAgain(t *testing.T) {
	p := start(t)
	p.open(t, "feed")
	ctx, free := context.WithCancel(t.Context())
	defer free()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 16 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"?live", nil)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
	}
	tab := chromium.Start(t).Open(t, p.url)
	tab.Wait(t, `document.getElementById("live").textContent.startsWith("loaded again every 5 s")`)
	tab.Eval(t, `void (window.here = true)`, nil)
	p.open(t, "later")
	tab.Wait(t, `window.here && document.querySelectorAll("#rows tr").length === 2`)
	free()
	tab.Wait(t, `window.here && document.getElementById("live").textContent === "live"`)
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
	tab.Wait(t, `document.body.classList.contains("stale") && document.getElementById("live").textContent.startsWith("not live")`)
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
