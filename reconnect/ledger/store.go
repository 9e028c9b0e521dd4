package ledger

import "time"

// Store keeps the messages of a [Ledger] when the program ends. The Ledger calls Load first, and one method at
// a time. Only one Ledger at a time may use a Store, from Load until its Conn is done; then the program closes
// it.
type Store interface {
	// Load calls each with every record, in ascending order of ID, and damaged with every record that cannot be
	// read: the ID (0 if it may be damaged), the rest of the data, and the error. The Ledger does not delete
	// damaged records, so each run reports them. Load returns the last state, or the zero StoreState. The
	// Ledger owns the data. An error means that the store cannot be used.
	Load(each func(Record), damaged func(id uint64, data []byte, err error)) (StoreState, error)

	// Apply makes one change atomically. After nil, all of the change survives a crash; after an error, none of
	// it was made. Apply keeps neither c nor its data. It should reject a change of a Ledger that does not know
	// what is stored: its LastID is less than the stored one, or it puts a message that is neither new (its ID
	// is greater than the stored LastID) nor the stored message of that ID.
	Apply(c Change) error
}

// Record is what a [Store] keeps of one message.
type Record struct {
	ID    uint64    // number of the message, from 1 on, and key; never changed or reused with the same Store
	Seq   uint64    // number that the peer sees; equal to ID until the peer has forgotten us
	Added time.Time // when Add accepted the message
	Data  []byte    // argument of Add; must not be changed
}

// StoreState is kept by a [Store] in addition to the records, even when there are none.
type StoreState struct {
	LastID   uint64 // ID of the newest message
	LastSeq  uint64 // Seq of the newest message
	AckedSeq uint64 // every Seq up to AckedSeq is acknowledged
	Epoch    string // the peer's: see [Ledger.ResumeEpoch]
}

// Change is a change that a [Store] makes in one step.
type Change struct {
	StoreState          // replaces the state
	Delete     []uint64 // IDs of records to delete first; some may not exist
	Put        []Record // records to add after that, or to replace by ID
}
