package boltstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/redial-go/redial/reconnect/ledger"
)

// Open is [bolt.Open] for a file that may be damaged. It opens the file to read, walks all pages,
// and opens it to write if they are sound. Otherwise the error is [ErrDamaged]. Bolt alone trusts the
// list of free pages, and a damaged one can end the program. Options.Timeout counts twice.
func Open(path string, mode os.FileMode, o *bolt.Options) (*bolt.DB, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if err := check(path, mode, o); err != nil {
			return nil, fmt.Errorf("boltstore: open %s: %w", path, err)
		}
	}
	return bolt.Open(path, mode, o)
}

// check walks a file.
func check(path string, mode os.FileMode, o *bolt.Options) error {
	if o == nil {
		o = bolt.DefaultOptions
	}
	read := *o
	read.ReadOnly, read.PreLoadFreelist, read.InitialMmapSize = true, false, 0
	db, err := bolt.Open(path, mode, &read)
	if err != nil {
		return err
	}
	defer db.Close()
	return walked(db, func(*bolt.Tx, *tree) (bool, error) { return false, nil })
}

// Store is a [ledger.Store] in a bolt database, which may hold other things too. Each change is one
// transaction, which is on the disk when Apply returns, unless the database was opened with NoSync.
// One Ledger at a time may use it. The caller closes the database, after the Conn is done.
//
// A disk may have changed anything in the file, so everything is verified:
//
//   - Every record has a checksum. A damaged one is reported and costs itself only. It is never
//     deleted: Load moves it to a key that begins with "damaged ", and each Load reports it again.
//     To be rid of it, delete that key from the bucket.
//   - The state is kept twice, with the number of the records, so that one damaged copy does no
//     harm, and a record that is missing is an error.
//   - New and Load walk all pages of the database first, and return [ErrDamaged] if one is not as
//     bolt writes it.
//
// Damage that happens while the database is open may be found only when the database is opened again.
type Store struct {
	db   *bolt.DB
	name string
}

var _ ledger.Store = (*Store)(nil)

// New returns the store with this name in db: the bucket of that name, which nothing else may use. In
// an empty database it makes the store. The error is [ErrDamaged] if the database cannot be walked, and
// bbolt's ErrBucketNotFound if it has other buckets and not this one: see [Create]. After an error
// nothing was written.
func New(db *bolt.DB, name string) (*Store, error) { return open(db, name, false) }

// Create makes a store in a database that may have other buckets. The error is bbolt's ErrBucketExists
// if it has this one. Call it once, when the database is made, because a store whose name is damaged
// looks as if it had never been made, and an empty store would use its numbers again.
func Create(db *bolt.DB, name string) (*Store, error) { return open(db, name, true) }

func open(db *bolt.DB, name string, create bool) (*Store, error) {
	if err := openBucket(db, name, create, func(*bolt.Bucket) error { return nil }, nil); err != nil {
		return nil, fmt.Errorf("boltstore: open store %q: %w", name, err)
	}
	return &Store{db: db, name: name}, nil
}

// openBucket calls load with a bucket that is there, and fill with one that it makes.
func openBucket(db *bolt.DB, name string, create bool, load, fill func(*bolt.Bucket) error) error {
	return walked(db, func(tx *bolt.Tx, root *tree) (bool, error) {
		there := root.buckets[name] != nil
		switch {
		case there && create:
			return false, berrors.ErrBucketExists
		case there:
			return false, load(tx.Bucket([]byte(name)))
		case !create && len(root.buckets) > 0:
			return false, fmt.Errorf("%w, and the database is not empty: either the name is damaged, or Create was never called", berrors.ErrBucketNotFound)
		}
		b, err := tx.CreateBucket([]byte(name))
		if err == nil && fill != nil {
			err = fill(b)
		}
		return err == nil, err
	})
}

// Load implements [ledger.Store]. It is an error if the state is damaged, if a record is missing, or
// if the database cannot be walked. If something is damaged that does not count, Load mends it.
func (s *Store) Load(each func(ledger.Record), damaged func(id uint64, data []byte, err error)) (ledger.StoreState, error) {
	var c contents
	err := walked(s.db, func(tx *bolt.Tx, root *tree) (bool, error) {
		t := root.buckets[s.name]
		if t == nil {
			return false, fmt.Errorf("boltstore: load store %q: %w", s.name, berrors.ErrBucketNotFound)
		}
		if t.buckets != nil {
			return false, fmt.Errorf("%w: store %q has a bucket", ErrDamaged, s.name)
		}
		if err := c.read(tx.Bucket([]byte(s.name))); err != nil {
			return false, fmt.Errorf("%w, in store %q", err, s.name)
		}
		if c.inPlace() && !t.unordered || s.db.IsReadOnly() {
			return false, nil
		}
		return true, c.rewrite(tx, s.name)
	})
	if err != nil {
		return ledger.StoreState{}, err
	}
	for _, r := range c.records { // outside of the transaction, since each may use the database
		each(r)
	}
	for _, p := range c.damaged {
		damaged(p.id(), p.data(), ErrDamaged)
	}
	return c.state.StoreState, nil
}

