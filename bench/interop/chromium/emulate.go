package chromium

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Dark makes the page believe that its user prefers dark colors, or light ones.
func (p *Page) Dark(t testing.TB, dark bool) {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// Phone makes the screen as small as that of a phone: 390 by 844 pixels, two dots each.
func (p *Page) Phone(t testing.TB) {
	t.Helper()
	call(t, p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true,
	})
}

// Size makes the inside of the window so large, in pixels.
func (p *Page) Size(t testing.TB, width, height int) {
	t.Helper()
	call(t, p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: int64(height), DeviceScaleFactor: 1,
	})
}

// NoScript turns the scripts of the page off from the next Navigate on. Eval and Wait still work.
func (p *Page) NoScript(t testing.TB) {
	t.Helper()
	call(t, p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// Hide brings an empty tab to the front. The page is hidden then: its document.visibilityState
// becomes "hidden", and its timers are throttled.
func (p *Page) Hide(t testing.TB) {
	t.Helper()
	(&Page{ctx: p.empty}).Show(t)
}

// Show brings the tab to the front.
func (p *Page) Show(t testing.TB) {
	t.Helper()
	call(t, p, page.BringToFront, cdp.Empty{})
}

// Freeze hides the tab and stops its scripts, as a browser does with a tab that was hidden for
// long: the page gets the event freeze, and then its timers and events wait. Eval and Wait go
// on, except for promises of what waits.
func (p *Page) Freeze(t testing.TB) {
	t.Helper()
	p.Hide(t)
	call(t, p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
}

// Resume ends what Freeze began, and shows the tab. The page gets the event resume.
func (p *Page) Resume(t testing.TB) {
	t.Helper()
	call(t, p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	p.Show(t)
}

// Offline takes the network from the page, or gives it back. The page gets the event offline or
// online. New requests fail. A WebSocket that is open stays open, and brings nothing.
func (p *Page) Offline(t testing.TB, offline bool) {
	t.Helper()
	call(t, p, network.Enable, network.EnableParams{})
	conditions := []*network.Conditions{}
	if offline {
		conditions = append(conditions, &network.Conditions{DownloadThroughput: -1, UploadThroughput: -1, Offline: true})
	}
	call(t, p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: conditions})
	call(t, p, network.OverrideNetworkState, network.OverrideNetworkStateParams{
		Offline: offline, DownloadThroughput: -1, UploadThroughput: -1,
	})
}

// call sends a command of the protocol to the tab.
func call[P, R any](t testing.TB, p *Page, command cdp.Command[P, R], params P) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Limit)
	defer cancel()
	_, err := chromedp.Call(ctx, command, params)
	require.NoError(t, err, command.Method)
}
