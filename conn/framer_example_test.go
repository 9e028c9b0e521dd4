package conn_test

import (
	"bufio"
	"errors"
	"fmt"
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
