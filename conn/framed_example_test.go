package conn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/redial-go/redial/conn"
)

// Most programs have package dialer do this.
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

func ExampleLines() {
	line, err := conn.Lines{CRLF: true}.AppendFrame(nil, []byte("NICK redial"))
	fmt.Printf("%q %v\n", line, err)
	_, err = conn.Lines{}.AppendFrame(nil, []byte("one\ntwo"))
	fmt.Println(err)
	// Output:
	// "NICK redial\r\n" <nil>
	// bad message: a line feed inside a line
}

func ExampleLengthPrefix() {
	for _, p := range []conn.LengthPrefix{{}, {Size: 2, LittleEndian: true}, {Varint: true}} {
		frame, err := p.AppendFrame(nil, []byte("hi"))
		fmt.Printf("%q %v\n", frame, err)
	}
	// Output:
	// "\x00\x00\x00\x02hi" <nil>
	// "\x02\x00hi" <nil>
	// "\x02hi" <nil>
}

// Netstrings is a Framer of one's own: "5:hello,".
// See https://cr.yp.to/proto/netstrings.txt.
type Netstrings struct{}

func (Netstrings) AppendFrame(dst, message []byte) ([]byte, error) {
	dst = strconv.AppendInt(dst, int64(len(message)), 10)
	dst = append(dst, ':')
	dst = append(dst, message...)
	return append(dst, ','), nil
}

func (Netstrings) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	digits, err := r.ReadSlice(':') // at most what r's buffer holds
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(string(digits[:len(digits)-1]), 10, 31)
	if err != nil {
		return nil, errors.New("not the length of a netstring")
	}
	if n > uint64(limit) {
		return nil, &conn.TooBigError{Limit: int64(limit)}
	}
	message, err := conn.ReadBody(r, buf[:0], int(n))
	if err != nil {
		return nil, err
	}
	switch end, err := r.ReadByte(); {
	case err != nil:
		return nil, err
	case end != ',':
		return nil, errors.New("no comma after a netstring")
	}
	return message, nil
}

func ExampleFramer() {
	stream := bufio.NewReader(strings.NewReader("5:hello,0:,3:bad;"))
	for range 3 {
		m, err := Netstrings{}.ReadFrame(stream, nil, 100)
		fmt.Printf("%q %v\n", m, err)
	}
	// Output:
	// "hello" <nil>
	// "" <nil>
	// "" no comma after a netstring
}
