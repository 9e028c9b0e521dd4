package browser_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/chromium"
	"github.com/redial-go/redial/examples/browser/site"
	"github.com/redial-go/redial/examples/venue"
)

// feed is the page of examples/browser in a tab, and what serves it.
type feed struct {
	*chromium.Page
	t     *testing.T
	venue *venue.Venue

	addr    string
	handler http.Handler
	server  *http.Server
	serving sync.WaitGroup

	entries []entry // of the journal, so far
}

// entry is an entry of the page's journal.
type entry struct {
	Kind, Book, Reason string
	Session, Seq       uint64
	Code               int
}

// program is built once.
var program = sync.OnceValues(func() (*site.Program, error) { return site.Build(context.Background()) })

// openFeed opens the page, and waits until its books are live. The query is that of its address.
func openFeed(t *testing.T, query string) *feed {
	b := chromium.Start(t)
	p, err := program()
	require.NoError(t, err)
	f := &feed{t: t, venue: venue.New(nil), addr: "127.0.0.1:0"}
	t.Cleanup(f.venue.Close)
	f.handler = site.New(p, f.venue)
	f.start()
	t.Cleanup(f.kill)
	f.Page = b.Open(t, "http://"+f.addr+"/"+query)
	f.awaitLive(1)
	return f
}

// start opens the port, which stays the same.
func (f *feed) start() {
	listener, err := net.Listen("tcp", f.addr)
	require.NoError(f.t, err)
	f.addr = listener.Addr().String()
	f.server = &http.Server{Handler: f.handler}
	f.serving.Go(func() { f.server.Serve(listener) })
}

// kill closes the port and every connection, without a close frame.
func (f *feed) kill() {
	f.server.Close()
	f.venue.Cut()
	f.serving.Wait()
}

// awaitLive waits until all books are live in a session from this number on.
func (f *feed) awaitLive(session int) {
	f.t.Helper()
	f.Wait(f.t, fmt.Sprintf(`redial.status().session >= %d && redial.status().state === "ready" &&
		["ADA-USD", "C-USD", "GO-USD"].every(b => { const v = redial.book(b); return v.seq > 0 && !v.stale }) &&
		redial.journal(0).some(e => e.kind === "live" && e.session >= %d)`, session, session))
}

// status returns the status that the page reports.
func (f *feed) status() (s struct {
	State                           string
	Session, Received, Lost, Probes uint64
}) {
	f.t.Helper()
	f.Eval(f.t, "redial.status()", &s)
	return s
}

// journal returns all that the page's reader got so far.
func (f *feed) journal() []entry {
	f.t.Helper()
	var more []entry
	f.Eval(f.t, fmt.Sprintf("redial.journal(%d)", len(f.entries)), &more)
	f.entries = append(f.entries, more...)
	return f.entries
}

// seams returns the seams of the journal.
func (f *feed) seams() (seams []entry) {
	f.t.Helper()
	for _, e := range f.journal() {
		if e.Kind == "seam" {
			seams = append(seams, e)
		}
	}
	return seams
}

// requireWhole stops the trade, and requires that the stream had each update once and in order,
// that each gap in it is marked and mended by a snapshot, and that the page's books are now those
// of the venue.
func (f *feed) requireWhole() {
	f.t.Helper()
	f.venue.Halt()
	for _, symbol := range venue.Symbols {
		want := f.venue.Book(symbol)
		f.Wait(f.t, fmt.Sprintf("redial.book(%q).seq === %d", symbol, want.Seq))
		var got struct {
			Stale      bool
			Bids, Asks venue.Levels
		}
		f.Eval(f.t, fmt.Sprintf("redial.book(%q)", symbol), &got)
		require.False(f.t, got.Stale)
		require.Equal(f.t, want.Bids, got.Bids)
		require.Equal(f.t, want.Asks, got.Asks)
	}
	type stream struct {
		seq   uint64
		stale bool
	}
	books, sessions, seam := map[string]*stream{}, uint64(0), uint64(0)
	for i, e := range f.journal() {
		b := books[e.Book]
		if b == nil {
			b = &stream{stale: true}
			books[e.Book] = b
		}
		if e.Kind == "snapshot" || e.Kind == "live" {
			require.GreaterOrEqual(f.t, e.Session, sessions, "entry %d: %+v", i, e)
		}
		switch e.Kind {
		case "seam":
			require.Equal(f.t, seam+1, e.Session, "one seam for each session")
			seam = e.Session
			continue
		case "stale":
			b.stale = true
		case "snapshot":
			require.GreaterOrEqual(f.t, e.Seq, b.seq, "entry %d: %+v", i, e)
			b.seq, b.stale = e.Seq, false
		case "live":
			require.False(f.t, b.stale, "entry %d: %+v", i, e)
			require.Equal(f.t, b.seq+1, e.Seq, "entry %d: %+v", i, e)
			b.seq = e.Seq
		}
		if e.Session > sessions {
			require.Equal(f.t, seam+1, e.Session, "a seam stands before the next session")
			sessions = e.Session
		}
	}
}

// trouble makes the page ask for trouble, as its buttons do.
func (f *feed) trouble(what string) {
	f.t.Helper()
	f.Click(f.t, "[data-do="+url.PathEscape(what)+"]")
}
