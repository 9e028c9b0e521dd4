//go:build !js

// Voice holds a call over connections that the server ends every ten seconds.
//
//	go run ./examples/voice
//	go run ./examples/voice -rotate=false
//	go run ./examples/voice -for 30s -life 5s -warn 1s -overlap mix
//
// Voice services end a connection after some minutes, whatever goes on. Shortly before they
// send a warning, and a handle by which another connection resumes the call. Here both ends
// are in this process, on loopback, and the minutes are seconds. Each end sends 50 numbered
// frames per second and counts those of the other.
//
// The caller replaces each session when the warning comes: [reconnect.Conn.Rotate]. So every
// frame arrives once, without a pause. With -rotate=false it waits until the service ends the
// connection, and dials then: frames are lost or late. The exit code is 0 if every frame came
// once and no pause was more than 100 ms longer than the longest that the sender made itself,
// because the machine was busy.
//
// The caller is in caller.go: copy that. The service is in service.go, call.go and line.go;
// frame.go has what goes over the wire. plan.go runs a call, tally.go counts frames, and
// journal.go and report.go show what happened.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(command.Main("voice", run)) }

func run(ctx context.Context, args []string, s command.Streams) error {
	p, err := parse(args, s)
	if err != nil {
		return err
	}
	if err := local(ctx, p, s.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "\nok: every frame came once, and no pause was more than %v longer than the sender's own\n", longestPause)
	return err
}

// parse returns the call that args describe.
func parse(args []string, s command.Streams) (*plan, error) {
	p := &plan{}
	flags := flag.NewFlagSet("voice", flag.ContinueOnError)
	flags.DurationVar(&p.length, "for", time.Minute, "hold the call for this `long`")
	flags.DurationVar(&p.life, "life", 10*time.Second, "the service ends each connection after this `long`")
	flags.DurationVar(&p.warn, "warn", 2*time.Second, "it says so this `long` before")
	flags.BoolVar(&p.rotate, "rotate", true, "replace a session when the warning comes; if not, redial when the service has ended it")
	flags.TextVar(&p.overlap, "overlap", overlapHold, "how a session is replaced\nhold: the next one is heard when the last one has ended\nmix: both are heard as they come\nbreak: the last one is closed before the next is dialed, and what is on its way then is lost")
	if err := command.Parse(flags, args, s); err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, &command.UsageError{Err: err}
	}
	return p, nil
}

// local holds the call with a service on a loopback port, and prints what happened.
func local(ctx context.Context, p *plan, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("service: %w", err)
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
	r, err := p.hold(ctx, &dialer.WebSocket{URL: "ws://" + listener.Addr().String()}, s, out)
	if err != nil {
		return err
	}
	r.print(out)
	return r.verdict()
}
