package chromium_test

import (
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
)

const body = `<!doctype html><meta name="viewport" content="width=device-width"><title>t</title>
<style>p { color: rgb(1, 2, 3) } @media (prefers-color-scheme: dark) { p { color: rgb(9, 9, 9) } }</style>
<p> hello </p><script src="/s.js"></script>`

const script = `
window.events = [];
for (const name of ["freeze", "resume", "visibilitychange"])
	document.addEventListener(name, () => events.push(name + " " + document.visibilityState));
for (const name of ["offline", "online"]) addEventListener(name, () => events.push(name));
setTimeout(() => { window.later = true }, 100);
console.log("loaded", 7);`

// open opens a page that has a script and a strict policy.
func open(t *testing.T) *chromium.Page {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, body)
		case "/s.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
		case "/404":
			http.NotFound(w, r)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(s.Close)
	return chromium.Start(t).Open(t, s.URL)
}

func TestAPageIsSeenAndMeasured(t *testing.T) {
	p := open(t)
	p.Wait(t, "window.later")
	require.Equal(t, "hello", p.Text(t, "p"))
	require.Equal(t, []string{"log: loaded 7"}, p.Console())
	color := func() (s string) {
		p.Eval(t, `getComputedStyle(document.querySelector("p")).color`, &s)
		return s
	}
	require.Equal(t, "rgb(1, 2, 3)", color())
	p.Dark(t, true)
	require.Equal(t, "rgb(9, 9, 9)", color())
	p.Phone(t)
	p.Wait(t, "innerWidth === 390")
	path := filepath.Join(t.TempDir(), "sub", "page.png")
	p.Screenshot(t, path)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.DecodeConfig(f)
	require.NoError(t, err)
	require.Equal(t, 780, picture.Width, "two dots a pixel")
	require.Empty(t, p.Problems())
}

func TestProblemsAreSeen(t *testing.T) {
	p := open(t)
	for want, cause := range map[string]string{
		"thrown":                  `setTimeout(() => { throw new Error("thrown") }, 0)`,
		"error: complaint":        `console.error("complaint")`,
		"Content Security Policy": `document.head.append(Object.assign(document.createElement("script"), {textContent: "1"}))`,
		"404":                     `fetch("/404")`,
	} {
		seen := func() bool { return strings.Contains(strings.Join(p.Problems(), "\n"), want) }
		require.False(t, seen())
		p.Eval(t, "void "+cause, nil)
		require.Eventually(t, seen, chromium.Patience, 20*time.Millisecond, want)
	}
	require.Len(t, p.Problems(), 4)
	require.Equal(t, []string{"log: loaded 7", "error: complaint"}, p.Console())
}

func TestAFrozenPageGetsTheEventsAndStops(t *testing.T) {
	p := open(t)
	p.Freeze(t)
	p.Wait(t, `events.includes("freeze hidden")`)
	p.Eval(t, `void setTimeout(() => events.push("timer"), 0)`, nil)
	for range 50 {
		var events []string
		p.Eval(t, "events", &events)
		require.NotContains(t, events, "timer")
	}
	p.Resume(t)
	p.Wait(t, `events.includes("resume hidden") && events.includes("timer")`)
	p.Wait(t, `document.visibilityState === "visible"`)
}

func TestAPageIsHidden(t *testing.T) {
	p := open(t)
	for range 2 {
		p.Wait(t, `document.visibilityState === "visible"`)
		p.Hide(t)
		p.Wait(t, `document.visibilityState === "hidden"`)
		p.Show(t)
	}
	p.Wait(t, `events.length === 4 && document.visibilityState === "visible"`)
}

func TestAPageIsOffline(t *testing.T) {
	p := open(t)
	const fetched = `fetch("/x").then(() => true, () => false)`
	p.Wait(t, fetched)
	p.Offline(t, true)
	p.Wait(t, `!navigator.onLine && events.includes("offline")`)
	p.Wait(t, `(`+fetched+`).then(ok => !ok)`)
	p.Offline(t, false)
	p.Wait(t, `navigator.onLine && events.includes("online")`)
	p.Wait(t, fetched)
}
