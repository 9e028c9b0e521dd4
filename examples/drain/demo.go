package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect/drain"
)

// demo replaces a server under its clients.
func demo(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("drain demo", flag.ContinueOnError)
	n := flags.Int("n", 200, "how many clients")
	var o drain.Options
	flags.DurationVar(&o.Window, "window", 5*time.Second, "the window of the first server")
	flags.DurationVar(&o.Lead, "lead", time.Second, "its lead")
	notice := flags.Bool("notice", false, "the server tells the clients before it closes their connections")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	if *n < 1 || *n > 4000 {
		return &command.UsageError{Err: fmt.Errorf("-n: want 1 to 4000 clients, not %d", *n)}
	}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	second.Close() // until all clients are connected to the first
	path := "/ws"
	if *notice {
		path = "/ws?notice"
	}
	all, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	terminated, sigterm := context.WithCancel(all)
	defer sigterm()
	ended := make(chan error, 2)
	running.Go(func() { ended <- serveOn(terminated, all, first, &o, s.Out) })
	clients, err := newCrowd(&dialer.WebSocket{
		URLs: []string{"ws://" + first.Addr().String() + path, "ws://" + second.Addr().String() + path},
	}, *n)
	if err != nil {
		return err
	}
	defer clients.end()
	if err := clients.awaitReady(ctx); err != nil {
		return err
	}
	if second, err = net.Listen("tcp", second.Addr().String()); err != nil {
		return err
	}
	running.Go(func() { ended <- serveOn(all, all, second, &drain.Options{Lead: -1, Window: -1}, io.Discard) })
	fmt.Fprintf(s.Out, "%d clients are connected\n", *n)
	err = clients.outlive(ctx, sigterm, ended)
	clients.report(s.Out)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
