package browser_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/examples/venue"
)

// updates returns how many updates the venue has made.
func (f *feed) updates() (n uint64) {
	for _, symbol := range venue.Symbols {
		n += f.venue.Book(symbol).Seq
	}
	return n
}

// awaitUpdates waits until the venue has made n more updates, which takes 40 ms each.
func (f *feed) awaitUpdates(n uint64) {
	f.t.Helper()
	from := f.updates()
	require.Eventually(f.t, func() bool { return f.updates() >= from+n }, chromium.Patience, 20*time.Millisecond)
}

// says waits until the list of events has a line with this text.
func (f *feed) says(text string) {
	f.t.Helper()
	f.Wait(f.t, `[...document.querySelectorAll("#events li")].some(e => e.textContent.includes("`+text+`"))`)
}

func TestAHiddenPageGoesOnAndComesBackFromALoss(t *testing.T) {
	f := openFeed(t, "")
	f.Hide(t)
	f.Wait(t, `document.visibilityState === "hidden"`)
	n := len(f.journal())
	f.awaitUpdates(50)
	f.Wait(t, "redial.status().session === 1")
	require.Greater(t, len(f.journal()), n, "messages come to a hidden page")
	f.kill()
	f.Wait(t, `redial.status().state === "waiting"`)
	f.start()
	f.awaitLive(2) // hidden still
	f.Show(t)
	f.Wait(t, `document.visibilityState === "visible"`)
	f.says("the page is visible")
	f.requireWhole()
	require.Len(t, f.seams(), 1)
}

// The wait of an hour shows that it is the event that ends it.
func TestAPageThatIsShownDialsAtOnce(t *testing.T) {
	f := openFeed(t, "?wait=1h")
	f.Hide(t)
	f.venue.Cut()
	f.Wait(t, `redial.status().state === "waiting"`)
	f.Show(t)
	f.awaitLive(2)
	f.requireWhole()
}

// Chromium ends the connection of a page that was frozen, at the latest when it goes on. If it
// does not, that is as well: then nothing is missing.
func TestAPageThatWasFrozenIsWhole(t *testing.T) {
	f := openFeed(t, "?silence=3s")
	f.Freeze(t)
	f.awaitUpdates(150) // 6 s, which is twice as long as the venue may be silent
	t.Log("while it was frozen the venue saw these ends:", f.venue.Ends())
	from := len(f.entries)
	f.Resume(t)
	f.says("the page is frozen")
	f.says("the page goes on")
	f.Wait(t, fmt.Sprintf("redial.journal(%d).filter(e => e.kind === 'live').length > %d", from, from+10))
	f.awaitLive(int(f.status().Lost) + 1)
	f.requireWhole()
	for _, s := range f.seams() {
		// The end is seen by a read, or by the write of a probe.
		require.Contains(t, []string{"hangup", "network"}, s.Reason, "its silence is no verdict")
	}
	t.Log("then the page had", f.seams(), "and the venue", f.venue.Ends())
}

// Only the event can end this wait: the page is shown all the time.
func TestAPageThatGoesOnDialsAtOnce(t *testing.T) {
	f := openFeed(t, "?wait=1h")
	f.venue.Cut()
	f.Wait(t, `redial.status().state === "waiting"`)
	f.Eval(t, `void document.dispatchEvent(new Event("resume"))`, nil)
	f.awaitLive(2)
	f.requireWhole()
}

// The loss and the event come in any order, so the page may have to be told.
func TestAPageThatLosesItsServerWhileItIsFrozenIsWholeAgain(t *testing.T) {
	f := openFeed(t, "?wait=1h")
	f.Freeze(t)
	f.kill()
	f.awaitUpdates(50)
	f.start()
	f.Resume(t)
	f.Wait(t, `redial.journal(0).some(e => e.kind === "seam")`)
	f.Click(t, "#kick")
	f.awaitLive(2)
	f.requireWhole()
	require.Len(t, f.seams(), 1)
}

func TestAnOfflinePageAsksAndAnOnlineOneDials(t *testing.T) {
	f := openFeed(t, "?wait=1h")
	probes := f.status().Probes
	f.Offline(t, true)
	f.says("the browser is offline")
	f.Wait(t, "redial.status().state !== 'ready' || redial.status().probes > "+strconv.FormatUint(probes, 10))
	n := len(f.journal())
	f.awaitUpdates(50)
	t.Logf("offline, the connection is %v, and brought %d messages", f.status().State, len(f.journal())-n)
	f.venue.Cut()
	f.Wait(t, `redial.status().state === "waiting"`)
	f.Click(t, "#kick")
	f.requireFailedDial()
	f.Wait(t, `redial.status().state === "waiting"`)
	f.Offline(t, false)
	f.Wait(t, `(() => {
		const lines = [...document.querySelectorAll("#events li")].map(e => e.textContent); // the newest first
		const at = lines.findIndex(l => l.includes("the browser is online"));
		return at > 0 && lines[at-1].includes("dials");
	})()`)
	f.Click(t, "#kick") // because the first dial may come too soon for the browser
	f.awaitLive(2)
	f.requireWhole()
	require.Len(t, f.seams(), 1)
}

// The back/forward cache of a browser may keep a page with its connection, or without, or not
// at all.
func TestAPageToWhichTheUserComesBackIsWhole(t *testing.T) {
	f := openFeed(t, "")
	f.Eval(t, "void (window.kept = true)", nil)
	f.Navigate(t, "http://"+f.addr+"/style.css")
	require.Eventually(t, func() bool { return len(f.venue.Ends()) == 1 }, chromium.Patience, 20*time.Millisecond)
	f.Back(t)
	f.Wait(t, "window.redial")
	var kept bool
	f.Eval(t, "window.kept === true", &kept)
	t.Log("from the cache: ", kept, "; code: ", f.venue.Ends()[0].Code)
	f.awaitLive(1)
	if kept {
		f.awaitLive(2)
	}
	f.requireWhole()
}
