package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/command"
)

// serve answers the lines of all clients until ctx ends.
func serve(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("lines serve", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:7000", "listen on this `address`")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	if _, err := fmt.Fprintf(s.Out, "listening on %v\n", listener.Addr()); err != nil {
		return &command.OutputError{Err: err}
	}
	var clients sync.WaitGroup
	defer clients.Wait()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		nc, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		clients.Go(func() { answer(ctx, nc) })
	}
}

// answer answers the lines of one client.
func answer(ctx context.Context, nc net.Conn) {
	c, err := conn.NewFramed(nc, conn.Lines{}, &conn.FramedOptions{Limits: conn.Limits{ReadLimit: 4096}})
	if err != nil {
		panic(err) // the options are constants
	}
	defer c.CloseNow()
	defer context.AfterFunc(ctx, func() { c.CloseNow() })()
	var buf []byte
	for {
		m, err := c.Read(buf)
		if err != nil {
			return
		}
		if buf = m.Data; string(m.Data) == "PING" {
			m.Data = []byte("PONG")
		}
		if c.Write(m) != nil {
			return
		}
	}
}
