//go:build !js

package main

import (
	"fmt"
	"maps"
	"slices"
)

// book is an order book: a snapshot and all updates since.
type book struct {
	seq     uint64 // of the last message applied; 0: there was none
	session uint64 // by which that came
	stale   bool   // updates are missing, and a snapshot is to come
	lost    bool   // updates are missing
	bids    levels
	asks    levels
}

// levels maps a price in cents to a size.
type levels map[int]int

// newBook returns an empty book, which is not valid.
func newBook() *book { return &book{bids: levels{}, asks: levels{}} }

// update applies a snapshot to an empty book, or the next change to another.
func (b *book) update(session uint64, m *message) {
	b.session, b.seq = session, m.Seq
	b.bids.merge(m.Bids)
	b.asks.merge(m.Asks)
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

// view is a copy of a book.
type view struct {
	valid      bool
	session    uint64
	seq        uint64
	bids, asks levels
}

func (b *book) view() view {
	return view{b.seq > 0 && !b.stale && !b.lost, b.session, b.seq, maps.Clone(b.bids), maps.Clone(b.asks)}
}

func (v view) String() string {
	if !v.valid {
		return "stale"
	}
	text := fmt.Sprintf("%d+%d levels", len(v.bids), len(v.asks))
	if len(v.bids) > 0 && len(v.asks) > 0 {
		bid, ask := slices.Max(slices.Collect(maps.Keys(v.bids))), slices.Min(slices.Collect(maps.Keys(v.asks)))
		text += fmt.Sprintf(", %d.%02d/%d.%02d", bid/100, bid%100, ask/100, ask%100)
	}
	return text
}
