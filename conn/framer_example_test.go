package conn_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redial-go/redial/conn"
)

// Netstrings is a Framer for netstrings, such as "5:hello,"
// (https://cr.yp.to/proto/netstrings.txt). It has no state, so that one value serves any
// number of connections.
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

// A Framer of your own is the whole of a protocol.
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

// STOMP is a Framer for frames of STOMP 1.2 without a content-length, which end with a null. Its Skip discards
// the newlines that both sides send to keep the connection alive.
type STOMP struct{}

func (STOMP) AppendFrame(dst, message []byte) ([]byte, error) {
	if bytes.IndexByte(message, 0) >= 0 {
		return nil, errors.New("stomp: frame has a null")
	}
	return append(append(dst, message...), 0), nil
}

func (STOMP) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		part, err := r.ReadSlice(0)
		if buf = append(buf, part...); len(buf) > limit {
			return nil, &conn.TooBigError{Limit: int64(limit)}
		}
		switch {
		case err == nil:
			return buf[:len(buf)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (STOMP) Skip(p []byte) int { return len(p) - len(bytes.TrimLeft(p, "\r\n")) }

// Bytes that keep a connection alive are no messages.
func ExampleSkipper() {
	client, server := net.Pipe()
	go server.Write([]byte("\n\nMESSAGE\n\nhello\x00\n"))
	c, err := conn.NewFramed(client, STOMP{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	m, err := c.Read(nil)
	fmt.Printf("%q %v\n", m.Data, err)
	// Output:
	// "MESSAGE\n\nhello" <nil>
}
