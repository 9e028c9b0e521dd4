// Package drain simulates, in virtual time, how a server gets rid of its clients before it ends,
// and what that does to the servers that they come back to.
//
//	for _, w := range drain.Ways() {
//		r, err := drain.Run(ctx, drain.Options{Clients: 10_000, Window: time.Minute}, w)
//		fmt.Println(w.Name, r.Peak, r.Away)
//	}
//
// A [Way] says when the server closes each connection, or when it warns the client: all at once,
// in batches, by the rules of servers that are in use, or each at a time of its own as package
// reconnect/drain does. The clients are those of package fleet: they wait and dial by the
// library's own code, or by the rules of other clients, and the servers that they come back to
// take so many handshakes per second, one after the other.
//
// The model is ideal: the servers that take the clients have no other work, and no close is slow. The
// same Options give the same Result on every machine. The tests hold it to 10,000 real Conns.
package drain
