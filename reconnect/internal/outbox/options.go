package outbox

import (
	"time"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// Options say what an Outbox holds, and whom it tells.
type Options struct {
	queue.Limits
	Age      time.Duration // after which a message is dropped; 0 or less: never
	OneByOne bool          // no batches
	Down     WhenDown
	Receipt  func(Receipt)                               // gets the fate of each message of Send; nil: there are none
	Refusal  func() error                                // says why nothing can be sent now
	Await    func(done <-chan struct{}, function string) // waits for done, and reports that function is overdue if that takes long
}

// WhenDown says what happens while no session is ready. Its values are those of reconnect.WhenDown.
type WhenDown uint8

// The policies.
const (
	Fail WhenDown = iota // Write and Send fail
	Wait                 // Write waits
	Keep                 // Write waits, and messages of Send are kept
)
