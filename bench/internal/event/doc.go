// Package event holds the queues that drive a discrete-event simulation:
// virtual time is whole nanoseconds since the start of the run, and what is
// due at one instant comes out in the order in which it was put in, so that a
// run is the same each time, on every machine.
//
// A [Queue] takes events in any order of time; a [FIFO] takes those that come
// in order, such as timeouts of one length, at a tenth of the cost. A
// simulation has one of these for each kind of event and asks all of them
// which is next: small queues of small values are faster than one queue of
// interfaces. Neither is safe for concurrent use.
package event
