package boltstore

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Inbox is the receiving half, for the peer of a Ledger: it stores the effect of a message and the
// number of the message in one transaction. A message that comes again has no second effect, and no
// message is acknowledged before its effect is on the disk. Any goroutine may use an Inbox; one
// transaction runs at a time. The caller closes the database.
type Inbox struct {
	db    *bolt.DB
	name  []byte
	epoch string
}

// NewInbox returns the inbox with this name in db: the bucket of that name, which nothing else may
// use. Each sender needs a separate inbox. In an empty database NewInbox makes the inbox. The error is
// bbolt's ErrBucketNotFound if the database has other buckets and not this one: see [CreateInbox].
//
// The error is [ErrDamaged] if the database cannot be walked, or if the epoch or the last number of
// the inbox is damaged or missing. Then it is unknown which messages have had their effect. To go on,
// delete the bucket, and call CreateInbox: what the sender has unacknowledged may have its effect
// twice. After an error nothing was written.
func NewInbox(db *bolt.DB, name string) (*Inbox, error) { return openInbox(db, name, false) }

// CreateInbox makes an inbox in a database that may have other buckets. The error is bbolt's
// ErrBucketExists if it has this one. Call it once, when the database is made, because an inbox whose
// name is damaged looks as if it had never been made.
func CreateInbox(db *bolt.DB, name string) (*Inbox, error) { return openInbox(db, name, true) }

func openInbox(db *bolt.DB, name string, create bool) (*Inbox, error) {
	in := &Inbox{db: db, name: []byte(name)}
	if err := openBucket(db, name, create, in.load, in.fill); err != nil {
		return nil, fmt.Errorf("boltstore: open inbox %q: %w", name, err)
	}
	return in, nil
}

// load reads the epoch of an inbox that is there.
func (in *Inbox) load(b *bolt.Bucket) error {
	epoch := b.Get(epochKey)
	if len(epoch) <= 4 || !sealed(epochKey, epoch) {
		return fmt.Errorf("%w: the epoch is lost", ErrDamaged)
	}
	in.epoch = string(epoch[4:])
	_, err := in.have(b.Tx())
	return err
}

// fill makes the epoch of a new inbox.
func (in *Inbox) fill(b *bolt.Bucket) error {
	in.epoch = rand.Text()
	epoch := append(make([]byte, 4), in.epoch...)
	return errors.Join(b.Put(epochKey, seal(epochKey, epoch)), in.put(b, 0))
}

// put stores the last number.
func (in *Inbox) put(b *bolt.Bucket, have uint64) error {
	return b.Put(haveKey, seal(haveKey, binary.BigEndian.AppendUint64(make([]byte, 4), have)))
}

var (
	epochKey = []byte("epoch")
	haveKey  = []byte("have")
)

// Epoch returns a random name that was made with the inbox. When the database is lost, the next
// inbox has another one, so that the sender sees it: see [ledger.Ledger.ResumeEpoch].
//
// [ledger.Ledger.ResumeEpoch]: https://pkg.go.dev/github.com/redial-go/redial/reconnect/ledger#Ledger.ResumeEpoch
func (in *Inbox) Epoch() string { return in.epoch }

// Have returns the number up to which every message has had its effect.
func (in *Inbox) Have() (have uint64, err error) {
	err = guard(func() error {
		return in.db.View(func(tx *bolt.Tx) error {
			have, err = in.have(tx)
			return err
		})
	})
	return have, err
}

// Take receives the message with the number seq. If the message is the next one, Take calls effect, and
// stores the effect and the number, both or neither. If the message was received before, Take does
// nothing, and seen is true. In both cases the message is on the disk when Take returns, and may be
// acknowledged. After an error nothing has changed. The error is a *[GapError] if a message before seq is
// missing, or the error of effect or of the database.
//
// Use Take if every number reaches the peer, in order, so that a gap means a broken sender. A Ledger
// leaves a gap where a message has expired, was dropped or refused, or has a damaged record. If that can
// happen, use TakeAfterGap, because Take would refuse every message after the gap.
func (in *Inbox) Take(seq uint64, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	return in.take(seq, false, effect)
}

// TakeAfterGap is Take for a sender whose numbers have gaps: missing messages before seq are given up. A
// Ledger sends in order, and after a redial from the number that the peer has, so the missing messages
// never come.
func (in *Inbox) TakeAfterGap(seq uint64, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	return in.take(seq, true, effect)
}

func (in *Inbox) take(seq uint64, gaps bool, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	if have, err := in.Have(); err != nil || seq <= have {
		return err == nil, err // without a transaction that writes
	}
	err = in.db.Update(func(tx *bolt.Tx) error {
		have, err := in.have(tx)
		switch {
		case err != nil:
			return err
		case seq <= have:
			seen = true
			return nil
		case seq != have+1 && !gaps:
			return &GapError{Have: have, Seq: seq}
		}
		if err := effect(tx); err != nil {
			return err
		}
		return in.put(tx.Bucket(in.name), seq)
	})
	return seen, err
}

func (in *Inbox) have(tx *bolt.Tx) (uint64, error) {
	b := tx.Bucket(in.name)
	if b == nil {
		return 0, fmt.Errorf("boltstore: inbox %q is gone", in.name)
	}
	v := b.Get(haveKey)
	if len(v) != 12 || !sealed(haveKey, v) {
		return 0, fmt.Errorf("%w: the last number of inbox %q", ErrDamaged, in.name)
	}
	return binary.BigEndian.Uint64(v[4:]), nil
}

// GapError reports that a message is missing.
type GapError struct {
	Have uint64 // the last number that was received
	Seq  uint64 // the number that came
}

func (e *GapError) Error() string {
	return fmt.Sprintf("boltstore: message %d came after %d", e.Seq, e.Have)
}
