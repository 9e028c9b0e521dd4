package conn

import "errors"

// Follower is a [Transport] that two goroutines can read in turns, but not at the same time: one by
// Read or ReadBuffer, the other by ReadWhole. [WebSocket] is a Follower, except in a browser.
type Follower interface {
	Transport

	// ReadWhole waits for the next message. If it arrives as one plain frame of at most 64 KiB,
	// ReadWhole returns it, appended to buf[:0], and whole is true. more reports whether something
	// follows.
	//
	// If whole is false, call Read next: something else has arrived, the connection has ended, or
	// Wake was called. ReadWhole has consumed nothing then, but may have written to all of buf.
	ReadWhole(buf []byte) (m Message, more, whole bool)

	// Wake ends a wait, or else the next one: ReadWhole returns, and Read returns ErrWoken if it
	// waits between two messages, but continues inside a message. Wake may end one wait more than
	// it should. It does not wait, and is safe for concurrent use.
	//
	// Wake sets an expired deadline, so it works only if the net.Conn below, found by methods
	// NetConn() net.Conn, is known to be readable after one: a socket of package net, with or
	// without TLS, or a net.Conn whose method ReadsOn() bool returns true.
	Wake()

	// Woken reports whether Wake has ever ended a wait of this connection. Until then ReadWhole
	// must not wait, because Wake may be unable to end it.
	Woken() bool
}

// ErrWoken is the error of a Read that [Follower].Wake has ended. The connection stays open.
var ErrWoken = errors.New("conn: the read was woken")
