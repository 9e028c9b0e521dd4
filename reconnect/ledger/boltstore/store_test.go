package boltstore_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// loaded is what Load of a new Store of the same name returns.
type loaded struct {
	state   ledger.StoreState
	records []ledger.Record
	damaged []uint64
	err     error
}

func load(t *testing.T, db *bolt.DB) (l loaded) {
	t.Helper()
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	l.state, l.err = s.Load(func(r ledger.Record) { l.records = append(l.records, r) }, func(id uint64, _ []byte, err error) {
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		l.damaged = append(l.damaged, id)
	})
	return l
}

func record(id uint64) ledger.Record {
	return ledger.Record{ID: id, Seq: id + 10, Added: time.Unix(1, int64(id)), Data: binary.AppendUvarint([]byte("data "), id)}
}

// filled returns a database with the records 1 to 3.
func filled(t *testing.T) *bolt.DB {
	t.Helper()
	db := openDB(t, "store.db")
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	require.NoError(t, s.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 3, LastSeq: 13, AckedSeq: 10, Epoch: "x"}, Put: []ledger.Record{record(1), record(2), record(3)}}))
	return db
}

func TestAStoreLoadsWhatWasApplied(t *testing.T) {
	db := filled(t)
	want := loaded{state: ledger.StoreState{LastID: 3, LastSeq: 13, AckedSeq: 10, Epoch: "x"}, records: []ledger.Record{record(1), record(2), record(3)}}
	require.Equal(t, want, load(t, db))
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	again := record(3)
	again.Seq = 1
	change := ledger.Change{StoreState: ledger.StoreState{LastID: 300, LastSeq: 4}, Put: []ledger.Record{again, record(300)}, Delete: []uint64{1, 2, 77}}
	require.NoError(t, s.Apply(change))
	require.Equal(t, loaded{state: change.StoreState, records: change.Put}, load(t, db))
}

// A record that a change deletes and puts is there after it.
func TestAChangeDeletesFirst(t *testing.T) {
	db := filled(t)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	change := ledger.Change{StoreState: ledger.StoreState{LastID: 3}, Delete: []uint64{1, 2, 3}, Put: []ledger.Record{record(2)}}
	require.NoError(t, s.Apply(change))
	require.Equal(t, loaded{state: change.StoreState, records: change.Put}, load(t, db))
}

func TestANewStoreIsEmpty(t *testing.T) {
	require.Equal(t, loaded{}, load(t, openDB(t, "store.db")))
}

func TestTwoStoresInADatabaseAreApart(t *testing.T) {
	db := filled(t)
	other, err := boltstore.Create(db, "other")
	require.NoError(t, err)
	require.NoError(t, other.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 9}, Delete: []uint64{1, 2, 3}}))
	require.Len(t, load(t, db).records, 3)
}

// flip damages a value.
func flip(t *testing.T, db *bolt.DB, bucket, key string) {
	t.Helper()
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		v := append([]byte(nil), b.Get([]byte(key))...)
		require.NotEmpty(t, v)
		v[len(v)-1] ^= 1
		return b.Put([]byte(key), v)
	}))
}

// A damaged record costs itself only, wherever the bit is, and if its end is missing. Its ID is known
// unless the damage is in the bytes 4 to 11, which repeat the key.
func TestADamagedRecordCostsItselfOnly(t *testing.T) {
	key := binary.BigEndian.AppendUint64(nil, 2)
	for at := range 34 {
		for _, cut := range []bool{true, false} {
			db := filled(t)
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("out"))
				v := append([]byte(nil), b.Get(key)...)
				require.Len(t, v, 34)
				if v[at] ^= 0x10; cut {
					v = v[:at]
				}
				return b.Put(key, v)
			}))
			got := load(t, db)
			require.NoError(t, got.err)
			want := uint64(2)
			if cut && at < 12 || at >= 4 && at < 12 {
				want = 0
			}
			require.Equal(t, []uint64{want}, got.damaged, "byte %d", at)
			require.Equal(t, []ledger.Record{record(1), record(3)}, got.records)
		}
	}
}

// A key that is none is reported with the ID 0.
func TestADamagedKeyCostsItselfOnly(t *testing.T) {
	db := filled(t)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("out")).Put([]byte("key"), []byte("value"))
	}))
	got := load(t, db)
	require.Equal(t, []uint64{0}, got.damaged)
	require.Len(t, got.records, 3)
}

