package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/examples/venue"
)

func TestThePageFollowsTheVenue(t *testing.T) {
	f := openFeed(t, "")
	f.Wait(t, "redial.journal(0).filter(e => e.kind === 'live').length > 100")
	f.requireWhole()
	require.Empty(t, f.seams())
	require.Equal(t, "ready", f.Text(t, "#state"))
	require.Empty(t, f.Problems(), "violations of its policy would be among them")
}

func TestAServerThatWasKilledIsFoundAgain(t *testing.T) {
	f := openFeed(t, "")
	f.kill()
	f.Wait(t, `document.getElementById("state").textContent === "waiting" && /^try \d+ in /.test(document.getElementById("detail").textContent)`)
	for _, symbol := range venue.Symbols {
		f.Wait(t, fmt.Sprintf("document.getElementById(%q).className === 'stale'", symbol))
	}
	f.start()
	f.awaitLive(2)
	f.requireWhole()
	seams := f.seams()
	require.Len(t, seams, 1, "however many dials have failed")
	require.Equal(t, "hangup", seams[0].Reason)
	f.Wait(t, `document.querySelectorAll("#events .seam").length === 1`)
}

func TestCloseCodesOfTheVenueAreSeen(t *testing.T) {
	f := openFeed(t, "")
	codes := []websocket.StatusCode{1000, 1001, 1012, 1013, 4321}
	for i, code := range codes {
		f.venue.Shut(code, "because")
		f.awaitLive(i + 2)
	}
	f.requireWhole()
	seams := f.seams()
	require.Len(t, seams, len(codes))
	for i, code := range codes {
		require.EqualValues(t, code, seams[i].Code)
		require.EqualValues(t, i+1, seams[i].Session)
	}
}

func TestAMessageThatIsTooLargeCostsTheSessionAndNoMore(t *testing.T) {
	f := openFeed(t, "")
	f.venue.Shout(16<<20 + 1)
	f.awaitLive(2)
	f.requireWhole()
	require.Len(t, f.seams(), 1)
	require.Equal(t, []venue.End{{Conn: 1, Code: 4009}}, f.venue.Ends())
}

func TestABookThatThePageDidNotAskForIsNotKept(t *testing.T) {
	f := openFeed(t, "")
	f.venue.Shout(1000)
	f.Wait(t, "redial.journal(0).length > "+fmt.Sprint(len(f.journal())+20))
	f.requireWhole()
	for _, e := range f.journal() {
		require.Contains(t, append(venue.Symbols, ""), e.Book)
	}
}

func TestAPageThatEndsItsConnectionSendsNoCode(t *testing.T) {
	f := openFeed(t, "")
	f.Eval(t, "redial.close()", nil)
	f.Wait(t, `redial.status().state === "closed"`)
	require.Eventually(t, func() bool { return len(f.venue.Ends()) == 1 }, chromium.Patience, 20*time.Millisecond)
	require.Equal(t, websocket.StatusNoStatusRcvd, f.venue.Ends()[0].Code)
	f.Wait(t, `document.getElementById("state").textContent === "closed"`)
}

func TestAPageThatIsClosedEndsItsConnection(t *testing.T) {
	f := openFeed(t, "")
	f.Navigate(t, "about:blank")
	require.Eventually(t, func() bool { return len(f.venue.Ends()) == 1 }, chromium.Patience, 20*time.Millisecond)
	t.Log("the venue sees the code", f.venue.Ends()[0].Code)
}

func TestAnUpdateThatIsMissingMakesABookStaleUntilItIsWhole(t *testing.T) {
	f := openFeed(t, "")
	f.trouble("skip")
	f.Wait(t, `redial.journal(0).some(e => e.kind === "healed")`)
	f.requireWhole()
	require.Empty(t, f.seams())
	require.EqualValues(t, 1, f.status().Session)
}

func TestASilentVenueIsNoticedByProbes(t *testing.T) {
	f := openFeed(t, "?silence=3s")
	f.trouble("mute")
	f.awaitLive(2)
	f.requireWhole()
	require.Equal(t, "silent", f.seams()[0].Reason) // a machine that stands still can make it notice more than one
	require.GreaterOrEqual(t, f.status().Probes, uint64(2))
}

func TestEveryButtonMakesTrouble(t *testing.T) {
	f := openFeed(t, "")
	for i, what := range []string{"cut", "restart", "shout"} {
		f.trouble(what)
		f.awaitLive(i + 2)
	}
	f.trouble("away")
	f.Wait(t, `redial.status().state === "waiting"`)
	f.requireFailedDial()
	f.awaitLive(5)
	f.requireWhole()
	require.Len(t, f.seams(), 4)
}

// requireFailedDial waits until the page has dialed, and failed.
func (f *feed) requireFailedDial() {
	f.t.Helper()
	f.Wait(f.t, `[...document.querySelectorAll("#events li")].some(e => e.innerText.includes("the handshake has failed"))`)
}
