package dialer_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
)

func ExampleFramed() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		_, _ = io.Copy(nc, nc) // until the client has closed its direction
	}()

	d := &dialer.Framed{
		Address:        l.Addr().String(),
		Framer:         conn.Lines{Limit: 4096},
		ConnectTimeout: 5 * time.Second,
		Conn:           conn.FramedOptions{Type: conn.Text},
	}
	c, err := d.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	_ = c.Write(conn.Message{Data: []byte("hello")})
	m, err := c.Read(nil)
	fmt.Println(string(m.Data), err)
	fmt.Println(c.Close(context.Background(), 0, ""))
	// Output:
	// hello <nil>
	// <nil>
}

// Several endpoints over TLS, asked in a shuffled order until one answers.
func ExampleFramed_tls() {
	d := &dialer.Framed{
		Addresses: []string{"a.example:6697", "b.example:6697"},
		Framer:    conn.Lines{Limit: 510, CRLF: true},
		TLS:       &tls.Config{}, // the defaults
		DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, fmt.Errorf("%s is not of this world", addr[:1])
		},
	}
	fmt.Println(d.Validate(), d.Host())
	_, err := d.Dial(context.Background())
	fmt.Println(len(err.(*dialer.Error).Endpoints))
	// Output:
	// <nil> a.example:6697,b.example:6697
	// 2
}
