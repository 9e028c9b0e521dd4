package boltstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/redial-go/redial/reconnect/ledger"
)

// Open is [bolt.Open] for a file that may be damaged: it first opens the file to read, and walks all pages.
// If one is damaged, the error is [ErrDamaged]; bolt.Open could end the program. Options.Timeout counts
// twice.
func Open(path string, mode os.FileMode, o *bolt.Options) (*bolt.DB, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		read := *cmp.Or(o, bolt.DefaultOptions)
		read.ReadOnly, read.PreLoadFreelist, read.InitialMmapSize = true, false, 0
		db, err := bolt.Open(path, mode, &read)
		if err == nil {
			err = walked(db, func(*bolt.Tx, *tree) (bool, error) { return false, nil })
			db.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("boltstore: open %s: %w", path, err)
		}
	}
	return bolt.Open(path, mode, o)
}

// Store is a [ledger.Store] in a bolt database, which may hold other things too. Each change is one
// transaction, which is on the disk when Apply returns, unless the database was opened with NoSync.
// One Ledger at a time may use it: once two have loaded it, and one of them has added a message, the
// changes of the other are rejected, so that Add fails. The caller closes the database, after the
// Conn is done.
//
// A disk may have changed anything in the file, so New and Load verify all pages, and Load verifies all
// records. Damage that happens while the database is open may be found only when it is opened again.
type Store struct {
	db   *bolt.DB
	name string
}

var _ ledger.Store = (*Store)(nil)

// New returns the store with this name in db: the bucket of that name, which nothing else may use. In
// an empty database New makes the store. After an error nothing was written. The error is:
//
//   - [ErrDamaged] if a page of the database is damaged.
//   - bbolt's ErrBucketNotFound if the database has other buckets and not this one: see [Create].
func New(db *bolt.DB, name string) (*Store, error) { return open(db, name, false) }

// Create makes a store in a database that may have other buckets. Call it once, when the database is made:
// a store whose name is damaged looks as if it had never been made, and a new one would use its numbers
// again. The error is bbolt's ErrBucketExists if there is a bucket of that name.
func Create(db *bolt.DB, name string) (*Store, error) { return open(db, name, true) }

