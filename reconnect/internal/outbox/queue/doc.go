// Package queue keeps the messages that wait to be sent: in order, within bounds, by key
// and until they expire. It has no lock, no clock and no goroutine. The caller passes the
// time, so that tests and a fuzz target can choose it.
package queue
