package heartbeat_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

// The server sends a heartbeat, which is answered, and a message, which is read. A program has a
// *dialer.WebSocket in place of this dialer.
func ExampleDialer() {
	client, server := conntest.Pair(nil)
	d := &heartbeat.Dialer{
		Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return client, nil }),
		Answer: func(m conn.Message) (answer conn.Message, ok bool) {
			return conn.TextMessage(`{"type":"pong"}`), string(m.Data) == `{"type":"ping"}`
		},
		Every: 25 * time.Second,
	}
	c, err := reconnect.New(d, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = server.Write(conn.TextMessage(`{"type":"ping"}`))
	_ = server.Write(conn.TextMessage("hello"))
	m, err := c.Read(context.Background(), nil)
	fmt.Printf("read %s %v\n", m.Data, err)
	answer, err := server.Read(nil)
	fmt.Printf("the server has got %s %v\n", answer.Data, err)
	c.Close()
	<-c.Done()
	// Output:
	// read hello <nil>
	// the server has got {"type":"pong"} <nil>
}
