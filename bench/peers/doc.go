// Command peers measures redial beside what else keeps a connection, or does not: one
// table of rows and peers, made by one command ("go run ." in this folder).
//
// A peer is one way to use one library. Its adapter is all that a user of that library
// would write, in one file of at most 60 lines. What is measured is the same for all:
//
//   - A server is a process of its own, and so is each client whose CPU time or memory is
//     measured. Both are this program, which starts itself with a hidden argument, and
//     both end when this process does.
//   - For WebSocket and TCP the server writes prepared frames in blocks of 64 KiB, so that it is
//     the client that is busy; a column says how much of the time. The brokers of NATS and MQTT
//     (nats-server, mochi-mqtt) are in the server process, and make frames as they always do.
//   - In each round the peers are measured one after the other in a new random order. A
//     ratio is that of two measurements of the same round. The first peer is the base of
//     all ratios, and is measured twice: the ratio of the two is the noise.
//   - CPU time is user and system time of the client's process; an allocation is one of
//     its heap. Memory is what is alive on its heap, and its stacks; resident memory is what
//     the system counts for the process, without the pages of the heap that are free.
//   - Where a row is about waiting (a server that is killed or silent, a feed with resets)
//     the clients wait side by side, and each round has a client of each peer.
package main
