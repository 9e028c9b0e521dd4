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
	// hold memory while nothing comes in. It calls buffer once for a message, when that has
	// begun to come in, with the size that the peer has announced, in bytes; 0 if the size is
	// not known. A buffer that is nil or too small is replaced, as by Read. The announced size
	// need not be true, so do not allocate much for it. After an error buffer may have been
	// called or not. buffer must not wait, and must not use the Conn.
	ReadBuffer(buffer func(size int) []byte) (Message, error)

	// BeforeBlock makes Read call f each time before it may wait: for the network, until
	// the peer takes what answers it, or for the end of a Close. A reader that collects
	// messages into batches needs it, because it must not keep them while Read waits.
	// BeforeBlock reports whether this Conn can do that. Call it in the goroutine that
	// reads: before the first Read, or between two of them. f must not wait, and must not
	// use the Conn.
	BeforeBlock(f func()) bool

	// WriteBatch writes messages in order, with as few system calls as possible,
	// and returns how many it has handed to the kernel whole: all of them if err is
	// nil. No byte of the messages after ms[n] was handed over. If err is
	// [ErrNotWritten], no byte of ms[n] was handed over either; otherwise its fate is
	// unknown.
	//
	// All that is up to 32 KiB with its frames, and up to 64 messages, should be handed over at
	// once: a message behind one that waits for the network may begin after its deadline.
	//
	// A message that is [ErrBadMessage] ends the batch without harm: those before
	// it have been written. Other goroutines may write between two messages.
	WriteBatch(ms []Message) (n int, err error)

	// Silence returns how long ago the last byte came in. Bytes of any kind count, such as the
	// bytes of half a message or of the answer to a ping. Any goroutine may call it at any time.
	Silence() time.Duration

	// HungUp reports whether the peer has ended or reset the connection, even if
	// unread data stands before the end. It costs one system call and never waits.
	// Any goroutine may call it at any time.
	//
	// False may mean that HungUp cannot know: it knows for TCP sockets on Linux only,
	// and for a net.Conn that has a HungUp method of its own.
	HungUp() bool

	// LocalAddr returns the address of our end of the connection, nil if that is not known.
	// Any goroutine may call it at any time.
	LocalAddr() net.Addr
}

// batch is how many messages of a WriteBatch are handed over together at most.
const batch = 64
