//go:build !js

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// snapshotAt returns a snapshot of the venue's connection 7.
func snapshotAt(seq uint64) *quote {
	return &quote{Type: "snapshot", Conn: 7, Seq: seq, Bids: levels{9990: 5, 9980: 3}, Asks: levels{10010: 2}}
}

func bid(seq uint64, price, size int) *quote {
	return &quote{Type: "update", Conn: 7, Seq: seq, Bids: levels{price: size}}
}

// newBook returns a valid book of session 1.
func newBook(t *testing.T, seq uint64) *book {
	b := &book{}
	missed, err := b.reset(1, snapshotAt(seq))
	require.NoError(t, err)
	require.Zero(t, missed, "the book was new")
	return b
}

func TestABookIsASnapshotAndTheUpdatesSince(t *testing.T) {
	b := newBook(t, 40)
	require.NoError(t, b.update(1, bid(41, 9990, 8)))
	require.NoError(t, b.update(1, bid(42, 9980, 0)))
	require.NoError(t, b.update(1, &quote{Conn: 7, Seq: 43, Asks: levels{10020: 4}}))
	v := b.view()
	require.Equal(t, view{true, 1, 43, levels{9990: 8}, levels{10010: 2, 10020: 4}}, v)
	require.Equal(t, "book 1+2 levels, 99.90/100.10", v.String())
}

func TestAGapIsFoundAndLeavesTheBookAsItWas(t *testing.T) {
	b := newBook(t, 40)
	before := b.view()
	for _, got := range []uint64{42, 39, 40, 0} {
		var gap *gapError
		require.ErrorAs(t, b.update(1, bid(got, 9990, 1)), &gap)
		require.Equal(t, gapError{want: 41, got: got}, *gap)
		require.Equal(t, before, b.view())
	}
}

func TestAfterASeamNothingIsAppliedBeforeASnapshot(t *testing.T) {
	b := newBook(t, 40)
	b.invalidate()
	require.ErrorIs(t, b.update(1, bid(41, 9990, 1)), errStale, "not even what would fit")
	require.ErrorIs(t, b.update(2, bid(41, 9990, 1)), errStale)
	require.False(t, b.view().valid)
	require.Equal(t, "book stale", b.view().String())
	require.Equal(t, uint64(40), b.view().seq)
}

func TestASnapshotLeavesNothingOfTheOldBook(t *testing.T) {
	b := newBook(t, 40)
	require.NoError(t, b.update(1, bid(41, 9970, 9)))
	b.invalidate()
	missed, err := b.reset(2, snapshotAt(50))
	require.NoError(t, err)
	require.Equal(t, uint64(9), missed)
	require.Equal(t, view{true, 2, 50, levels{9990: 5, 9980: 3}, levels{10010: 2}}, b.view(), "no ghost at 9970")
}

func TestASecondSnapshotOfTheSameMissesNothing(t *testing.T) {
	b := newBook(t, 40)
	missed, err := b.reset(1, snapshotAt(40))
	require.NoError(t, err)
	require.Zero(t, missed)
}

func TestAMessageOfAnotherSessionIsRefused(t *testing.T) {
	b := newBook(t, 40)
	_, err := b.reset(2, snapshotAt(50))
	require.NoError(t, err)
	before := b.view()
	var old *oldError
	require.ErrorAs(t, b.update(1, bid(51, 9990, 1)), &old, "older")
	require.ErrorAs(t, b.update(3, bid(51, 9990, 1)), &old, "newer, without a seam")
	other := bid(51, 9990, 1)
	other.Conn = 6
	require.ErrorAs(t, b.update(2, other), &old, "of another connection of the venue")
	_, err = b.reset(1, snapshotAt(60))
	require.ErrorAs(t, err, &old)
	require.Equal(t, before, b.view())
	b.invalidate()
	require.ErrorAs(t, b.update(1, bid(51, 9990, 1)), &old, "also while the book is stale")
}

func TestAViewIsACopy(t *testing.T) {
	b := newBook(t, 40)
	v := b.view()
	require.NoError(t, b.update(1, bid(41, 9990, 0)))
	require.Equal(t, 5, v.bids[9990])
}
