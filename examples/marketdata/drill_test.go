//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// connected returns a client of a venue. The two are in sync.
func connected(t *testing.T) (*drill, *client) {
	t.Helper()
	v, err := openVenue()
	require.NoError(t, err)
	t.Cleanup(v.close)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	c := &client{book: &book{}, journal: newJournal(out, true)}
	require.NoError(t, c.follow(&dialer.WebSocket{URL: "ws://" + v.addr}, &reconnect.Options{OnSession: c.open}))
	read := make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(read)
		c.read(context.Background())
	}()
	t.Cleanup(func() {
		c.feed.Close()
		<-read
		c.journal.close()
		require.NoError(t, out.Close())
	})
	d := &drill{venue: v, client: c}
	require.NoError(t, d.until(t.Context(), "not in sync", func() bool { return d.inSync(c.book.view()) }))
	return d, c
}

func TestBooksThatDifferAreNotEqual(t *testing.T) {
	d, c := connected(t)
	d.venue.halt()
	require.NoError(t, d.until(t.Context(), "not equal", d.equal))
	for name, change := range map[string]func(){
		"stale":      func() { c.book.valid = false },
		"behind":     func() { c.book.seq-- },
		"other bids": func() { c.book.bids = levels{1: 1} },
		"other asks": func() { c.book.asks = levels{1: 1} },
	} {
		was := c.book.view()
		change()
		require.False(t, d.equal(), name)
		c.book.valid, c.book.seq, c.book.bids, c.book.asks = was.valid, was.seq, was.bids, was.asks
		require.True(t, d.equal(), name)
	}
}

func TestAnotherBookFailsTheDrill(t *testing.T) {
	d, c := connected(t)
	require.NoError(t, d.compare(t.Context()))
	c.book.bids = levels{1: 1}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.EqualError(t, d.compare(ctx), "the client's book is not the venue's: enough")
}

func TestAMessageOfAnOldSessionFailsTheDrill(t *testing.T) {
	d, c := connected(t)
	require.NoError(t, d.compare(t.Context()))
	c.journal.wrong(1, &oldError{session: 1, conn: 1, of: 2, ofConn: 2})
	require.EqualError(t, d.compare(t.Context()),
		"1 messages of an old session, the first: message of session 1 (connection 1) for a book of session 2 (2)")
}

func TestALostConnectionMakesTheBookStale(t *testing.T) {
	d, c := connected(t)
	d.venue.turnAway(busy)
	require.NoError(t, d.until(t.Context(), "the book is valid", func() bool { return !c.book.view().valid }))
}

func TestAStepThatTheClientDoesNotSeeFails(t *testing.T) {
	d, _ := connected(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	blind := misbehaviour{fault: restarts, begin: d.venue.restart, times: 1, seen: func(event) bool {
		cancel(errors.New("enough"))
		return false
	}}
	r := d.survive(ctx, blind)
	require.EqualError(t, r.err, "the client did not see it: enough")
	require.Equal(t, "not seen", r.sight())
}

func TestARefusedSnapshotCostsTheSession(t *testing.T) {
	d, c := connected(t)
	require.NoError(t, c.feed.Write(t.Context(), text(`{"op":"nonsense"}`)))
	require.NoError(t, d.until(t.Context(), "not redialed", func() bool {
		_, first := c.journal.find(mark{}, func(e event) bool { return e.kind == sessionLost })
		return first != nil && first.Error() == `the venue says "unknown operation \"nonsense\""`
	}))
	require.NoError(t, d.until(t.Context(), "not in sync", func() bool { return d.inSync(c.book.view()) }))
}

func TestEachEventIsSeenAsOneMisbehaviour(t *testing.T) {
	sights := map[fault]event{
		killed:   {kind: dialFailed, err: &dialer.Error{Err: errors.New("refused")}},
		silent:   {kind: sessionLost, err: fmt.Errorf("x: %w", reconnect.ErrSilent)},
		restarts: {kind: sessionLost, err: &conn.CloseError{Code: 1012}},
		busy:     {kind: dialFailed, err: &dialer.Error{StatusCode: 503, RetryAfter: 1e9}},
		drops:    {kind: neverReady, err: errors.New("EOF")},
		shouts:   {kind: sessionLost, err: &conn.TooBigError{Limit: 1}},
		skips:    {kind: wrongMessage, err: &gapError{}},
	}
	for _, m := range (&drill{venue: &venue{}}).script() {
		for f, e := range sights {
			require.Equal(t, f == m.fault, m.seen(e), "%s as %s", f, m.fault)
		}
	}
}
