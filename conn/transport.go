package conn

import (
	"net"
	"time"
)

// Transport is a [Conn] for many messages or connections. [WebSocket] and [Framed] are Transports;
// a Conn without these methods costs more. Silence, HungUp and LocalAddr are safe for concurrent
// use.
type Transport interface {
	// ReadBuffer is like Read, but reads into the memory that buffer returns, so that an idle
	// reader holds none. It calls buffer once per message, when the first bytes have arrived, with
	// the size in bytes that the peer has announced, or 0. Do not trust that size with much memory.
	// A buffer that is nil or too small is replaced. buffer is not called for a message that
	// already has memory of its own, such as a part of a frame, and may not have been called if
	// ReadBuffer returns an error. buffer must not wait, and must not use the Conn.
	ReadBuffer(buffer func(size int) []byte) (Message, error)

	// BeforeBlock makes Read call f before it may wait. f may hand on a collected batch. f must not
	// wait, and must not use the Conn. BeforeBlock reports whether this Conn can call f. Only the
	// reading goroutine may call it, not during a Read.
	BeforeBlock(f func()) bool

	// WriteBatch writes messages in order, with as few system calls as possible, and returns how
	// many it has handed to the kernel completely. If err is nil, n is len(ms). If err is
	// [ErrNotWritten], no byte of ms[n] was handed over, otherwise its fate is unknown; no byte of
	// later messages was handed over. [ErrBadMessage] ends the batch but not the connection. Other
	// goroutines may write between two messages.
	//
	// A WriteBatch should hand over at most 64 messages, or 32 KiB with their frames, together: a
	// message that waits behind another may begin after its deadline.
	WriteBatch(ms []Message) (n int, err error)

	// Silence returns how long ago the last byte arrived, of whatever kind.
	Silence() time.Duration

	// HungUp reports whether the peer has ended or reset the connection, even behind unread data.
	// It costs one system call and never waits. It works only for TCP sockets on Linux, and for a
	// net.Conn that itself has a method HungUp.
	HungUp() bool

	// LocalAddr returns the address of our end of the connection, or nil if it is unknown.
	LocalAddr() net.Addr
}

// batch is how many messages of a WriteBatch are handed over together at most.
const batch = 64
