//go:build !js

// Voice holds a call over connections that the server ends every ten seconds.
//
//	go run ./examples/voice
//	go run ./examples/voice -rotate=false
//	go run ./examples/voice -for 30s -life 5s -warn 1s
//
// Voice services end a connection after some minutes, whatever goes on. Shortly before they
// send a warning, and a handle by which another connection resumes the call. Here both ends
// are in this process, on loopback, and the minutes are seconds. Each end sends 50 numbered
// frames per second and counts the frames of the other end.
//
// The caller replaces each session when the warning comes: [reconnect.Conn.Rotate]. So every
// frame arrives once. With -rotate=false the caller waits until the service ends the connection,
// and dials then: frames are lost. The exit code is 0 if every frame came once.
//
// caller.go is the part to copy. The service is in service.go, frame.go has the messages, and
// call.go holds a call and counts its frames.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect"
)

func main() { os.Exit(command.Main("voice", run)) }

func run(ctx context.Context, args []string, s command.Streams) error {
	p := &plan{overlap: reconnect.OverlapHold} // or Mix: see the test for what that changes
	flags := flag.NewFlagSet("voice", flag.ContinueOnError)
	flags.DurationVar(&p.length, "for", time.Minute, "hold the call for this `long`")
	flags.DurationVar(&p.life, "life", 10*time.Second, "the service ends each connection after this `long`")
	flags.DurationVar(&p.warn, "warn", 2*time.Second, "it says so this `long` before")
	flags.BoolVar(&p.rotate, "rotate", true, "replace a session when the warning comes; if not, redial when the service has ended it")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return &command.UsageError{Err: err}
	}
	p.trace = reconnect.Log(slog.New(slog.NewTextHandler(s.Out, nil)))
	r, err := local(ctx, p)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "caller to service: %v\nservice to caller: %v\n", r.toService, r.toCaller)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return r.err
}

// local holds the call with a service on a loopback port.
func local(ctx context.Context, p *plan) (*result, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s := newService(p.life, p.warn)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			defer ws.CloseNow()
			s.serve(ws)
		}
	})}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) }) // has no other error than that it was closed
	defer serving.Wait()
	defer server.Close()
	defer s.close()
	return p.hold(ctx, &dialer.WebSocket{URL: "ws://" + listener.Addr().String()}, s)
}
