// Package chromium runs a real Chromium for the tests of pages.
//
//	b := chromium.Start(t)           // skips the test where there is no Chromium
//	p := b.Open(t, server.URL)       // a tab
//	p.Wait(t, `document.querySelectorAll("li").length === 3`)
//	p.Dark(t, true)
//	p.Screenshot(t, "page.png")      // look at it
//	require.Empty(t, p.Problems())   // errors of the console, exceptions, violations of the page's policy
//
// Start finds the program (chromium, or what CHROMIUM names), and runs it without a window and
// with a new, empty profile. The cleanup of the test ends it and waits for it. The usual flags
// of test tools against the throttling of background tabs are not given, so that a hidden tab is
// as slow as at a user's.
//
// Each method of a Page fails the test if it does not succeed within a limit: [Limit] for one
// command, [Patience] for a condition. A test says what must become true, and never how soon.
package chromium
