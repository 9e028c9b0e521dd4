// Package link has one connection of a Conn, from its dial to its loss: who reads it, who writes it,
// how many messages may be written, and why it ended. It knows nothing of sessions but a number,
// and nothing of the Conn but its [Life].
package link
