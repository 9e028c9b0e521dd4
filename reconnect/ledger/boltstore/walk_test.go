package boltstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// The walk refuses nothing that bolt writes: keys and values of all sizes, buckets in buckets, and
// whatever is deleted, in any order.
func TestWhatBoltWritesIsSound(t *testing.T) {
	for _, o := range []bolt.Options{{PageSize: 1024}, {PageSize: 1024, NoFreelistSync: true}, {PageSize: 4096, FreelistType: bolt.FreelistMapType}} {
		o.NoSync = true
		random := rand.New(rand.NewPCG(1, uint64(o.PageSize)))
		path := filepath.Join(t.TempDir(), "any.db")
		db, err := boltstore.Open(path, 0o600, &o)
		require.NoError(t, err)
		_, err = boltstore.New(db, "out")
		require.NoError(t, err)
		for range 40 {
			for range 10 {
				require.NoError(t, db.Update(func(tx *bolt.Tx) error { return anything(tx, random) }))
			}
			_, err := boltstore.New(db, "out")
			require.NoError(t, err)
			require.NoError(t, db.Close())
			db, err = boltstore.Open(path, 0o600, &o)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
	}
}

// anything makes a few changes.
func anything(tx *bolt.Tx, random *rand.Rand) error {
	for range 1 + random.IntN(20) {
		name := fmt.Appendf(nil, "bucket %d", random.IntN(30))
		if random.IntN(40) == 0 && tx.Bucket(name) != nil {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucketIfNotExists(name)
		if err == nil && random.IntN(4) == 0 {
			b, err = b.CreateBucketIfNotExists([]byte("inner"))
		}
		for i := 0; i < 10 && err == nil; i++ {
			key := fmt.Appendf(nil, "%0*d", 1+random.IntN(60), random.IntN(200))
			if random.IntN(2) == 0 {
				if err = b.Delete(key); errors.Is(err, berrors.ErrIncompatibleValue) {
					err = nil
				}
			} else {
				err = b.Put(key, make([]byte, random.IntN(4)*random.IntN(4)*random.IntN(300)))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