// A record under the key of another is damaged, too.
func TestARecordUnderAnotherKeyIsDamaged(t *testing.T) {
	db := filled(t)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("out"))
		return b.Put(binary.BigEndian.AppendUint64(nil, 3), b.Get(binary.BigEndian.AppendUint64(nil, 2)))
	}))
	got := load(t, db)
	require.Equal(t, []uint64{0}, got.damaged, "either the key is damaged or the value")
	require.Equal(t, []ledger.Record{record(1), record(2)}, got.records)
}

func TestOneDamagedStateDoesNoHarm(t *testing.T) {
	for _, key := range []string{"state", "state copy"} {
		db := filled(t)
		flip(t, db, "out", key)
		require.Equal(t, ledger.StoreState{LastID: 3, LastSeq: 13, AckedSeq: 10, Epoch: "x"}, load(t, db).state)
	}
	db := filled(t)
	flip(t, db, "out", "state")
	flip(t, db, "out", "state copy")
	require.ErrorIs(t, load(t, db).err, boltstore.ErrDamaged)
}

// A change that cannot be made whole is not made at all.
func TestAChangeIsMadeWholeOrNotAtAll(t *testing.T) {
	db := filled(t)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	long := record(5)
	long.Data = make([]byte, 1<<10)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("out")) }))
	require.ErrorContains(t, s.Apply(ledger.Change{Put: []ledger.Record{long}}), `store "out": bucket not found`)
	require.Equal(t, loaded{}, load(t, db))
}

func TestAnInboxTakesEachMessageOnce(t *testing.T) {
	db := openDB(t, "in.db")
	in, err := boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	effects := 0
	effect := func(tx *bolt.Tx) error { effects++; return nil }
	for _, seq := range []uint64{1, 1, 2, 1, 2, 3} {
		_, err := in.Take(seq, effect)
		require.NoError(t, err)
	}
	require.Equal(t, 3, effects)
	var gap *boltstore.GapError
	_, err = in.Take(5, effect)
	require.ErrorAs(t, err, &gap)
	require.Equal(t, boltstore.GapError{Have: 3, Seq: 5}, *gap)
	seen, err := in.TakeAfterGap(5, effect)
	require.NoError(t, err)
	require.False(t, seen)
	again, err := boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	require.Equal(t, in.Epoch(), again.Epoch())
	have, err := again.Have()
	require.NoError(t, err)
	require.Equal(t, uint64(5), have)
	other, err := boltstore.CreateInbox(db, "other")
	require.NoError(t, err)
	require.NotEqual(t, in.Epoch(), other.Epoch())
}

// Neither the effect nor the number stays if the effect fails.
func TestAnEffectThatFailsIsNotTaken(t *testing.T) {
	db := openDB(t, "in.db")
	in, err := boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	bad := errors.New("no such account")
	_, err = in.Take(1, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("effect"))
		require.NoError(t, err)
		return bad
	})
	require.ErrorIs(t, err, bad)
	have, err := in.Have()
	require.NoError(t, err)
	require.Zero(t, have)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		require.Nil(t, tx.Bucket([]byte("effect")))
		return nil
	}))
}

func TestADamagedNumberIsAnError(t *testing.T) {
	db := openDB(t, "in.db")
	in, err := boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	_, err = in.Take(1, func(tx *bolt.Tx) error { return nil })
	require.NoError(t, err)
	flip(t, db, "in", "inbox")
	_, err = in.Take(2, func(tx *bolt.Tx) error { return nil })
	require.ErrorIs(t, err, boltstore.ErrDamaged)
}

// What is in the file comes from a disk, so any value may be there.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("state"), make([]byte, 28))
	f.Add(make([]byte, 8), make([]byte, 20))
	f.Add([]byte("key"), []byte("value"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		db := filled(t)
		err := db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("out")).Put(key, value) })
		if err != nil {
			return // bolt refuses the key
		}
		got := load(t, db)
		if got.err == nil && len(got.records)+len(got.damaged) < 3 {
			t.Fatalf("%d records, and %d damaged", len(got.records), len(got.damaged))
		}
	})
}
