package reconnect

import (
	"fmt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Message is a received message, and the session that it came by.
type Message struct {
	conn.Message        // its data is valid as Conn.Read or Options.OnMessage says
	Session      uint64 // the number of the session, from 1 on
}

// Seam marks a place in the stream of received messages where some may be missing. What was
// built from the messages before it is stale. There is exactly one after each session that
// was ready or delivered anything: after its last message, and before the first of the
// next session. With [OverflowDropOldest] there is also one in the place of the messages
// that were dropped. The last session has a seam, too: after [Conn.Shutdown] the reader gets it
// just before the end of the stream.
//
// Do not fetch what is missing at such a seam: the next session may not be subscribed yet, and
// what the server sends between the fetch and the subscription is missing for good. With
// [Options.MarkRefetch] there is a second mark, a Seam with Refetch set. Fetch at each Seam with
// Refetch set, those of the first session and of dropped messages included:
//
//	switch seam, ok := errors.AsType[*reconnect.Seam](err); {
//	case ok && seam.Refetch:
//		book = fetch(ctx) // in a loop until it succeeds, or ends with ctx
//	case ok:
//		book = nil // a stale book is worse than none
//	}
//
// A Seam is an error only so that Read can return it in order: read on. It does not
// unwrap to its Cause, because errors.Is(err, [net.ErrClosed]) must mean that the
// Conn is closed, not that one connection was.
//
// If more than 64 seams are unread, one stands for several. Its Session and Cause are then
// those of the last.
type Seam struct {
	Session uint64 // the session that ended, or whose messages were dropped
	Cause   error  // why the session ended; ErrInboxFull for messages that were dropped
	Dropped int    // how many messages were dropped here; 0: none, a connection was lost
	Lost    int    // how many connections were lost here; 0: none, messages were dropped

	Planned bool // the session was replaced, and did not die: see Rotation

	// Overlapped says that the next session was ready before this one was read to its end.
	// Then nothing is missing if the server gives both everything, but some messages may come
	// twice. It is false if this session broke before it was read to its end, if it had to be
	// ended because the reader was slow, and if the peer ended it and nobody read it when the next
	// one became ready, because then the peer may have ended it before.
	Overlapped bool

	Resumed bool           // the protocol vouches that nothing is missing: see Options.Resumable
	Reason  backoff.Reason // the kind of Cause, which is safe as the label of a metric

	// Refetch says that what is missing can be fetched now: what the server sends after that
	// comes by a session that is ready and subscribed. If Lost and Dropped are 0, the seam is only
	// the mark of Session. It is false without Options.MarkRefetch.
	Refetch bool
}

// marks reports whether s is nothing but the mark of a session.
func (s *Seam) marks() bool { return s.Refetch && s.Lost == 0 && s.Dropped == 0 }

func (s *Seam) Error() string {
	if s.marks() {
		return fmt.Sprintf("session %d: what is missing can be fetched now", s.Session)
	}
	if s.Lost == 0 {
		return fmt.Sprintf("session %d: %d messages dropped: %v", s.Session, s.Dropped, s.Cause)
	}
	return fmt.Sprintf("session %d ended: %v", s.Session, s.Cause)
}

// ErrInboxFull is the cause of a seam in the place of messages that were dropped, and of the
// end of a session with [OverflowDisconnect]: the application read too slowly.
var ErrInboxFull error = &reasonError{"inbox full", backoff.ReasonSlowReader}

// clone returns a copy of p that has room for nothing else. The compiler knows the two lines,
// and does not clear the memory first.
func clone(p []byte) []byte {
	same := make([]byte, len(p))
	copy(same, p)
	return same
}
