package boltstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// fileOf returns the name of a file with a store "out" that has records from 1 on.
func fileOf(t *testing.T, records int, state ledger.StoreState) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096})
	require.NoError(t, err)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	put := make([]ledger.Record, records)
	for i := range put {
		put[i] = record(uint64(i + 1))
		put[i].Data = append(bytes.Repeat([]byte{'x'}, records), put[i].Data...)
	}
	require.NoError(t, s.Apply(ledger.Change{StoreState: state, Put: put}))
	require.NoError(t, db.Close())
	return path
}

// edit changes a file that is not open.
func edit(t *testing.T, path string, change func(file []byte)) {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	change(file)
	require.NoError(t, os.WriteFile(path, file, 0o600))
}

// flipAll flips a bit in a byte of each place where the file has text.
func flipAll(t *testing.T, file []byte, text string, byteAt int, bit byte) {
	t.Helper()
	require.True(t, bytes.Contains(file, []byte(text)))
	for from := 0; ; {
		i := bytes.Index(file[from:], []byte(text))
		if i < 0 {
			return
		}
		file[from+i+byteAt] ^= bit
		from += i + len(text)
	}
}

// reopen opens a file that bolt can open.
func reopen(t *testing.T, path string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// refused checks that no call gets into a file, that none takes for ever, and that none writes.
func refused(t *testing.T, path string) {
	t.Helper()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = boltstore.Open(path, 0o600, nil)
	require.ErrorIs(t, err, boltstore.ErrDamaged)
	db := reopen(t, path)
	for range 2 { // an error leaves nothing locked
		_, err = boltstore.New(db, "out")
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = boltstore.Create(db, "another")
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = boltstore.NewInbox(db, "in")
		require.ErrorIs(t, err, boltstore.ErrDamaged)
	}
	require.NoError(t, db.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "something was written")
}

// One bit of the key 3 makes it 1. That costs neither message 1, nor the damaged one its traces.
func TestABitInTheKeyOfARecordCostsNoOther(t *testing.T) {
	path := fileOf(t, 4, ledger.StoreState{LastID: 4, LastSeq: 14})
	edit(t, path, func(file []byte) {
		at := bytes.Index(file, []byte("xxxxdata \x03")) - 28 - 8
		require.Equal(t, uint64(3), binary.BigEndian.Uint64(file[at:]))
		file[at+7] ^= 2
	})
	for range 2 { // each run says the same
		outcomes := make(map[uint64][]ledger.Outcome)
		unacked := runLedger(t, path, func(r ledger.Settled) { outcomes[r.ID] = append(outcomes[r.ID], r.Outcome) })
		require.Equal(t, []uint64{1, 2, 4}, unacked)
		require.Equal(t, map[uint64][]ledger.Outcome{
			0: {ledger.OutcomeDamaged}, 1: {ledger.OutcomeLeft}, 2: {ledger.OutcomeLeft}, 4: {ledger.OutcomeLeft},
		}, outcomes)
	}
	db := reopen(t, path)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket([]byte("out")).Get(append([]byte("damaged "), binary.BigEndian.AppendUint64(nil, 1)...))
		require.Contains(t, string(v), "data \x03")
		return nil
	}))
}

// runLedger runs a Ledger that never gets a connection.
func runLedger(t *testing.T, path string, done func(ledger.Settled)) (unacked []uint64) {
	t.Helper()
	db, err := boltstore.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	l, err := ledger.New(&ledger.Options{Store: s, OnDone: done})
	require.NoError(t, err)
	for _, e := range l.Unacked() {
		unacked = append(unacked, e.ID)
	}
	down := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, errors.New("down") })
	c, err := reconnect.New(down, &reconnect.Options{Layers: []*reconnect.Layer{l.Layer()}})
	require.NoError(t, err)
	c.Close()
	<-c.Done()
	return unacked
}

// Where keys are not in order bolt finds some of them no more. After Load it finds all.
func TestLoadPutsTheKeysInOrder(t *testing.T) {
	path := fileOf(t, 4, ledger.StoreState{LastID: 4, LastSeq: 14})
	edit(t, path, func(file []byte) {
		at := bytes.Index(file, []byte("xxxxdata \x02")) - 28 - 8
		file[at+7] ^= 0x40 // 1, 66, 3, 4
	})
	db := reopen(t, path)
	require.Len(t, load(t, db).records, 3)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	require.NoError(t, s.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 5}, Delete: []uint64{1, 3, 4}, Put: []ledger.Record{record(5)}}))
	got := load(t, db)
	require.Equal(t, []ledger.Record{record(5)}, got.records)
	require.Equal(t, []uint64{0}, got.damaged)
}

