// Package drain closes the connections of a server that is about to end, one after another, so
// that its clients do not all come to the other servers at once.
//
// # Usage
//
//	group, err := drain.New(nil)
//	if err != nil {
//		return err // an option is wrong
//	}
//	mux.Handle("/ready", group.ReadyHandler()) // for the load balancer
//	mux.Handle("/ws", group.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
//		c, err := websocket.Accept(w, r, nil)
//		if err != nil {
//			return
//		}
//		defer c.CloseNow()
//		member := group.Add(func(code int, reason string) error {
//			return c.Close(websocket.StatusCode(code), reason)
//		})
//		defer member.Remove()
//		talk(c) // your protocol, until the connection ends
//	})))
//
//	// at SIGTERM:
//	err = group.Drain(ctx)
//
// A [Group] knows nothing of WebSockets: a member is a function that closes a connection. So the server
// may use any library and any protocol, and the clients may be of any kind. The package uses the
// standard library only.
//
// # What Drain does
//
//  1. The lead ([Options].Lead, 15 s): the server goes on as before, but [Group.Ready] is false, so
//     that load balancers send new clients elsewhere.
//  2. The window ([Options].Window, 60 s): each connection is closed at a different moment, with the
//     code 1012 (service restart). [Group.Handler] answers new requests with 503, and a Retry-After
//     that is drawn for each client.
//  3. Drain returns when the last connection has gone and the handlers have returned. If its
//     context ends before, the connections that are left are closed without waiting for their
//     moments, as many at a time as Closers allows, and Drain returns after CloseTimeout (10 s)
//     at the latest, even if some were never closed: see [Group.Drain].
//
// The Window must be long enough for the servers that get the clients: 10,000 clients and servers
// that take 500 handshakes a second need 20 s at least.
//
// # The draw
//
// The window is cut into as many slots as there are connections. Each slot has one connection, at a
// random moment of the slot, and the order of the connections is random. Of 10,000 closes over 60 s, 17
// fall in an average tenth of a second and 18 in the busiest; with independent draws from the whole
// window the busiest would have about 31. Because the moment in a slot is random, two servers that drain
// at one time are not in step.
//
// A connection that is added during the window gets a random moment in the rest of the window.
//
// # Warnings, and clients that do not lose anything
//
// If the protocol has a message that warns a client, use [Group.AddNotice]: the notice is called at the
// drawn moment, and the connection is closed [Options].Warn (15 s) later, if the client has not left
// by then. A client of package reconnect reads the time of the close from the message and calls
// Conn.Rotate with this time as Advice.By: the client opens its next session before it leaves the
// present one, at a random moment before that time. If all clients do so, Warn may be as long as the
// Window: all notices go out at the beginning of the window, and the dials are as even as with a
// shorter Warn.
//
// Without such a message a client gets a close frame. The code 1012 says that this is no failure, and
// the [Advice] says when and where to come back. A client of package reconnect follows the URL of the
// Advice to the same scheme, host and port only, unless its user has allowed more: see
// dialer.WebSocket.FollowHint.
//
// # Renewal
//
// With [Options].MaxAge a connection is closed at that age, plus or minus a tenth. So a new server behind
// a load balancer gets its share of the clients over time, and a token that was checked at the
// beginning is checked again. A member costs 58 bytes besides its functions, and no goroutine and no
// timer.
//
// # Closers
//
// Each closer runs in a new goroutine; [Options].Closers of them (256) run at a time. A server whose
// peers are quick needs far fewer. But the close of many libraries waits for the peer's answer: with
// 10,000 connections, a window of 60 s and 200 ms for an answer, 33 closers run at any time.
//
//   - A closer that takes longer than a second does not count any more, so that a peer which is gone
//     delays no other connection.
//   - A closer that takes longer than CloseTimeout is hung: Drain does not wait for it, and [Stats]
//     and the [Error] of Drain report it.
//
// The Group counts the errors of closers and drops them. To see an error, or how long a close took, look
// in the function that you give to Add.
//
// The closers of some libraries:
//
//	coder/websocket  c.Close(websocket.StatusCode(code), reason) // waits for the answer, up to 5 s
//	lxzan/gws        c.WriteClose(uint16(code), []byte(reason))  // sends the frame and closes
//	gorilla          c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
//	                 c.SetReadDeadline(deadline) // then the reader ends with the answer, or at the deadline
//	net.Conn         c.Close()
//
// # With net/http
//
// [net/http.Server.Shutdown] closes the listeners and waits for requests. It does not wait for hijacked
// connections, such as WebSockets, and [net/http.Server.Close] does not end them. So drain first, while
// the server still answers readiness checks and refuses late clients, and then shut down:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	<-ctx.Done()
//	stop() // a second signal ends the program at once
//	limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
//	defer cancel()
//	return errors.Join(group.Drain(limited), server.Shutdown(limited))
//
// examples/drain in the repository is a whole server.
//
// Kubernetes sends SIGTERM when it begins to take the pod out of its services, and each proxy learns of
// that some seconds later. The Lead covers these seconds, so no preStop hook needs to sleep. Set
// terminationGracePeriodSeconds to the limit of the context plus some seconds (110 here; the default is
// 30), because Kubernetes kills the process then. The drain time of a proxy or a load balancer before
// the server must be no shorter than Lead and Window together, or the proxy cuts first.
package drain
