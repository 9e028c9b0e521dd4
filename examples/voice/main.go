// Voice holds a call over connections that the server ends every ten seconds.
//
//	go run ./examples/voice
//	go run ./examples/voice -rotate=false
//	go run ./examples/voice -for 30s -life 5s
//
// Voice services end a connection after some minutes, whatever goes on. Shortly before they
// send a warning, and a handle by which another connection resumes the call. Here both ends
// are in this process, on loopback, and the minutes are seconds. Each end sends 50 numbered
// frames per second and counts the frames of the other end.
//
// The caller replaces each session when the warning comes: [reconnect.Conn.Rotate]. So every
// frame arrives once, and the exit code is 0. With -rotate=false the caller waits until the service
// ends the connection, and dials then: frames are lost.
//
// caller.go is the part to copy. service.go has the service, message.go the messages, and tally.go
// counts the frames.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect"
)

func main() { os.Exit(command.Main("voice", command.Checked(run))) }

func run(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("voice", flag.ContinueOnError)
	command.About(flags, `Holds a call with a service on this machine, which ends each connection soon. Each side sends 50 frames
per second and counts the frames of the other side. The exit code is 0 if every frame has arrived once.
`)
	length := flags.Duration("for", time.Minute, "hold the call for this `time`")
	life := flags.Duration("life", 10*time.Second, "the service ends each connection after this `time`, and sends the warning when a fifth of it is left")
	rotate := flags.Bool("rotate", true, "replace a session when the warning comes; if not, redial when the service has ended it")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	if *length < every || *life < every {
		return &command.UsageError{Err: fmt.Errorf("-for and -life must be at least %v, which is a frame: they are %v and %v", every, *length, *life)}
	}
	service := newService(*life)
	server := httptest.NewServer(service)
	defer server.Close()
	defer service.close()
	c, err := newCaller(&dialer.WebSocket{URL: strings.Replace(server.URL, "http", "ws", 1)}, &service.frames, &reconnect.Options{
		Run: reconnect.RunOptions{Trace: reconnect.Log(slog.New(slog.NewTextHandler(s.Out, nil)))},
	})
	if err != nil {
		return err
	}
	c.rotate = *rotate
	err = c.call(ctx, *length)
	fmt.Fprintf(s.Out, "caller to service: %v\nservice to caller: %v\n", &c.frames.toService, &c.frames.toCaller)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err == nil && !c.frames.once():
		return errors.New("not every frame came once")
	}
	return err
}
