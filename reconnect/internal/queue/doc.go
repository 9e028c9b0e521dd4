// Package queue has the queue of messages that wait to be sent: its order, its
// bounds, its keys and what expires, without a lock, a clock or a goroutine. It is
// told the time, so that tests and a fuzz target can say what time it is.
package queue