func open(db *bolt.DB, name string, create bool) (*Store, error) {
	err := openBucket(db, name, create, func(b *bolt.Bucket, made bool) error {
		if made {
			return state{}.apply(b, ledger.Change{})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("boltstore: open store %q: %w", name, err)
	}
	return &Store{db: db, name: name}, nil
}

// openBucket calls f with a bucket that is there, or that it makes.
func openBucket(db *bolt.DB, name string, create bool, f func(b *bolt.Bucket, made bool) error) error {
	return walked(db, func(tx *bolt.Tx, root *tree) (bool, error) {
		there := root.buckets[name] != nil
		switch {
		case there && create:
			return false, berrors.ErrBucketExists
		case there:
			return false, f(tx.Bucket([]byte(name)), false)
		case !create && len(root.buckets) > 0:
			return false, fmt.Errorf("%w, and the database is not empty: either the name is damaged, or Create was never called", berrors.ErrBucketNotFound)
		}
		b, err := tx.CreateBucket([]byte(name))
		if err == nil {
			err = f(b, true)
		}
		return true, err
	})
}

// Load implements [ledger.Store]. It is an error if the database cannot be walked, if the state is lost, or
// if a record is missing. Load sets damaged records aside, and mends the other damage that does no harm.
func (s *Store) Load(each func(ledger.Record), damaged func(id uint64, data []byte, err error)) (ledger.StoreState, error) {
	var c contents
	err := walked(s.db, func(tx *bolt.Tx, root *tree) (bool, error) {
		t := root.buckets[s.name]
		switch {
		case t == nil:
			return false, berrors.ErrBucketNotFound
		case t.buckets != nil:
			return false, fmt.Errorf("%w: the store has a bucket", ErrDamaged)
		}
		if err := c.read(tx.Bucket([]byte(s.name))); err != nil {
			return false, err
		}
		sound := c.fresh == 0 && c.copies == len(stateKeys) && !t.unordered
		if sound || s.db.IsReadOnly() {
			return false, nil
		}
		return true, c.rewrite(tx, s.name)
	})
	if err != nil {
		return ledger.StoreState{}, fmt.Errorf("boltstore: load store %q: %w", s.name, err)
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
	state   *state          // nil: not found yet
	copies  int             // of it, under their keys
	records []ledger.Record // the sound ones, in ascending order
	sum     uint64          // of their seals
	damaged []pair
	fresh   uint64 // how many of them were not set aside before; each may have been a record
}

// read reads a bucket whose keys may be damaged, so it searches for none.
func (c *contents) read(b *bolt.Bucket) error {
	err := b.ForEach(func(k, v []byte) error {
		c.take(b, k, v)
		return nil
	})
	if err != nil {
		return err
	}
	if c.state == nil {
		return errNoState
	}
	slices.SortFunc(c.records, func(a, b ledger.Record) int { return cmp.Compare(a.ID, b.ID) })
	sound, all := uint64(len(c.records)), c.state.records
	switch {
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
	s, ok := decodeState(v)
	if ok && s.change == b.Sequence() {
		if c.state = &s; isState {
			c.copies++
		}
		return
	}
	if ok || isState {
		return // a copy that rewrite makes anew
	}
	if r, ok := decodeRecord(k, v); ok {
		c.records = append(c.records, r)
		c.sum += sealOf(v)
		return
	}
	key, aside := bytes.CutPrefix(k, []byte(asidePrefix))
	if !aside {
		c.fresh++
	}
	c.damaged = append(c.damaged, pair{slices.Clone(key), slices.Clone(v)})
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
	return state{change: c.state.change}.apply(b, ledger.Change{StoreState: c.state.StoreState, Put: c.records})
}

// Apply implements [ledger.Store]. It rejects a change of a Ledger that does not know the messages
// in the store, because another Ledger has added them.
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
		if !now.follows(b, c) {
			return fmt.Errorf("store %q: %w", s.name, errNotNext)
		}
		return now.apply(b, c)
	})
	if err != nil {
		return fmt.Errorf("boltstore: %w", err)
	}
	return nil
}

var errNoState = fmt.Errorf("%w: the last numbers are lost", ErrDamaged)

var errNotNext = errors.New("change does not follow the stored messages: either another Ledger has added some, " +
	"or an Apply that has failed was carried out all the same; " +
	"one Ledger at a time may use a store: when no Ledger does, make a new one")

// follows reports whether c is a change of a Ledger that knows the messages in the bucket: those
// that it adds come after LastID, and the others that it puts are there already.
func (s state) follows(b *bolt.Bucket, c ledger.Change) bool {
	if c.LastID < s.LastID {
		return false
	}
	for _, r := range c.Put {
		if r.ID > s.LastID {
			continue
		}
		key := recordKey(r.ID)
		old, ok := decodeRecord(key, b.Get(key))
		if !ok || r.Added.After(old.Added) || !bytes.Equal(r.Data, old.Data) { // Added may be earlier: see ledger.New
			return false
		}
	}
	return true
}

// present returns the state in a bucket that was loaded.
func present(b *bolt.Bucket) (state, error) {
	for _, key := range stateKeys {
		if s, ok := decodeState(b.Get([]byte(key))); ok && s.change == b.Sequence() {
			return s, nil
		}
	}
	return state{}, errNoState
}

// apply makes a change in a bucket with the state s.
func (s state) apply(b *bolt.Bucket, c ledger.Change) error {
	replace := func(key, v []byte) error { // nil: by nothing
		if old := b.Get(key); len(old) >= 4 {
			s.records--
			s.sum -= sealOf(old)
		}
		if v == nil {
			return b.Delete(key)
		}
		s.records++
		s.sum += sealOf(v)
		return b.Put(key, v)
	}
	for _, id := range c.Delete {
		if err := replace(recordKey(id), nil); err != nil {
			return err
		}
	}
	for _, r := range c.Put {
		key := recordKey(r.ID)
		if err := replace(key, encodeRecord(key, r)); err != nil {
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
