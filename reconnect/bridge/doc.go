// Package bridge gives a reader of numbered streams the messages that were missed while there was no
// connection. It reads from a reconnect.Conn. The protocol must number its messages, or have snapshots.
//
// A [Bridge] holds the live messages of a stream while it fetches the missed ones, until the two meet.
// The reader gets both in order, each once.
//
// A [Cursor] is for a reader that needs no Bridge. It says whether a number is the next, was seen, comes
// after a gap, or belongs to another epoch.
package bridge
