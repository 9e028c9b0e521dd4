package conn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redial-go/redial/conn"
)

// NewFramed makes a message connection of any stream. In most programs package dialer does
// this.
func ExampleNewFramed() {
	nc, server := net.Pipe()
	go func() {
		_, _ = io.WriteString(server, "hello\nworld\n")
		server.Close()
	}()

	c, err := conn.NewFramed(nc, conn.Lines{Limit: 512}, &conn.FramedOptions{Type: conn.Text})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	var m conn.Message
	for err == nil {
		if m, err = c.Read(m.Data); err == nil {
			fmt.Printf("%s\n", m.Data)
		}
	}
	fmt.Println(err, errors.Is(err, io.EOF))
	// Output:
	// hello
	// world
	// read: the peer hung up: EOF true
}

// Close ends our direction of the stream, so that the peer gets all that was written, and
// waits until the peer has ended its own.
func ExampleFramed_Close() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		nc, _ := l.Accept()
		defer nc.Close()
		all, err := io.ReadAll(nc) // until the client has closed its direction
		fmt.Printf("%q %v\n", all, err)
	}()

	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	c, _ := conn.NewFramed(nc, conn.Lines{CRLF: true}, nil)
	_ = c.Write(conn.Message{Data: []byte("QUIT")})
	err = c.Close(context.Background(), 0, "")
	<-served
	fmt.Println(err)
	// Output:
	// "QUIT\r\n" <nil>
	// <nil>
}

// Lines ends each message with a line feed, so that a message cannot have one inside.
func ExampleLines() {
	line, err := conn.Lines{CRLF: true}.AppendFrame(nil, []byte("NICK redial"))
	fmt.Printf("%q %v\n", line, err)
	_, err = conn.Lines{}.AppendFrame(nil, []byte("one\ntwo"))
	fmt.Println(err)
	// Output:
	// "NICK redial\r\n" <nil>
	// bad message: a line feed inside a line
}

// LengthPrefix puts the length of a message before it, in four bytes by default.
func ExampleLengthPrefix() {
	for _, p := range []conn.LengthPrefix{{}, {Size: 2}, {Varint: true}} {
		frame, err := p.AppendFrame(nil, []byte("hi"))
		fmt.Printf("%q %v\n", frame, err)
	}
	// Output:
	// "\x00\x00\x00\x02hi" <nil>
	// "\x00\x02hi" <nil>
	// "\x02hi" <nil>
}
