// Package bridge makes up for what was missed while there was no connection. It uses package
// reconnect, and needs a protocol that numbers its messages, or has snapshots.
//
// # Cursor: what you have received
//
// A Cursor says up to where everything was received. It tells a message that is next from one that
// was seen, from a gap, and from a new epoch.
//
// # Bridge: what you have missed
//
// A Bridge holds the live messages back while it fetches those that were missed, until the two meet.
// The reader gets both in order, each once.
package bridge
