package boltstore

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Inbox is the receiving half, for the peer of a Ledger: it stores the effect of a message and the
// number of the message in one transaction. Any goroutine may use an Inbox; one transaction runs at a
// time. The caller closes the database.
type Inbox struct {
	db    *bolt.DB
	name  []byte
	epoch string
}

// NewInbox returns the inbox with this name in db, as [New] returns a store. Each sender needs a separate
// inbox.
//
// The error is [ErrDamaged] also if the epoch or the last number is damaged or missing. Then it is unknown
// which messages have had their effect. To go on, delete the bucket, and call CreateInbox: the
// unacknowledged messages of the sender may have their effect twice.
func NewInbox(db *bolt.DB, name string) (*Inbox, error) { return openInbox(db, name, false) }

// CreateInbox makes an inbox in a database that may have other buckets, as [Create] makes a store.
func CreateInbox(db *bolt.DB, name string) (*Inbox, error) { return openInbox(db, name, true) }

func openInbox(db *bolt.DB, name string, create bool) (*Inbox, error) {
	in := &Inbox{db: db, name: []byte(name)}
	err := openBucket(db, name, create, func(b *bolt.Bucket, made bool) (err error) {
		if made {
			in.epoch = rand.Text()
			return in.put(b, 0)
		}
		_, in.epoch, err = in.get(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("boltstore: open inbox %q: %w", name, err)
	}
	return in, nil
}

// An inbox has one pair. Its value is a seal, the last number, and the epoch.
var inboxKey = []byte("inbox")

func (in *Inbox) put(b *bolt.Bucket, have uint64) error {
	v := binary.BigEndian.AppendUint64(make([]byte, 4), have)
	return b.Put(inboxKey, seal(inboxKey, append(v, in.epoch...)))
}

func (in *Inbox) get(b *bolt.Bucket) (have uint64, epoch string, err error) {
	if b == nil {
		return 0, "", fmt.Errorf("boltstore: the bucket of inbox %q is gone", in.name)
	}
	v := b.Get(inboxKey)
	if len(v) <= 12 || !sealed(inboxKey, v) {
		return 0, "", fmt.Errorf("%w: the epoch and the last number of inbox %q", ErrDamaged, in.name)
	}
	return binary.BigEndian.Uint64(v[4:]), string(v[12:]), nil
}

// Epoch returns a random name that was made with the inbox, for the sender's ResumeEpoch. If the database
// is lost, the next inbox has another name.
func (in *Inbox) Epoch() string { return in.epoch }

// Have returns the number up to which every message has had its effect.
func (in *Inbox) Have() (have uint64, err error) {
	err = guard(func() error {
		return in.db.View(func(tx *bolt.Tx) error {
			have, _, err = in.get(tx.Bucket(in.name))
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
// A Ledger leaves a gap where a message has expired, was dropped or refused, or has a damaged record. If
// that can happen, use TakeAfterGap, because Take would refuse every message after the gap.
func (in *Inbox) Take(seq uint64, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	return in.take(seq, false, effect)
}

// TakeAfterGap is Take for a sender whose numbers have gaps: it gives up the missing messages before seq.
// They never come later, because a Ledger sends in order.
func (in *Inbox) TakeAfterGap(seq uint64, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	return in.take(seq, true, effect)
}

func (in *Inbox) take(seq uint64, gaps bool, effect func(tx *bolt.Tx) error) (seen bool, err error) {
	if have, err := in.Have(); err != nil || seq <= have {
		return err == nil, err // without a transaction that writes
	}
	err = in.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(in.name)
		have, _, err := in.get(b)
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
		return in.put(b, seq)
	})
	return seen, err
}

// GapError reports that a message is missing.
type GapError struct {
	Have uint64 // the last number that was received
	Seq  uint64 // the number that came
}

func (e *GapError) Error() string {
	return fmt.Sprintf("boltstore: message %d came after message %d: the messages between are missing", e.Seq, e.Have)
}
