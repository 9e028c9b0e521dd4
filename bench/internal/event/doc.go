// Package event has the queues of a discrete-event simulation. Virtual time is whole nanoseconds
// since the start of the run. Events of one instant come out in the order in which they were put
// in, so that a run is the same each time, on every machine.
//
// A [Queue] takes events in any order of time. A [FIFO] takes events that come in order, such as
// timeouts of one length, at a tenth of the cost. A simulation has one of these for each kind of
// event and asks all of them which is next. Neither is safe for concurrent use.
package event
