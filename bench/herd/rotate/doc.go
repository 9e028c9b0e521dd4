// Package rotate measures on real sockets what it costs to replace one session of a
// reconnect.Conn by another: how long the reader hears nothing, what memory two connections
// take, and what a layer costs the messages that it does not take.
//
// The server is a process of its own on loopback: this program, started again with a hidden
// argument, so a main package that uses it calls [IsServer] first. It never outlives the
// process that started it.
package rotate
