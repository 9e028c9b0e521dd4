package browser_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
)

// TestTimersOfAHiddenTab logs how late the timers of a hidden tab are, and asserts none of it,
// because a browser may change it:
//
//	cd bench && REDIAL_LONG=1 go test -run TimersOfAHiddenTab -v -timeout 30m ./browser
//
// That takes about 10 minutes. Without REDIAL_LONG the tab is hidden for seconds only. In Chromium
// 156 a timer fired once a second, and then once a minute: with a WebSocket from the first minute
// on, without one from the fifth. A peer's silence of 30 s was noticed after 183 s.
func TestTimersOfAHiddenTab(t *testing.T) {
	hidden, limit, query := 3*time.Second, chromium.Patience, "?silence=3s&wait=1s"
	if os.Getenv("REDIAL_LONG") != "" {
		hidden, limit, query = 7*time.Minute, 5*time.Minute, "?silence=30s&wait=10s"
	}
	without, cut, muted := open(t), openFeed(t, query), openFeed(t, query)
	pages := map[string]*chromium.Page{"without a WebSocket": without.Page, "with a WebSocket": cut.Page}
	for _, p := range pages {
		p.Eval(t, `void (window.ticks = [performance.now()], setInterval(() => ticks.push(performance.now()), 100))`, nil)
	}
	for _, p := range []*chromium.Page{without.Page, cut.Page, muted.Page} {
		p.Hide(t)
		p.Wait(t, `document.visibilityState === "hidden"`)
		p.Eval(t, `void (window.hiddenAt = performance.now())`, nil)
	}
	time.Sleep(hidden)
	for name, p := range pages {
		var ticks []float64
		p.Eval(t, "ticks.map(at => at - hiddenAt)", &ticks)
		t.Logf("%s, a timer of 100 ms fires %s", name, gaps(ticks))
	}
	n := len(cut.journal())
	cut.awaitUpdates(50)
	t.Logf("with a WebSocket, %d messages came while the venue sent 50", len(cut.journal())-n)
	require.EqualValues(t, 1, cut.status().Session)
	t.Log("options", query, ": the venue is silent:", muted.loss(limit, muted.venue.Mute))
	t.Log("options", query, ": the connection is cut:", cut.loss(limit, cut.venue.Cut))
}

// loss makes trouble, and says when the connection has ended, and when the page was back. It asks
// the page nothing, because a question wakes its timers.
func (f *feed) loss(limit time.Duration, trouble func()) string {
	from := time.Now()
	await := func(what string, done func() bool) string {
		for !done() {
			if time.Since(from) > limit {
				return fmt.Sprintf("not %s within %v", what, limit)
			}
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Sprintf("%s after %.1f s", what, time.Since(from).Seconds())
	}
	trouble()
	return await("ended", func() bool { return len(f.venue.Ends()) > 0 }) + ", " +
		await("back", func() bool { return len(f.venue.Ends()) > 0 && f.venue.Clients() > 0 })
}

// gaps says how far apart the ticks are, in runs of about equal gaps. The ticks are in
// milliseconds since the page was hidden.
func gaps(ticks []float64) string {
	var runs []string
	last := ""
	for i := 1; i < len(ticks); i++ {
		text := fmt.Sprintf("every %.0f s", (ticks[i]-ticks[i-1])/1000)
		if text == "every 0 s" {
			text = "at once"
		}
		if text != last && ticks[i-1] > 0 {
			runs = append(runs, fmt.Sprintf("%s from %.0f s on", text, ticks[i-1]/1000))
			last = text
		}
	}
	return strings.Join(runs, ", ")
}
