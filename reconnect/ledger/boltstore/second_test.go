package boltstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// A program that replaces a Conn before the old one is done has two Ledgers on one Store.
func TestSecondLedgerOnStoreRefused(t *testing.T) {
	db := openDB(t, "store.db")
	store, err := boltstore.New(db, "out")
	require.NoError(t, err)
	newLedger := func() *ledger.Ledger {
		l, err := ledger.New(&ledger.Options{Store: store})
		require.NoError(t, err)
		return l
	}
	first, second := newLedger(), newLedger()
	var accepted []string
	for i := range 5 {
		text := fmt.Sprint("first ", i)
		_, err := first.Add([]byte(text))
		require.NoError(t, err)
		accepted = append(accepted, text)
		_, err = second.Add([]byte("x"))
		require.ErrorContains(t, err, "another Ledger has added some")
	}
	var stored []string
	next := newLedger()
	for _, e := range next.Unacked() {
		stored = append(stored, string(e.Data))
	}
	require.Equal(t, accepted, stored)
	id, err := next.Add([]byte("next"))
	require.NoError(t, err)
	require.Equal(t, uint64(6), id)
}

func TestChangeFollowsStoredMessages(t *testing.T) {
	put := func(last uint64, records ...ledger.Record) ledger.Change {
		return ledger.Change{StoreState: ledger.StoreState{LastID: last}, Put: records}
	}
	remove := func(last, id uint64) ledger.Change {
		return ledger.Change{StoreState: ledger.StoreState{LastID: last}, Delete: []uint64{id}}
	}
	later := func(seq uint64, d time.Duration) ledger.Record { // record 3 with another number, added d later
		r := record(3)
		r.Seq, r.Added = seq, r.Added.Add(d)
		return r
	}
	other := record(3)
	other.Data = []byte("other")
	for name, c := range map[string]struct {
		change  ledger.Change
		refused bool
	}{
		"new":                       {put(4, record(4)), false},
		"renumbered":                {put(3, later(1, 0)), false},
		"renumbered, clock behind":  {put(3, later(1, -time.Hour)), false},
		"deleted":                   {remove(3, 1), false},
		"deleted, older LastID":     {remove(2, 1), true},
		"other data":                {put(3, other), true},
		"same data, added later":    {put(3, later(13, 1)), true},
		"new, after one of another": {put(4, other, record(4)), true},
	} {
		t.Run(name, func(t *testing.T) {
			db := filled(t)
			before := load(t, db)
			s, err := boltstore.New(db, "out")
			require.NoError(t, err)
			err = s.Apply(c.change)
			require.Equal(t, c.refused, err != nil, "%v", err)
			if c.refused {
				require.Equal(t, before, load(t, db))
			}
		})
	}
}

// Message 3 was acknowledged and deleted, so another Ledger has added the one that is put.
func TestPutOfDeletedMessageRefused(t *testing.T) {
	db := filled(t)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	require.NoError(t, s.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 3}, Delete: []uint64{3}}))
	require.Error(t, s.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 3}, Put: []ledger.Record{record(3)}}))
}
