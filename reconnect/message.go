package reconnect

import (
	"errors"
	"fmt"

	"github.com/redial-go/redial/conn"
)

// Message is a received message, and the session that it came by.
type Message struct {
	conn.Message
	Session uint64
}

// Seam stands in the stream of received messages where some may be missing: after
// the last message of a connection that was lost and before any of the next,
// exactly one for each that was ready or delivered anything; or, with
// [OverflowDropOldest], in the place of what was dropped. What was built from messages
// before it is stale.
//
// A Seam is an error only so that Read can return it in order: read on. It does not
// unwrap to its Cause, because errors.Is(err, [net.ErrClosed]) must mean that the
// Conn is closed, not that one connection was.
//
// A reader that leaves more than 64 seams unread gets one for several, whose
// Session and Cause are those of the last.
type Seam struct {
	Session uint64 // the one that ended, or whose messages were dropped
	Cause   error  // why; ErrInboxFull for dropped ones
	Dropped int    // how many messages were dropped here; 0: the connection was lost
	Lost    int    // how many connections were lost here: 0 for dropped messages alone
}

func (s *Seam) Error() string {
	if s.Lost == 0 {
		return fmt.Sprintf("session %d: %d messages dropped: %v", s.Session, s.Dropped, s.Cause)
	}
	return fmt.Sprintf("session %d ended: %v", s.Session, s.Cause)
}

// ErrInboxFull is why messages were dropped, or a session was ended, when the
// application reads too slowly.
var ErrInboxFull = errors.New("inbox full")
