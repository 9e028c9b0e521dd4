// Package rotate has benchmarks of what it costs to replace one session of a reconnect.Conn by
// another: how long the reader hears nothing, what memory two connections take, and what a layer
// costs the messages that it does not take.
package rotate