// Bolt searches by the keys in branches, which are not those of the records.
func TestLoadMendsTheKeysOfABranch(t *testing.T) {
	path := fileOf(t, 300, ledger.StoreState{LastID: 300, LastSeq: 310})
	flipped := 0
	edit(t, path, func(file []byte) {
		for _, p := range placesOf(file) {
			if p.kind == "keys in branches" {
				file[p.to-2] ^= 2 // 512 higher
				flipped++
			}
		}
	})
	require.Greater(t, flipped, 10)
	db := reopen(t, path)
	before := load(t, db)
	require.Len(t, before.records, 300)
	change := ledger.Change{StoreState: before.state}
	for _, r := range before.records {
		change.Delete = append(change.Delete, r.ID)
	}
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	require.NoError(t, s.Apply(change))
	require.Equal(t, loaded{state: before.state}, load(t, db))
}

// Without its state a store would use its numbers again.
func TestABitInTheKeyOfTheStateCostsNoNumber(t *testing.T) {
	want := ledger.StoreState{LastID: 1000, LastSeq: 1000, AckedSeq: 1000, Epoch: "peer"}
	for _, key := range []string{"state", "state copy"} {
		for i := range key {
			path := fileOf(t, 0, want)
			edit(t, path, func(file []byte) {
				at := bytes.Index(file, []byte(key))
				if key == "state" {
					at = bytes.Index(bytes.ReplaceAll(file, []byte("state copy"), []byte("----------")), []byte(key))
				}
				file[at+i] ^= 4
			})
			for range 2 {
				db := reopen(t, path)
				require.Equal(t, loaded{state: want}, load(t, db), "byte %d of %q", i, key)
				require.NoError(t, db.Close())
			}
		}
	}
}

// A store whose name is damaged is not made anew, and an inbox is not either.
func TestADamagedNameIsNotANewStore(t *testing.T) {
	path := fileOf(t, 100, ledger.StoreState{LastID: 100, LastSeq: 110})
	edit(t, path, func(file []byte) { flipAll(t, file, "out", 2, 1) })
	db := reopen(t, path)
	_, err := boltstore.New(db, "out")
	require.ErrorIs(t, err, berrors.ErrBucketNotFound)
	require.ErrorContains(t, err, "Create")
	_, err = boltstore.NewInbox(db, "in")
	require.ErrorIs(t, err, berrors.ErrBucketNotFound)
	_, err = boltstore.New(db, "ouu")
	require.NoError(t, err)
}

// A database is not empty if its first page says so, and still has a name.
func TestADamagedCountIsNotAnEmptyDatabase(t *testing.T) {
	path := fileOf(t, 3, ledger.StoreState{LastID: 3, LastSeq: 13})
	edit(t, path, func(file []byte) {
		for _, p := range placesOf(file) {
			if p.kind == "heads of pages" {
				require.Equal(t, uint16(1), binary.NativeEndian.Uint16(file[p.from+10:]))
				file[p.from+10] ^= 1
				return
			}
		}
	})
	refused(t, path)
}

func TestCreateMakesWhatIsNotThere(t *testing.T) {
	db := filled(t)
	_, err := boltstore.Create(db, "out")
	require.ErrorIs(t, err, berrors.ErrBucketExists)
	_, err = boltstore.CreateInbox(db, "out")
	require.ErrorIs(t, err, berrors.ErrBucketExists)
	require.Len(t, load(t, db).records, 3)
	_, err = boltstore.Create(db, "second")
	require.NoError(t, err)
	_, err = boltstore.New(db, "second")
	require.NoError(t, err)
}

// Bolt alone never returns from a page that is below itself.
func TestAPageThatPointsToItselfIsAnError(t *testing.T) {
	path := fileOf(t, 300, ledger.StoreState{LastID: 300, LastSeq: 310})
	branches := 0
	edit(t, path, func(file []byte) {
		for p := 2; p < len(file)/4096; p++ {
			page := file[p*4096:]
			if binary.NativeEndian.Uint64(page) == uint64(p) && binary.NativeEndian.Uint16(page[8:]) == 1 {
				binary.NativeEndian.PutUint64(page[16+16+8:], uint64(p)) // the second element
				branches++
			}
		}
	})
	require.Equal(t, 1, branches)
	refused(t, path)
}

// Bolt goes back to the change before if the page of the newest change is damaged.
func TestADamagedMetaPageIsAnError(t *testing.T) {
	for page := range 2 {
		path := fileOf(t, 3, ledger.StoreState{LastID: 3, LastSeq: 13})
		edit(t, path, func(file []byte) { file[page*4096+16+48] ^= 1 })
		refused(t, path)
		db := reopen(t, path)
		require.NoError(t, db.Update(func(*bolt.Tx) error { return nil })) // as the error says
		_, err := boltstore.New(db, "out")
		require.NoError(t, err)
	}
}

