// Package storm reproduces the client and server of Andrey Smirnov's "Exponential backoff
// vs. simple backoff" (github.com/smira/exponential-backoff) in virtual time: a server
// whose requests take the longer the more of them there are, and clients that give up
// after two seconds and try again. The server is stopped for a while, as by SIGSTOP, and
// goes on; then the requests that have piled up make each other slow, and it may never
// recover.
//
// The server does no work and never notices that a client has left. While it is
// stopped the kernel goes on accepting connections for it, up to the backlog;
// those beyond it are lost. When it goes on, all requests of the backlog begin at
// that instant.
//
// Where this differs from the originals:
//
//   - The original's delay overflows beyond 7,792 concurrent requests, is negative from
//     there on, and so lets all of them end at once. Here it stays at the longest
//     time there is.
//   - A poll comes exactly when it is due, in a real program always a little later.
//     So a request ends at the first poll where its age has reached the delay,
//     not only where it exceeds it.
//   - The network takes no time, as on loopback.
package storm
