// Package drain closes the connections of a server that is about to end, one after another, so
// that its clients do not all come to the other servers at one instant.
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
// A [Group] knows nothing of WebSockets. A member is a function that closes a connection, so
// that any library will do, and any protocol. The clients may be of any kind too. The package
// uses the standard library only.
//
// # What Drain does
//
//  1. For [Options].Lead (15 s) the server goes on as before, but [Group.Ready] is false. In
//     this time the load balancers notice, and send new clients elsewhere.
//  2. Then the window begins ([Options].Window, 60 s). Each connection is closed with 1012
//     (service restart) at a moment of its own. [Group.Handler] answers 503 with a Retry-After
//     that is drawn for each client.
//  3. Drain returns when the last connection has gone and the handlers have returned. When its
//     context ends, the rest is closed at once, and Drain returns after CloseTimeout (10 s) at
//     the latest.
//
// The Window must be long enough for the servers that get the clients: with 10,000 clients, and
// others that can take 500 handshakes a second, 20 s at least.
//
// # The draw
//
// The window is cut into as many slots as there are connections. Each connection gets a random
// moment in a slot of its own, and the order of the connections is random. Independent draws
// from the whole window would be even on average only. Of 10,000 closes over 60 s, 17 fall in
// an average tenth of a second. In the busiest one there are 18 with slots, and about 31 with
// independent draws. Two servers that drain at one time are not in step, because the moment in
// a slot is random: their closes coincide no more often than chance has it, and the busiest
// tenth of a second of both together has twice 18 at most. (A client that waits for a random
// time before it dials, as those of package reconnect do, blurs this again: the dials of many
// such clients come as independent draws would.)
//
// A connection that is added during the window gets a moment of what is left of it.
//
// # Warnings, and clients that do not lose anything
//
// Where the protocol has a message for it, use [Group.AddNotice]. Its function is called at the
// drawn moment, and the close follows [Options].Warn (15 s) later, if the client has not left
// by then. A client of package reconnect reads the time of the close from the notice, and calls
// Conn.Rotate with it as Advice.By: it opens its next session before it leaves the present one,
// at a moment of its own. So if all clients are of that kind, the Warn may be as long as the
// Window: all notices go out at its beginning, and the dials are as even as with a shorter Warn.
//
// Without such a message a client gets a close frame. The code 1012 and the [Advice] tell it that
// this was no failure, and when and where to come back. A URL in it is followed by clients
// of package reconnect within the same scheme, host and port, unless their user has allowed more:
// see dialer.WebSocket.FollowHint.
//
// # Renewal
//
// With [Options].MaxAge connections are closed at that age, give or take a tenth. Then a new
// server behind a load balancer gets its share of the clients by and by, and a token that was
// checked at the beginning is checked again. Connections that all began at one moment are
// renewed in a wave that becomes flatter with each renewal. A member costs 58 bytes besides
// its functions, and no goroutine and no timer.
//
// # Closers
//
// A closer runs in a goroutine of its own, of which [Options].Closers are counted at a time
// (256). That is far more than a server with quick peers needs. But the close of many libraries
// waits for the peer's answer: with 10,000 connections, a window of 60 s and 200 ms for an
// answer, 33 run at any time. One that takes longer than a second is not counted any more, so
// that peers which are gone delay nobody. One that takes longer than CloseTimeout is hung:
// nobody waits for it, and [Stats] and the [Error] of Drain report it.
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
// [net/http.Server.Shutdown] closes the listeners and waits for requests, but not for
// connections that were hijacked, which WebSockets are; [net/http.Server.Close] does not end
// them either. So drain first, while the server still answers readiness checks and refuses late
// clients, and shut down after that:
//
//	func run() error {
//		group, err := drain.New(nil)
//		if err != nil {
//			return err
//		}
//		mux := http.NewServeMux()
//		mux.Handle("/ready", group.ReadyHandler())
//		mux.Handle("/ws", group.Handler(http.HandlerFunc(serve))) // which calls group.Add
//		server := &http.Server{Addr: ":8080", Handler: mux}
//		failed := make(chan error, 1)
//		go func() { failed <- server.ListenAndServe() }()
//
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		select {
//		case err := <-failed:
//			return err
//		case <-ctx.Done():
//			stop() // a second signal ends the program at once
//		}
//		limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
//		defer cancel()
//		err = errors.Join(group.Drain(limited), server.Shutdown(limited))
//		<-failed
//		return err
//	}
//
// Kubernetes sends SIGTERM at the same time as it begins to take the pod out of its services,
// which takes a while to reach each proxy. The Lead is for that, so there is no need for a
// preStop hook that sleeps. Set terminationGracePeriodSeconds to the time of the context and
// some seconds more (110 here, in the place of 30): after it the process is killed. A proxy or
// a load balancer before the server needs a drain time that is no shorter than Lead and Window
// together, or it cuts first.
//
// # Where others fail, and what this does
//
//	nats-server, lame duck    closes in equal steps over 2 min, each in a random part of its step, after a
//	                          grace of 10 s; each client gets a notice. For NATS only. Here: for any server.
//	Phoenix, PoolDrainer      closes batches of 10,000 every 2 s: each batch is a herd of its own.
//	                          Here: one close at a time, 18 in the busiest tenth of a second.
//	centrifuge                closes all at once, 128 at a time; clients wait 200 to 400 ms. Here: a window.
//	HAProxy                   close-spread-time spreads idle connections of HTTP; a WebSocket stays until
//	                          hard-stop-after cuts all that are left. Here: each has its moment before that.
//	Envoy, AWS, Cloudflare    wait for a drain time, and then cut all that are left at once.
//	net/http                  Shutdown leaves hijacked connections to the program, and they end with the
//	                          process. Here: Drain closes them, and waits for their handlers.
//	a loop over a map         waits 5 s for each peer that is gone, under a lock. Here: nobody waits for
//	                          another, and what hangs is reported.
package drain

// The files:
//
//	options, stats  what goes in, and what comes out
//	group, member   the connections, and what is due next
//	drain           the lead, the window, the end
//	call            a closer or a notice that runs
//	schedule        a heap of what is due
//	handler         readiness and refusals, over HTTP
//	advice          the text of the close frame
