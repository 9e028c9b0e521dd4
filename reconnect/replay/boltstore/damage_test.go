package boltstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/replay/boltstore"
)

// overwritten returns a database of which all pages but the two that bolt begins with are overwritten,
// and what was opened in it before.
func overwritten(t *testing.T) (*bolt.DB, *boltstore.Store, *boltstore.Inbox) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(name, 0o600, &bolt.Options{PageSize: 4096, NoFreelistSync: true})
	require.NoError(t, err)
	s, err := boltstore.New(db, "out")
	require.NoError(t, err)
	_, err = boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	for n := range uint64(300) {
		r := record(n + 1)
		r.Data = make([]byte, 500)
		require.NoError(t, s.Apply(replay.Change{State: replay.State{LastID: n + 1}, Put: []replay.Record{r}}))
	}
	require.NoError(t, db.Close())
	db, err = bolt.Open(name, 0o600, &bolt.Options{NoFreelistSync: true, PreLoadFreelist: false})
	require.NoError(t, err)
	s, err = boltstore.New(db, "out")
	require.NoError(t, err)
	in, err := boltstore.NewInbox(db, "in")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	junk := make([]byte, info.Size()-2*4096)
	for i := range junk {
		junk[i] = 0xa5
	}
	_, err = f.WriteAt(junk, 2*4096)
	require.NoError(t, err)
	return db, s, in
}

// What bolt cannot read is an error of the call, which ends neither the program nor the database.
func TestDamagedPagesAreErrors(t *testing.T) {
	db, s, in := overwritten(t)
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

// An inbox that has lost its epoch or its number must not begin anew by itself, because the sender
// would send again what has had its effect.
func TestAnInboxThatHasLostWhatItKnewIsAnError(t *testing.T) {
	for _, key := range []string{"epoch", "have"} {
		for name, harm := range map[string]func(b *bolt.Bucket) error{
			"gone":  func(b *bolt.Bucket) error { return b.Delete([]byte(key)) },
			"empty": func(b *bolt.Bucket) error { return b.Put([]byte(key), nil) },
			"wrong": func(b *bolt.Bucket) error {
				v := append([]byte(nil), b.Get([]byte(key))...)
				v[len(v)-1] ^= 1
				return b.Put([]byte(key), v)
			},
		} {
			t.Run(key+" "+name, func(t *testing.T) {
				db := openDB(t, "in.db")
				in, err := boltstore.NewInbox(db, "in")
				require.NoError(t, err)
				_, err = in.Take(1, func(*bolt.Tx) error { return nil })
				require.NoError(t, err)
				require.NoError(t, db.Update(func(tx *bolt.Tx) error { return harm(tx.Bucket([]byte("in"))) }))
				_, err = boltstore.NewInbox(db, "in")
				require.ErrorIs(t, err, boltstore.ErrDamaged)
			})
		}
	}
}