// contents is everything in a bucket.
type contents struct {
	state   state
	known   bool            // the state was found
	copies  int             // of it, under their keys
	records []ledger.Record // the sound ones, in ascending order
	sum     uint64          // of their seals
	damaged []pair
	fresh   uint64 // how many of them were not set aside before; each may have been a record
}

// read reads a bucket whose keys may be damaged, so it searches for none.
func (c *contents) read(b *bolt.Bucket) error {
	pairs := 0
	err := b.ForEach(func(k, v []byte) error {
		pairs++
		c.take(b, k, v)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(c.records, func(a, b ledger.Record) int { return cmp.Compare(a.ID, b.ID) })
	sound, all := uint64(len(c.records)), c.state.records
	switch {
	case !c.known && (b.Sequence() > 0 || pairs > 0):
		return fmt.Errorf("%w: the last numbers are lost", ErrDamaged)
	case sound+c.fresh < all:
		return fmt.Errorf("%w: %d of %d records are missing", ErrDamaged, all-sound-c.fresh, all)
	case sound > all || sound == all && c.sum != c.state.sum:
		return fmt.Errorf("%w: an older record is in the place of a newer one", ErrDamaged)
	}
	return nil
}

// take takes a pair.
func (c *contents) take(b *bolt.Bucket, k, v []byte) {
	isState := slices.Contains(stateKeys[:], string(k))
	if s, ok := decodeState(v); ok && s.change == b.Sequence() {
		c.state, c.known = s, true
		if isState {
			c.copies++
		}
		return
	} else if ok || isState {
		return // a copy that rewrite makes anew
	}
	if r, ok := decodeRecord(k, v); ok {
		c.records = append(c.records, r)
		c.sum += uint64(binary.BigEndian.Uint32(v))
		return
	}
	key, aside := bytes.CutPrefix(k, []byte(asidePrefix))
	if !aside {
		c.fresh++
	}
	c.damaged = append(c.damaged, pair{slices.Clone(key), slices.Clone(v)})
}

// inPlace reports whether nothing was found that rewrite would mend.
func (c *contents) inPlace() bool {
	return c.fresh == 0 && (c.copies == len(stateKeys) || !c.known)
}

// rewrite makes the bucket anew.
func (c *contents) rewrite(tx *bolt.Tx, name string) error {
	if err := tx.DeleteBucket([]byte(name)); err != nil {
		return err
	}
	b, err := tx.CreateBucket([]byte(name))
	if err != nil {
		return err
	}
	for _, p := range c.damaged {
		key := append([]byte(asidePrefix), p.key[:min(len(p.key), 1<<10)]...)
		for b.Get(key) != nil {
			key = append(key, 0)
		}
		if err := b.Put(key, p.value); err != nil {
			return err
		}
	}
	s := state{change: c.state.change}
	return s.apply(b, ledger.Change{StoreState: c.state.StoreState, Put: c.records})
}

// Apply implements [ledger.Store].
func (s *Store) Apply(c ledger.Change) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(s.name))
		if b == nil {
			return fmt.Errorf("store %q: %w", s.name, berrors.ErrBucketNotFound)
		}
		now, err := present(b)
		if err != nil {
			return err
		}
		return now.apply(b, c)
	})
	if err != nil {
		return fmt.Errorf("boltstore: %w", err)
	}
	return nil
}

// present returns the state in a bucket that was loaded.
func present(b *bolt.Bucket) (state, error) {
	if b.Sequence() == 0 {
		return state{}, nil
	}
	for _, key := range stateKeys {
		if s, ok := decodeState(b.Get([]byte(key))); ok && s.change == b.Sequence() {
			return s, nil
		}
	}
	return state{}, fmt.Errorf("%w: the last numbers are lost", ErrDamaged)
}

// apply makes a change in a bucket with the state s.
func (s state) apply(b *bolt.Bucket, c ledger.Change) error {
	remove := func(key []byte) {
		if v := b.Get(key); len(v) >= 4 {
			s.records--
			s.sum -= uint64(binary.BigEndian.Uint32(v))
		}
	}
	for _, id := range c.Delete {
		key := recordKey(id)
		remove(key)
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	for _, r := range c.Put {
		key := recordKey(r.ID)
		remove(key)
		v := encodeRecord(key, r)
		s.records++
		s.sum += uint64(binary.BigEndian.Uint32(v))
		if err := b.Put(key, v); err != nil {
			return err
		}
	}
	s.StoreState = c.StoreState
	s.change++
	for _, key := range stateKeys {
		if err := b.Put([]byte(key), encodeState(s)); err != nil {
			return err
		}
	}
	return b.SetSequence(s.change)
}
