package conn

import (
	"net"
	"time"
)

// Transport is a [Conn] with methods for whoever reads and writes many messages, or watches many
// connections. [WebSocket] and [Framed] are Transports; a Conn with none of these methods works
// too, at a higher price. See "Wrapping a connection" in the package documentation.
type Transport interface {
	// ReadBuffer is Read into the memory that buffer returns, so that the reader need not
	// hold memory while nothing comes in. It calls buffer once for each message, when the
	// message has begun to come in, with the size that the peer has announced, in bytes, or
	// with 0 if the size is not known. It does not call buffer for a message that lies in memory
	// of its own already, such as a part of a frame: see [NewSplit]. The announced size need not be true,
	// so do not allocate much for it. A buffer that is nil or too small is replaced, as by
	// Read. If ReadBuffer returns an error, buffer may have been called or not. buffer must
	// not wait, and must not use the Conn.
	ReadBuffer(buffer func(size int) []byte) (Message, error)

	// BeforeBlock makes Read call f each time before Read may wait: for bytes, until the
	// peer takes an answer, or for the end of a Close. A reader that collects messages into
	// batches uses it to hand them on before Read waits. BeforeBlock reports whether this
	// Conn can call f. Call BeforeBlock in the goroutine that reads: before the first Read,
	// or between two Reads. f must not wait, and must not use the Conn.
	BeforeBlock(f func()) bool

	// WriteBatch writes messages in order, with as few system calls as possible,
	// and returns how many it has handed to the kernel whole: all of them if err is
	// nil. No byte of the messages after ms[n] was handed over. If err is
	// [ErrNotWritten], no byte of ms[n] was handed over either; otherwise the fate of
	// ms[n] is unknown. [ErrBadMessage] ends the batch without harm: the messages before
	// ms[n] have been written. Other goroutines may write between two messages.
	//
	// A WriteBatch should hand over up to 64 messages, or up to 32 KiB with their frames, at
	// once: a message that waits behind another may begin after its deadline.
	WriteBatch(ms []Message) (n int, err error)

	// Silence returns how long ago the last byte came in: of a message, of half a message,
	// of the answer to a ping, or of anything else. Any goroutine may call it at any time.
	Silence() time.Duration

	// HungUp reports whether the peer has ended or reset the connection, even if
	// unread data stands before the end. It costs one system call and never waits.
	// Any goroutine may call it at any time.
	//
	// HungUp knows for TCP sockets on Linux, and for a net.Conn that has a method HungUp
	// too. For all others it returns false.
	HungUp() bool

	// LocalAddr returns the address of our end of the connection, nil if that is not known.
	// Any goroutine may call it at any time.
	LocalAddr() net.Addr
}

// batch is how many messages of a WriteBatch are handed over together at most.
const batch = 64
