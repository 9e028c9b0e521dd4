package chromium

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Page is a tab. Its methods may be called from one goroutine at a time.
type Page struct {
	ctx    context.Context // that of the tab
	empty  context.Context // that of the browser's first tab, which stays empty
	record record
}

// Open opens url in a new tab, which is in front, and returns when the page has loaded. The
// cleanup of t closes the tab. url may be "about:blank".
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewWindow(false)) // in one window a tab can be hidden by another
	t.Cleanup(end)
	p := &Page{ctx: ctx, empty: b.ctx}
	require.NoError(t, chromedp.Do(ctx)) // it opens the tab; a limit here would be one for the tab
	require.NoError(t, chromedp.Listen(ctx, p.record.note))
	p.do(t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, runtime.Enable, struct{}{}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, log.Enable, struct{}{})
		return err
	}))
	p.Navigate(t, url)
	return p
}

// Navigate goes to url, and returns when the page has loaded.
func (p *Page) Navigate(t testing.TB, url string) {
	t.Helper()
	p.do(t, chromedp.Navigate(url))
}

// Reload loads the page again.
func (p *Page) Reload(t testing.TB) {
	t.Helper()
	p.do(t, chromedp.Reload())
}

// Back goes back in the history of the tab, as the user does by a button. It does not wait,
// because a page that comes out of the back/forward cache does not load.
func (p *Page) Back(t testing.TB) {
	t.Helper()
	p.Eval(t, "void history.back()", nil)
}

// Eval evaluates a JavaScript expression in the page and puts the result into the value that
// into points to, as package json does; nil throws it away. It waits for a promise. The policy
// of the page (its Content-Security-Policy) does not hold for the expression.
func (p *Page) Eval(t testing.TB, expression string, into any) {
	t.Helper()
	text, err := p.evaluate(expression)
	require.NoError(t, err, expression)
	if into != nil {
		require.NoError(t, json.Unmarshal([]byte(text), into), "%s is %s", expression, text)
	}
}

// evaluate returns the value of the expression as JSON, "null" where there is none.
func (p *Page) evaluate(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, Limit)
	defer cancel()
	wrapped := "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()"
	return chromedp.Run(ctx, chromedp.Evaluate[string](wrapped, chromedp.EvalAwaitPromise))
}

// Wait waits until a JavaScript expression is true in the page, for Patience at most. If it
// fails it says what the page says. An expression that throws is not true.
func (p *Page) Wait(t testing.TB, expression string) {
	t.Helper()
	var text string
	var err error
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text, err = p.evaluate("!!(" + expression + ")"); err == nil && text == "true" {
			return
		}
	}
	body, _ := p.evaluate("document.body.innerText")
	require.FailNow(t, "it does not become true: "+expression, "result: %s, error: %v\nthe page says: %s\nits console:\n%s",
		text, err, body, strings.Join(p.Console(), "\n"))
}

// Text returns what the first element says that matches the CSS selector, without space around
// it, as a user sees it. It is an error if there is none.
func (p *Page) Text(t testing.TB, selector string) string {
	t.Helper()
	var s string
	p.Eval(t, fmt.Sprintf("document.querySelector(%q).innerText.trim()", selector), &s)
	return s
}

// Click clicks the first element that matches the CSS selector.
func (p *Page) Click(t testing.TB, selector string) {
	t.Helper()
	p.Eval(t, fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
}

// Screenshot writes a picture of the whole page, also of what must be scrolled to, to a PNG file.
// It makes the directory if there is none.
func (p *Page) Screenshot(t testing.TB, path string) {
	t.Helper()
	var size struct{ W, H float64 }
	p.Eval(t, "({W: document.documentElement.clientWidth, H: document.documentElement.scrollHeight})", &size)
	whole := true
	ctx, cancel := context.WithTimeout(p.ctx, Limit)
	defer cancel()
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Clip: &page.Viewport{Width: size.W, Height: size.H, Scale: 1}, CaptureBeyondViewport: &whole,
	})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, shot.Data, 0o644))
}

// Console returns what the page has written to its console so far, one line for each call, such
// as "log: hello", oldest first.
func (p *Page) Console() []string { return p.record.all(false) }

// Problems returns what went wrong in the page so far: errors and warnings of its console,
// exceptions that nobody caught, requests that have failed, and violations of its
// Content-Security-Policy.
func (p *Page) Problems() []string { return p.record.all(true) }

// do runs an action within Limit.
func (p *Page) do(t testing.TB, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Limit)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, action))
}
