package conn

import "errors"

// Follower is a [Transport] that two goroutines can read in turns: one by Read or ReadBuffer, the other by ReadWhole.
// Only one of them may read at a time. [WebSocket] is a Follower, except in a browser.
type Follower interface {
	Transport

	// ReadWhole waits for the next message. If the message comes as one plain frame of at most 64 KiB, ReadWhole returns
	// it, appended to buf[:0] as by Read, and whole is true. more says that something has come behind it.
	//
	// Otherwise whole is false, and ReadWhole has consumed nothing: call Read next. Either something else has come, such
	// as a ping, a fragment, or a message that is compressed or larger; or the connection has ended; or Wake was called.
	// ReadWhole may have written to all of buf.
	ReadWhole(buf []byte) (m Message, more, whole bool)

	// Wake ends a wait: ReadWhole returns, and Read returns ErrWoken if it waits between two messages. A Read inside a
	// message goes on. If no call waits, Wake ends the next such wait. Wake may end one more wait than it should. Any
	// goroutine may call Wake, which does not wait.
	//
	// Wake sets a deadline that is over. So it has an effect only if the net.Conn below is known to read on after a
	// deadline: a socket of package net, with or without TLS, or a net.Conn whose method ReadsOn() bool returns true.
	// (A method NetConn() net.Conn leads to the net.Conn below another.)
	Wake()

	// Woken reports whether Wake has ever ended a wait of this connection. Only after that may ReadWhole wait, because a
	// wait that Wake cannot end would last until something comes.
	Woken() bool
}

// ErrWoken is the error of a Read that [Follower].Wake has ended. The connection goes on.
var ErrWoken = errors.New("conn: the read was woken")
