// Command dial measures what a dialer.Dialer does to the clients that its documentation names, while their server is
// away and when it is back: how many tries reach the server, how many dials are in progress, and when calls succeed
// again. Each client is also measured with a net.Dialer, for comparison.
//
//	go run ./dial                                  # two minutes
//	go run ./dial -outage 3s -runs 1 -only net/http
//
// The clients are net/http, pgxpool, gRPC and go-redis as they are, and a loop that only dials. "-4" means at most four
// connections. All sockets are real, on loopback. Stand-ins for PostgreSQL and Redis respond to a ping and to little
// else.
package main

// The files:
//
//	main     the command, and its table
//	scene    one client, one way to dial, one outage
//	clients  the clients
//	servers  their servers
