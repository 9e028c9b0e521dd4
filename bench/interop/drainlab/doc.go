// Command drainlab measures on real sockets what clients see of a server that is replaced by its
// next generation: a real haproxy, two real servers, and real Conns that are connected to the
// first when it gets SIGTERM.
//
// A way is how the first server gets rid of its clients: see ways. The servers are made with
// gorilla/websocket, each in a process of its own on loopback: this program, started again with a
// hidden argument. None outlives the process that started it.
//
// Each client sends numbered messages, and the servers note which have come. Each client gets
// numbered messages, and asks on each new connection for those after the last one that it has.
package main
