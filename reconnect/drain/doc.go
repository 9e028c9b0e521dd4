// Package drain closes the connections of a server that is about to stop one after another, so that its clients
// do not all move to the other servers at the same time.
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
// A member of a [Group] is a function that closes a connection, so the server may use any WebSocket library or
// other protocol.
//
// # What Drain does
//
//  1. The lead ([Options].Lead): the server continues as before, but [Group.Ready] is false, so that load
//     balancers send new clients elsewhere.
//  2. The window ([Options].Window): each connection is closed at a different moment, with the code 1012
//     (service restart). [Group.Handler] answers new requests with 503.
//  3. Drain returns when the last connection is gone and the handlers have returned.
//
// # The draw
//
// The window is divided into as many slots as there are connections. Each slot has one connection, in random
// order, at a random moment of the slot, so that the load is even, and two servers that drain at the same time
// are not in step.
//
// # Warnings, and clients that do not lose anything
//
// If the protocol has a message that warns a client, use [Group.AddNotice]: the notice is called at the drawn
// moment, and the connection is closed [Options].Warn later, if the client has not left by then. A client of
// package reconnect calls Conn.Rotate with the announced time as Advice.By: it opens its next session before it
// leaves the current one, at a random moment before that time. If all clients do so, Warn may be as long as the
// Window.
//
// Other clients get a close frame, whose code 1012 says that this is no failure, and whose reason is
// [Options].Advice, if any.
//
// # Renewal
//
// With [Options].MaxAge old connections are closed, so that a new server behind a load balancer gets its share
// of the clients over time, and a token that was checked at the beginning is checked again. A member costs no
// goroutine or timer.
//
// # Closers
//
// The Group only counts the errors of closers. To see one, or how long a close took, use the function that you
// pass to Add.
//
// The closers of some libraries:
//
//	coder/websocket  c.Close(websocket.StatusCode(code), reason) // waits for the response, up to 5 s
//	lxzan/gws        c.WriteClose(uint16(code), []byte(reason))  // sends the frame and closes
//	gorilla          c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
//	                 c.SetReadDeadline(deadline) // then the reader ends with the response, or at the deadline
//	net.Conn         c.Close()
//
// # With net/http
//
// [net/http.Server.Shutdown] and [net/http.Server.Close] ignore hijacked connections, such as WebSockets. So
// drain first, while the server still answers readiness checks and rejects late clients, and then shut down:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	<-ctx.Done()
//	stop() // a second signal ends the program immediately
//	limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
//	defer cancel()
//	return errors.Join(group.Drain(limited), server.Shutdown(limited))
//
// On Kubernetes the Lead covers the seconds from SIGTERM until each proxy has noticed, so no preStop hook needs
// to sleep. Set terminationGracePeriodSeconds to the timeout of the context plus some seconds (110 here; the
// default is 30). The drain time of a proxy or load balancer in front of the server must be at least Lead plus
// Window.
package drain
