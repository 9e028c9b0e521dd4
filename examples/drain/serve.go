package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect/drain"
)

// serve serves until ctx ends, which SIGTERM does, and then drains.
func serve(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("drain serve", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on this `address`")
	var o drain.Options
	flags.DurationVar(&o.Window, "window", time.Minute, "close the connections over this time: the number of clients, divided by the handshakes per second that the other servers can take")
	flags.DurationVar(&o.Lead, "lead", 15*time.Second, "be not ready for this time before that, so that the balancer notices")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Out, "listening on %v\n", listener.Addr()); err != nil {
		listener.Close()
		return &command.OutputError{Err: err}
	}
	return serveOn(ctx, context.Background(), listener, &o, s.Out)
}

// serveOn is serve on a listener, which it closes. The end of hurry cuts the drain short.
func serveOn(ctx, hurry context.Context, listener net.Listener, o *drain.Options, out io.Writer) error {
	defer listener.Close()
	group, err := drain.New(o)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", group.Handler(meet(group)))
	mux.Handle("/ready", group.ReadyHandler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // both ways below receive from ended
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	fmt.Fprintf(out, "draining %d connections over %v, after %v\n", group.Stats().Members, o.Window, o.Lead)
	limit, cancel := context.WithTimeout(hurry, o.Lead+o.Window+time.Minute)
	defer cancel()
	err = group.Drain(limit)
	server.Close() // the WebSockets have ended: this is for the rest
	<-ended
	if g := group.Stats(); err == nil {
		fmt.Fprintf(out, "drained: %d connections were closed, and %d had left before\n", g.Closed+g.Failed, g.Left)
	}
	return err
}

// meet returns a handler that answers each message of a client with the same message.
func meet(group *drain.Group) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // Accept has answered
		}
		defer ws.CloseNow()
		closer := func(code int, reason string) error { return ws.Close(websocket.StatusCode(code), reason) }
		var notice func(time.Time)
		if r.URL.Query().Has("notice") { // this client understands the message
			notice = func(by time.Time) {
				by = by.Add(-time.Until(by) / 5) // because the next connection takes a moment
				ws.Write(r.Context(), websocket.MessageText, []byte(by.Format(leaveBy)))
			}
		}
		defer group.AddNotice(closer, notice).Remove()
		for {
			kind, data, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
}

// leaveBy is the layout of the message that tells a client to leave.
const leaveBy = "leave by " + time.RFC3339Nano

// parseLeave returns the time in such a message.
func parseLeave(text string) (by time.Time, ok bool) {
	by, err := time.Parse(leaveBy, text)
	return by, err == nil
}
