package ledger

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Store keeps what a [Ledger] must not forget when the program ends. The Ledger calls one method
// at a time, and Load first. The caller closes the store, after the Conn is done.
// [MemoryStore] is a Store, and package boltstore, which is a module of its own, has one that
// survives a crash.
type Store interface {
	// Load calls each with every record, in ascending order of ID, and damaged with every record
	// that cannot be read: its ID (0: the ID may be what is damaged), what is left of its data, and
	// what is wrong. The Ledger does not delete such a record, so the next Load reports it again.
	// It returns the last state, which is the zero StoreState if there was none. The data belongs to
	// the Ledger. An error means that nothing can be read.
	Load(each func(Record), damaged func(id uint64, data []byte, err error)) (StoreState, error)

	// Apply makes one change. When it returns nil, all of the change survives a crash; when it
	// returns an error, none of it was made. It keeps neither the change nor its data.
	Apply(c Change) error
}

// Record is what a [Store] keeps of one message.
type Record struct {
	ID    uint64    // the Ledger's number of the message, from 1 on, and the key of the record; it never changes, and is not used again, not even after a restart with the same Store
	Seq   uint64    // the peer's number of it; equal to ID until the peer has forgotten us
	Added time.Time // when Add accepted it
	Data  []byte    // what Add got; it must not be changed
}

// StoreState is what a [Store] keeps beside the records. It is there even when every message is
// acknowledged, so that no number is used twice.
type StoreState struct {
	LastID   uint64 // the last ID that was given to a message
	LastSeq  uint64 // the last Seq that was given to a message
	AckedSeq uint64 // up to here the peer has acknowledged every Seq
	Epoch    string // of the peer: see [Ledger.ResumeEpoch]
}

// Change is what a [Store] does in one step.
type Change struct {
	StoreState          // replaces the state
	Delete     []uint64 // the IDs of records to delete first; some may not exist
	Put        []Record // are added then, or replace those with their ID
}

// MemoryStore is a [Store] that lasts as long as the program does. With it a Ledger can take over
// what an earlier one of the same program has left. The zero value is ready. Any goroutine may
// use it, but only one Ledger at a time.
type MemoryStore struct {
	mu      sync.Mutex // guards what follows
	state   StoreState
	records map[uint64]Record
}

// Load implements [Store].
func (s *MemoryStore) Load(each func(Record), _ func(uint64, []byte, error)) (StoreState, error) {
	s.mu.Lock()
	state, records := s.state, maps.Clone(s.records)
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(records)) {
		each(records[id])
	}
	return state, nil
}

// Apply implements [Store]. Its error is always nil.
func (s *MemoryStore) Apply(c Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = make(map[uint64]Record)
	}
	s.state = c.StoreState
	for _, id := range c.Delete {
		delete(s.records, id)
	}
	for _, r := range c.Put {
		r.Data = slices.Clone(r.Data)
		s.records[r.ID] = r
	}
	return nil
}