// A file that ends too early is a fault of the memory that bolt maps it to.
func TestAFileThatIsCutOffIsAnError(t *testing.T) {
	path := fileOf(t, 300, ledger.StoreState{LastID: 300, LastSeq: 310})
	require.NoError(t, os.Truncate(path, 10*4096))
	_, err := boltstore.Open(path, 0o600, nil)
	require.ErrorIs(t, err, boltstore.ErrDamaged)
}

// A record that is gone leaves no trace but the number of records.
func TestAMissingRecordIsAnError(t *testing.T) {
	db := filled(t)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("out")).Delete(binary.BigEndian.AppendUint64(nil, 2))
	}))
	err := load(t, db).err
	require.ErrorIs(t, err, boltstore.ErrDamaged)
	require.ErrorContains(t, err, "1 of 3 records")
}

// An older copy of a page is sound in itself.
func TestAnOlderRecordIsAnError(t *testing.T) {
	db := filled(t)
	key := binary.BigEndian.AppendUint64(nil, 2)
	var old []byte
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		old = bytes.Clone(tx.Bucket([]byte("out")).Get(key))
		return nil
	}))
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	again := record(2)
	again.Seq = 40
	require.NoError(t, s.Apply(ledger.Change{StoreState: ledger.StoreState{LastID: 3, LastSeq: 40}, Put: []ledger.Record{again}}))
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("out")).Put(key, old) }))
	require.ErrorIs(t, load(t, db).err, boltstore.ErrDamaged)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("out")).SetSequence(1) }))
	require.ErrorContains(t, load(t, db).err, "last numbers")
}

// In a database that is open to read, a damaged record is reported, and stays where it is.
func TestLoadOnlyReadsADatabaseThatIsOpenToRead(t *testing.T) {
	path := fileOf(t, 4, ledger.StoreState{LastID: 4, LastSeq: 14})
	edit(t, path, func(file []byte) { flipAll(t, file, "xxxxdata \x03", 0, 1) })
	db, err := boltstore.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	for range 2 {
		require.Equal(t, []uint64{3}, load(t, db).damaged)
	}
}

// An inbox that has lost its epoch or its number must not begin anew by itself, because the sender
// would send again what has had its effect.
func TestAnInboxThatHasLostWhatItKnewIsAnError(t *testing.T) {
	for name, harm := range map[string]func(b *bolt.Bucket, v []byte) error{
		"gone":           func(b *bolt.Bucket, _ []byte) error { return b.Delete([]byte("inbox")) },
		"empty":          func(b *bolt.Bucket, _ []byte) error { return b.Put([]byte("inbox"), nil) },
		"without epoch":  func(b *bolt.Bucket, v []byte) error { return b.Put([]byte("inbox"), v[:12]) },
		"a wrong epoch":  func(b *bolt.Bucket, v []byte) error { v[len(v)-1] ^= 1; return b.Put([]byte("inbox"), v) },
		"a wrong number": func(b *bolt.Bucket, v []byte) error { v[11] ^= 1; return b.Put([]byte("inbox"), v) },
		"a wrong seal":   func(b *bolt.Bucket, v []byte) error { v[0] ^= 1; return b.Put([]byte("inbox"), v) },
		"under other key": func(b *bolt.Bucket, v []byte) error {
			return errors.Join(b.Delete([]byte("inbox")), b.Put([]byte("inboy"), v))
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, "in.db")
			in, err := boltstore.NewInbox(db, "in")
			require.NoError(t, err)
			_, err = in.Take(1, func(*bolt.Tx) error { return nil })
			require.NoError(t, err)
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("in"))
				return harm(b, bytes.Clone(b.Get([]byte("inbox"))))
			}))
			_, err = boltstore.NewInbox(db, "in")
			require.ErrorIs(t, err, boltstore.ErrDamaged)
		})
	}
}

// Pages that are damaged while the database is open are errors, too, wherever only reading is due.
func TestDamagedPagesAreErrors(t *testing.T) {
	path := fileOf(t, 300, ledger.StoreState{LastID: 300, LastSeq: 310})
	db := reopen(t, path)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	in, err := boltstore.CreateInbox(db, "in")
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size())-2*4096), 2*4096)
	require.NoError(t, err)
	for range 2 {
		_, err := boltstore.New(db, "out")
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = boltstore.NewInbox(db, "in")
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = s.Load(nil, nil)
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = in.Have()
		require.ErrorIs(t, err, boltstore.ErrDamaged)
		_, err = in.Take(1, nil)
		require.ErrorIs(t, err, boltstore.ErrDamaged)
	}
}
