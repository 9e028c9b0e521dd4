//go:build !js

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// book is an order book: a snapshot, and every update since. It has the rule
// that matters: after a gap or a seam it is worth nothing until the next snapshot.
// Its methods may be called from any goroutine. The zero value waits for a snapshot.
type book struct {
	mu      sync.Mutex // guards what follows
	valid   bool
	session uint64 // by which the snapshot came
	conn    uint64 // what the venue calls that
	seq     uint64 // of the last message applied
	bids    levels
	asks    levels
}

// levels are the sizes by price, in cents.
type levels map[int]int

// quote is a message of the venue.
type quote struct {
	Type string `json:"type"`           // "welcome", "subscribed", "snapshot", "update", "error"
	Conn uint64 `json:"conn"`           // the venue's number for the connection that it is sent by
	Seq  uint64 `json:"seq,omitempty"`  // one more for each update; a snapshot has that of the last update in it
	Bids levels `json:"bids,omitempty"` // a size of 0 in an update: no such level any more
	Asks levels `json:"asks,omitempty"`
	Text string `json:"text,omitempty"` // of an error
}

var errStale = errors.New("the book is stale")

// gapError says that updates are missing inside a session.
type gapError struct{ want, got uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("gap: update %d where %d was due", e.got, e.want)
}

// oldError says that a message came from a session that the book is not of,
// with no seam between: what redial promises cannot happen.
type oldError struct{ session, conn, of, ofConn uint64 }

func (e *oldError) Error() string {
	return fmt.Sprintf("message of session %d (connection %d) for a book of session %d (%d)", e.session, e.conn, e.of, e.ofConn)
}

// reset starts the book anew from a snapshot. It returns how many updates have
// gone by that it never applied.
func (b *book) reset(session uint64, q *quote) (missed uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if session < b.session {
		return 0, &oldError{session, q.Conn, b.session, b.conn}
	}
	if b.seq > 0 && q.Seq > b.seq {
		missed = q.Seq - b.seq
	}
	b.valid, b.session, b.conn, b.seq = true, session, q.Conn, q.Seq
	b.bids, b.asks = levels{}, levels{} // nothing of the old book remains
	b.bids.merge(q.Bids)
	b.asks.merge(q.Asks)
	return missed, nil
}

// update applies the next change. After an error the book is as it was.
func (b *book) update(session uint64, q *quote) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case session < b.session, b.valid && (session != b.session || q.Conn != b.conn):
		return &oldError{session, q.Conn, b.session, b.conn}
	case !b.valid:
		return errStale
	case q.Seq != b.seq+1:
		return &gapError{want: b.seq + 1, got: q.Seq}
	}
	b.seq = q.Seq
	b.bids.merge(q.Bids)
	b.asks.merge(q.Asks)
	return nil
}

// invalidate says that messages are missing from here on.
func (b *book) invalidate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.valid = false
}

// view is what a book is like at one moment.
type view struct {
	valid      bool
	session    uint64
	seq        uint64
	bids, asks levels // copies
}

func (b *book) view() view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return view{b.valid, b.session, b.seq, maps.Clone(b.bids), maps.Clone(b.asks)}
}

func (v view) String() string {
	if !v.valid {
		return "book stale"
	}
	text := fmt.Sprintf("book %d+%d levels", len(v.bids), len(v.asks))
	if len(v.bids) > 0 && len(v.asks) > 0 {
		bid, ask := slices.Max(slices.Collect(maps.Keys(v.bids))), slices.Min(slices.Collect(maps.Keys(v.asks)))
		text += fmt.Sprintf(", %d.%02d/%d.%02d", bid/100, bid%100, ask/100, ask%100)
	}
	return text
}

func (l levels) merge(changes levels) {
	for price, size := range changes {
		if size == 0 {
			delete(l, price)
		} else {
			l[price] = size
		}
	}
}
