//go:build !js

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// book is an order book: a snapshot and all updates since. After a gap or a seam it is
// invalid until the next snapshot. Any goroutine may call its methods. The zero value is
// invalid.
type book struct {
	mu      sync.Mutex // guards what follows
	valid   bool
	session uint64 // in which the snapshot came
	conn    uint64 // the venue's number for that connection
	seq     uint64 // of the last message applied
	bids    levels
	asks    levels
}

// levels maps a price in cents to a size.
type levels map[int]int

// quote is a message of the venue.
type quote struct {
	Type string `json:"type"`           // "welcome", "subscribed", "snapshot", "update", "error"
	Conn uint64 `json:"conn"`           // the venue's number for the connection
	Seq  uint64 `json:"seq,omitempty"`  // counts the updates; in a snapshot, the number of the last update that it contains
	Bids levels `json:"bids,omitempty"` // in an update a size of 0 removes the level
	Asks levels `json:"asks,omitempty"`
	Text string `json:"text,omitempty"` // of an error
}

var errStale = errors.New("the book is stale")

// gapError says that updates are missing inside a session.
type gapError struct{ want, got uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("gap: update %d where %d was due", e.got, e.want)
}

// oldError reports that a message belongs to another session than the book, without a seam
// between them. redial promises that this cannot happen.
type oldError struct{ session, conn, of, ofConn uint64 }

func (e *oldError) Error() string {
	return fmt.Sprintf("message of session %d (connection %d) for a book of session %d (%d)", e.session, e.conn, e.of, e.ofConn)
}

// reset replaces the book by a snapshot. It returns how many updates the book has missed.
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

// update applies the next change. If it returns an error, the book has not changed.
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

// invalidate marks the book invalid, because messages are missing.
func (b *book) invalidate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.valid = false
}

// view is a copy of a book.
type view struct {
	valid      bool
	session    uint64
	seq        uint64
	bids, asks levels
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
