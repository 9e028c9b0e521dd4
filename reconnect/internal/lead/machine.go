package lead

import "github.com/redial-go/redial/reconnect/internal/link"

// State says who may read the connection. Each method is one event, and returns the next state and what is to be
// done in it. An event that has no meaning in a state changes nothing.
type State uint8

// The states: see the package documentation.
const (
	Supervisor State = iota
	Asked
	Free // link.LeadFree
	Reader
	Recalled
)

var _ = [1]struct{}{}[Free-link.LeadFree] // both are the same

// Act says what to do after an event.
type Act uint8

// The acts.
const (
	Nothing Act = iota
	Wake        // end the wait of the goroutine that reads
	Offer       // tell the reader that the turn is free
	Back        // tell the supervisor that it has the turn
)

// Take is the wish of the reader to read.
func (s State) Take() (State, Act) {
	switch s {
	case Supervisor:
		return Asked, Wake
	case Free:
		return Reader, Nothing
	}
	return s, Nothing
}

// Lend is the answer of the supervisor, which has put everything into the inbox.
func (s State) Lend() (State, Act) {
	if s == Asked {
		return Free, Offer
	}
	return s, Nothing
}

// Leave says that the reader does not read any more. If hand is true, the supervisor is to read at once.
func (s State) Leave(hand bool) (State, Act) {
	switch {
	case s == Reader && !hand:
		return Free, Nothing
	case s == Reader, s == Recalled:
		return Supervisor, Back
	}
	return s, Nothing
}

// Expire says that no Read has come for a while.
func (s State) Expire() (State, Act) {
	if s == Free {
		return Supervisor, Back
	}
	return s, Nothing
}

// Recall is the wish of the supervisor to read: the session ends.
func (s State) Recall() (State, Act) {
	switch s {
	case Asked, Free:
		return Supervisor, Nothing
	case Reader:
		return Recalled, Wake
	}
	return s, Nothing
}
