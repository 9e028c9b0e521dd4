package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Conn is one message connection. A Read has no deadline, a Write has the limit that the
// constructor was given, and Close or CloseNow ends both.
//
// One goroutine may read while others write, ping and close. After any error of Read or Write
// except [ErrBadMessage] and [ErrWoken] the connection has ended, and only CloseNow may be called.
// After Close or CloseNow every method returns an error that is [net.ErrClosed]; but if an earlier
// cause ended the connection, Read returns that cause.
type Conn interface {
	// Read returns the next whole message, its data appended to buf[:0], or to a new buffer if it
	// does not fit. It blocks until a message is complete or the connection is dead.
	Read(buf []byte) (Message, error)

	// Write sends one whole message and returns when it has been handed to the kernel. After an
	// error that is not [ErrNotWritten] the fate of the message is unknown.
	Write(m Message) error

	// Close closes the connection with the code and reason, if the protocol has them, and waits for
	// the peer's reply until ctx is done. When it returns, the connection is closed in any case.
	Close(ctx context.Context, code int, reason string) error

	// CloseNow aborts the connection, unblocks every other call and never waits for the network. It
	// may be called repeatedly.
	CloseNow() error
}

// Pinger is a Conn whose protocol has a ping.
type Pinger interface {
	// Ping sends a ping and waits for the pong, which arrives only while some goroutine is in Read.
	// If ctx is done first, Ping returns an error, and the connection stays open.
	Ping(ctx context.Context) error
}

// HalfCloser is a Conn whose protocol has no close frame.
type HalfCloser interface {
	// CloseWrite ends our direction, after all messages written, and returns when the end has been
	// handed to the kernel. Read continues, and its [io.EOF] is the peer's reply. If the error is
	// [errors.ErrUnsupported], nothing has happened; after any other the connection is dead.
	CloseWrite() error
}

// CloseStarter is a [Conn] whose protocol has a close frame.
type CloseStarter interface {
	// StartClose sends a close frame after all messages written, and returns when it has been
	// handed to the kernel. Then Write fails with [net.ErrClosed], and Read returns what the peer
	// sends until its own close frame, a [CloseError]. Call Close or CloseNow in the end. After any
	// error the connection is dead.
	StartClose(code int, reason string) error
}

// Message is one message.
type Message struct {
	Type Type   // Text or Binary
	Data []byte // after Read the caller's; Write keeps none of it
}

// TextMessage returns a Text message that holds s.
func TextMessage(s string) Message { return Message{Type: Text, Data: []byte(s)} }

// JSONMessage returns a Text message that holds v in JSON, or the error of [json.Marshal].
func JSONMessage(v any) (Message, error) {
	data, err := json.Marshal(v)
	return Message{Type: Text, Data: data}, err
}

// BinaryMessage returns a Binary message that holds b itself, not a copy.
func BinaryMessage(b []byte) Message { return Message{Type: Binary, Data: b} }

// Type is the type of a message.
type Type uint8

// The types of messages, as in WebSocket. A protocol without types ignores the type of a written
// message.
const (
	Text   Type = iota + 1 // UTF-8; checked only by a WebSocket with CheckUTF8
	Binary                 // anything
)

// ErrNotWritten is the error of a Write that has handed over no byte, so that the message may be
// sent again on another connection.
var ErrNotWritten = errors.New("not written")

// ErrBadMessage is the error of a Write whose message the Conn rejects. The error is
// [ErrNotWritten] too. The connection stays open.
var ErrBadMessage = errors.New("bad message")

// checkType refuses a message that is neither Text nor Binary.
func checkType(m Message) error {
	if m.Type != Text && m.Type != Binary {
		return notWritten(fmt.Errorf("%w: type %d is neither Text nor Binary", ErrBadMessage, m.Type))
	}
	return nil
}
