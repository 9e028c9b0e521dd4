package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/reconnect/replay"
)

// Store is a [replay.Store] in a bolt database, which may hold other things too. Each change is one
// transaction, which is on the disk when Apply returns, unless the database was opened with NoSync.
// One Ledger at a time may use it. The caller closes the database, after the Conn is done.
//
// Every record has a checksum. One that is damaged is reported and costs itself only. The state is
// kept twice, so that one damaged copy does no harm. If the file itself is damaged, so that bolt
// cannot read one of its pages, New and Load return an error; bolt panics when it first meets such
// a page while it writes.
type Store struct {
	db   *bolt.DB
	name []byte
}

var _ replay.Store = (*Store)(nil)

// New returns the store with this name in db, which it makes if there is none: the bucket of that
// name, which nothing else may use.
func New(db *bolt.DB, name string) (*Store, error) {
	s := &Store{db: db, name: []byte(name)}
	if err := makeBucket(db, s.name); err != nil {
		return nil, fmt.Errorf("boltstore: make store %q: %w", name, err)
	}
	return s, nil
}

// makeBucket makes a bucket, unless it is there.
func makeBucket(db *bolt.DB, name []byte) error {
	there := false
	err := view(db, func(tx *bolt.Tx) error {
		there = tx.Bucket(name) != nil
		return nil
	})
	if err != nil || there {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(name)
		return err
	})
}

// The keys of the two copies of the state. A record's key is its ID, in 8 bytes.
var stateKeys = [2][]byte{[]byte("state"), []byte("state copy")}

// ErrDamaged says that something in the database is not what was stored.
var ErrDamaged = errors.New("boltstore: data is damaged")

// view runs f in a transaction that reads, and makes an error of a panic in it, since bolt panics
// when a page is damaged. That must not be done with a transaction that writes, because bolt may hold
// its lock for ever after a panic.
func view(db *bolt.DB, f func(tx *bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // since such a page may point anywhere
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: bolt cannot read its pages: %v", ErrDamaged, r)
		}
	}()
	return db.View(f)
}

// Load implements [replay.Store]. It is an error if both copies of the state are damaged, or if
// bolt cannot read its own pages.
func (s *Store) Load(each func(replay.Record), damaged func(id uint64, data []byte, err error)) (state replay.State, err error) {
	var records []replay.Record
	type bad struct {
		id   uint64
		data []byte
	}
	var bads []bad
	err = view(s.db, func(tx *bolt.Tx) error {
		b := tx.Bucket(s.name)
		if b == nil {
			return nil
		}
		if state, err = loadState(b); err != nil {
			return err
		}
		return b.ForEach(func(k, v []byte) error {
			if slices.ContainsFunc(stateKeys[:], func(key []byte) bool { return string(key) == string(k) }) {
				return nil
			}
			switch r, ok := decodeRecord(k, v); {
			case ok:
				records = append(records, r)
			case len(k) == 8:
				bads = append(bads, bad{binary.BigEndian.Uint64(k), slices.Clone(v)})
			default:
				bads = append(bads, bad{0, slices.Clone(v)})
			}
			return nil
		})
	})
	if err != nil {
		return replay.State{}, err
	}
	for _, r := range records { // outside of the transaction, since each may use the database
		each(r)
	}
	for _, b := range bads {
		damaged(b.id, b.data, ErrDamaged)
	}
	return state, nil
}

// Apply implements [replay.Store].
func (s *Store) Apply(c replay.Change) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(s.name)
		if b == nil {
			return fmt.Errorf("bucket %q is gone", s.name)
		}
		state := encodeState(c.State)
		for _, key := range stateKeys {
			if err := b.Put(key, state); err != nil {
				return err
			}
		}
		for _, id := range c.Delete {
			if err := b.Delete(recordKey(id)); err != nil {
				return err
			}
		}
		for _, r := range c.Put {
			key := recordKey(r.ID)
			if err := b.Put(key, encodeRecord(key, r)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("boltstore: %w", err)
	}
	return nil
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

func recordKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// A record is a checksum of the key and of what follows, Seq, Added in ns since 1970, and the data.
const recordHead = 4 + 8 + 8

func encodeRecord(key []byte, r replay.Record) []byte {
	v := make([]byte, 4, recordHead+len(r.Data))
	v = binary.BigEndian.AppendUint64(v, r.Seq)
	v = binary.BigEndian.AppendUint64(v, uint64(r.Added.UnixNano()))
	v = append(v, r.Data...)
	return seal(key, v)
}

func decodeRecord(key, v []byte) (replay.Record, bool) {
	if len(key) != 8 || len(v) < recordHead || !sealed(key, v) {
		return replay.Record{}, false
	}
	return replay.Record{
		ID: binary.BigEndian.Uint64(key), Seq: binary.BigEndian.Uint64(v[4:]),
		Added: time.Unix(0, int64(binary.BigEndian.Uint64(v[12:]))),
		Data:  slices.Clone(v[recordHead:]),
	}, true
}

// A state is a checksum, LastID, LastSeq, AckedSeq, and Epoch.
const stateHead = 4 + 8 + 8 + 8

func encodeState(s replay.State) []byte {
	v := make([]byte, 4, stateHead+len(s.Epoch))
	v = binary.BigEndian.AppendUint64(v, s.LastID)
	v = binary.BigEndian.AppendUint64(v, s.LastSeq)
	v = binary.BigEndian.AppendUint64(v, s.AckedSeq)
	return seal(nil, append(v, s.Epoch...))
}

// loadState returns the first copy of the state that is sound. If there is none, nothing was ever
// stored.
func loadState(b *bolt.Bucket) (replay.State, error) {
	there := 0
	for _, key := range stateKeys {
		v := b.Get(key)
		if v != nil {
			there++
		}
		if len(v) >= stateHead && sealed(nil, v) {
			return replay.State{
				LastID: binary.BigEndian.Uint64(v[4:]), LastSeq: binary.BigEndian.Uint64(v[12:]),
				AckedSeq: binary.BigEndian.Uint64(v[20:]), Epoch: string(v[stateHead:]),
			}, nil
		}
	}
	if there > 0 {
		return replay.State{}, fmt.Errorf("%w: the last numbers are lost", ErrDamaged)
	}
	return replay.State{}, nil
}

// seal puts the checksum of key and of v from byte 4 on into v, and returns v.
func seal(key, v []byte) []byte {
	binary.BigEndian.PutUint32(v, checksum(key, v))
	return v
}

// sealed reports whether that is the checksum.
func sealed(key, v []byte) bool { return binary.BigEndian.Uint32(v) == checksum(key, v) }

func checksum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, checksums), checksums, v[4:])
}
