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
	"github.com/redial-go/redial/reconnect/replay"
)

// connected returns a drill that has not begun. Its client and its venue are in sync.
func connected(t *testing.T) *drill {
	t.Helper()
	v, err := openVenue()
	require.NoError(t, err)
	t.Cleanup(v.close)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	d, err := newDrill(v, newJournal(out, newAudit()))
	require.NoError(t, err)
	t.Cleanup(func() {
		d.close()
		require.NoError(t, out.Close())
	})
	d.await(t, d.inSync)
	return d
}

func (d *drill) await(t *testing.T, right func() bool) {
	t.Helper()
	require.NoError(t, d.until(t.Context(), "not so", right))
}

func TestBooksThatDifferAreNotEqual(t *testing.T) {
	d := connected(t)
	d.venue.halt()
	d.await(t, d.equal)
	b := d.client.books["GO-USD"]
	for name, change := range map[string]func(){
		"stale":      func() { b.stale = true },
		"behind":     func() { b.seq-- },
		"other bids": func() { b.bids = levels{1: 1} },
		"other asks": func() { b.asks = levels{1: 1} },
		"another":    func() { d.client.books["BAD-USD"] = &book{} },
		"none":       func() { delete(d.client.books, "GO-USD") },
	} {
		was := *b
		change()
		require.False(t, d.equal(), name)
		*b = was
		d.client.books["GO-USD"] = b
		delete(d.client.books, "BAD-USD")
		require.True(t, d.equal(), name)
	}
}

func TestAnotherBookFailsTheDrill(t *testing.T) {
	d := connected(t)
	require.NoError(t, d.compare(t.Context()))
	d.client.books["GO-USD"].bids = levels{1: 1}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.EqualError(t, d.compare(ctx), "the client's books are not the venue's: enough")
}

func TestAMessageOfAnOldSessionFailsTheDrill(t *testing.T) {
	d := connected(t)
	require.NoError(t, d.compare(t.Context()))
	d.journal.audit.err = &oldError{session: 1, conn: 1, of: 2, ofConn: 2}
	require.EqualError(t, d.compare(t.Context()), "message of session 1 (connection 1) after one of session 2 (2)")
}

func TestALostConnectionMakesAllBooksStale(t *testing.T) {
	d := connected(t)
	d.venue.turnAway(busy)
	d.await(t, func() bool { return !d.client.view("C-USD").valid && !d.client.view("GO-USD").valid })
}

func TestAGapMakesOneBookStale(t *testing.T) {
	d := connected(t)
	from := d.journal.mark()
	d.venue.skip()
	d.await(t, func() bool {
		n, _ := d.journal.find(from, func(trouble) bool { return true })
		return n > 0 && d.inSync()
	})
	n, first := d.journal.find(from, func(trouble) bool { return true })
	require.Equal(t, 1, n)
	gap, ok := errors.AsType[*replay.GapError](first)
	require.True(t, ok, first)
	require.Equal(t, gap.First, gap.Last)
	require.Equal(t, 1, d.journal.resyncsSince(from))
	require.EqualValues(t, 1, d.client.feed.Status().Session)
}

func TestAnUnknownSymbolCostsItselfOnly(t *testing.T) {
	d := connected(t)
	d.client.want("ADA-USD", "BAD-USD", "C-USD")
	err := d.client.set.Wait(t.Context(), "BAD-USD")
	require.EqualError(t, err, `subscription: rejected in session 1: unknown book "BAD-USD"`)
	d.wanted = []string{"ADA-USD", "C-USD"}
	d.await(t, d.inSync)
	d.venue.restart()
	d.await(t, func() bool { return d.client.feed.Status().Session == 2 && d.inSync() })
}

func TestEachDialHasATokenOfItsOwn(t *testing.T) {
	d := connected(t)
	d.venue.restart()
	d.await(t, func() bool { return d.client.feed.Status().Session == 2 && d.inSync() })
	d.venue.mu.Lock()
	defer d.venue.mu.Unlock()
	require.GreaterOrEqual(t, len(d.venue.used), 2)
}

func TestARotationIsSmooth(t *testing.T) {
	d := connected(t)
	require.NoError(t, d.rotate(t.Context()))
	require.EqualValues(t, 2, d.client.feed.Status().Session)
	require.NoError(t, d.compare(t.Context()))
}

func TestARotationThatIsALossFailsTheDrill(t *testing.T) {
	d := connected(t)
	d.await(t, d.calm)
	d.venue.setDoor(busy)
	welcomed := make(chan error, 1)
	go func() { // <-welcomed waits for it
		refusals := func() bool { n, _ := d.journal.find(mark{}, refused); return n > 0 }
		welcomed <- errors.Join(d.until(t.Context(), "not refused", refusals), d.venue.welcome())
	}()
	require.ErrorContains(t, d.rotate(t.Context()), "the rotation was not smooth: dial ws://")
	require.NoError(t, <-welcomed)
}

func TestAStepThatTheClientDoesNotSeeFails(t *testing.T) {
	d := connected(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	blind := misbehaviour{fault: restarts, begin: d.venue.restart, times: 1, seen: func(trouble) bool {
		cancel(errors.New("enough"))
		return false
	}}
	r := d.survive(ctx, blind)
	require.EqualError(t, r.err, "the client did not see it: enough")
	require.Equal(t, "not seen", r.sight())
}

func TestEachEventIsSeenAsOneMisbehaviour(t *testing.T) {
	sights := map[fault]trouble{
		killed:   {kind: dialFailed, err: &dialer.Error{Err: errors.New("refused")}},
		silent:   {kind: sessionLost, err: fmt.Errorf("x: %w", reconnect.ErrSilent)},
		restarts: {kind: sessionLost, err: &conn.CloseError{Code: 1012}},
		busy:     {kind: dialFailed, err: &dialer.Error{StatusCode: 503, RetryAfter: 1e9}},
		drops:    {kind: neverReady, err: errors.New("EOF")},
		shouts:   {kind: sessionLost, err: &conn.TooBigError{Limit: 1}},
		skips:    {kind: outOfSync, err: &replay.GapError{}},
	}
	for _, m := range (&drill{venue: &venue{}}).script() {
		for f, e := range sights {
			require.Equal(t, f == m.fault, m.seen(e), "%s as %s", f, m.fault)
		}
	}
}
