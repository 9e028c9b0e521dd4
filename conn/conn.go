package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Conn is one message connection, from dial to end. Like a [net.Conn] it takes no
// contexts: a Read has no deadline, a Write has the limit that the constructor got, and
// Close or CloseNow ends both.
//
// One goroutine may read while others write, ping and close. After any error of Read or
// Write but [ErrBadMessage] the connection has ended, and only CloseNow may be called.
// After Close or CloseNow every method returns an error that is [net.ErrClosed]; but if an
// earlier cause ended the connection, Read returns that cause.
type Conn interface {
	// Read returns the next whole message, its data appended to buf[:0]; the
	// data is the caller's. It blocks until a message is complete or the
	// connection is dead.
	Read(buf []byte) (Message, error)

	// Write sends one whole message and returns when it has been handed to
	// the kernel. An error that is [ErrNotWritten] means that no byte of the message
	// was handed over; after any other error its fate is unknown.
	Write(m Message) error

	// Close ends the connection politely, with a code and a reason where the
	// protocol has them, and waits for the peer's answer until ctx ends.
	// Whatever happens, the connection is closed when it returns.
	Close(ctx context.Context, code int, reason string) error

	// CloseNow cuts the connection, unblocks every other call and never waits
	// for the network. It may be called more than once.
	CloseNow() error
}

// Pinger is a Conn whose protocol has a ping.
type Pinger interface {
	// Ping sends a ping and waits for its answer, which arrives only while
	// some goroutine is in Read. If ctx ends first, Ping returns an error, and the
	// connection goes on.
	Ping(ctx context.Context) error
}

// HalfCloser is a Conn whose protocol has no close frame, so that each side can only end
// its stream.
type HalfCloser interface {
	// CloseWrite ends our direction, behind all messages written. Read goes on, and its
	// [io.EOF] is the peer's answer. CloseWrite returns when the end is handed to
	// the kernel. An error that is [errors.ErrUnsupported] means that nothing has
	// happened; any other error means that the connection is dead.
	CloseWrite() error
}

// CloseStarter is a Conn whose protocol has a close frame, and that can be read until the peer answers it.
type CloseStarter interface {
	// StartClose sends a close frame behind all messages written, and returns when it is handed to the
	// kernel. From then on Write fails with [net.ErrClosed], and Read returns what the peer sends until its
	// own close frame, which is the answer (see [CloseError]). Call Close or CloseNow in the end. Any error
	// means that the connection is dead.
	StartClose(code int, reason string) error
}

// Message is one message as it travels.
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

// The types of messages, as WebSocket has them. A protocol without types reads Binary and
// ignores the type of a message that is written.
const (
	Text   Type = iota + 1 // UTF-8; checked only by a WebSocket with CheckUTF8
	Binary                 // anything
)

// ErrNotWritten is the error of a Write that has handed over no byte, so that the message
// may be sent again, on another connection.
var ErrNotWritten = errors.New("not written")

// ErrBadMessage is the error of a Write whose message the Conn refuses, such as a message of
// a Type that the protocol does not have. The error is [ErrNotWritten] too. After this error,
// and no other, the connection goes on.
var ErrBadMessage = errors.New("bad message")

// checkType refuses a message that is neither Text nor Binary.
func checkType(m Message) error {
	if m.Type != Text && m.Type != Binary {
		return notWritten(fmt.Errorf("%w: type %d is neither Text nor Binary", ErrBadMessage, m.Type))
	}
	return nil
}
