package ledger

import "time"

// Store keeps the messages of a [Ledger] when the program ends. The Ledger calls Load first, and one
// method at a time. One Ledger at a time may use a Store, from Load until its Conn is done. After
// that the program closes the Store. The nested module boltstore has a Store that survives a crash.
type Store interface {
	// Load calls each with every record, in ascending order of ID. It calls damaged with every record
	// that cannot be read: the ID (0 if the ID may be damaged), the rest of the data, and the error.
	// The Ledger does not delete a damaged record, so the next Load reports it again. Load returns
	// the last state, or the zero StoreState if there was none. The data belongs to the Ledger. An
	// error means that the store cannot be used.
	Load(each func(Record), damaged func(id uint64, data []byte, err error)) (StoreState, error)

	// Apply makes one change. If Apply returns nil, all of the change survives a crash; if it returns
	// an error, none of the change was made. Apply keeps neither c nor its data. Apply should
	// reject a change of a Ledger that does not know what is stored: its LastID is less than the
	// stored one, or it puts a message that is neither new (its ID is greater than the stored
	// LastID) nor the stored message of that ID.
	Apply(c Change) error
}

// Record is what a [Store] keeps of one message.
type Record struct {
	ID    uint64    // the Ledger's number for the message, from 1 on, and the key of the record; never changed, and never used again with the same Store
	Seq   uint64    // the number that the peer sees; equal to ID until the peer has forgotten us
	Added time.Time // when Add accepted the message
	Data  []byte    // the argument of Add; must not be changed
}

// StoreState is kept by a [Store] beside the records, even when every message is acknowledged, so that
// no number is used twice.
type StoreState struct {
	LastID   uint64 // the ID of the newest message
	LastSeq  uint64 // the Seq of the newest message
	AckedSeq uint64 // the peer has acknowledged every Seq up to AckedSeq
	Epoch    string // the peer's: see [Ledger.ResumeEpoch]
}

// Change is a change that a [Store] makes in one step.
type Change struct {
	StoreState          // replaces the state
	Delete     []uint64 // the IDs of records to delete first; some may not exist
	Put        []Record // records to add after that, or to replace by ID
}
