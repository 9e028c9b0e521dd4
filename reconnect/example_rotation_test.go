package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// The server ends each connection after an hour, and moves the stream to the newest connection at once. So a
// session is replaced before that, and with OverlapMix the reader gets the messages of the next session
// although the old one lives still. After the seam the old session is gone.
func ExampleRotation() {
	servers := make(chan *conntest.Fake, 2)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { // in place of a *dialer.WebSocket
		client, server := conntest.Pair(nil)
		servers <- server
		return client, nil
	}), &reconnect.Options{Rotate: reconnect.Rotation{
		After:   55 * time.Minute,
		Overlap: reconnect.OverlapMix,
		Drain:   20 * time.Millisecond,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	old := <-servers
	old.Write(conn.TextMessage("one"))
	for {
		m, err := c.Read(context.Background(), nil)
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			fmt.Println("session", seam.Session, "is over, planned:", seam.Planned)
			break
		} else if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%d: %s\n", m.Session, m.Data)
		if m.Session == 1 {
			c.Rotate(1, reconnect.Advice{}) // here, because After is long
			newest := <-servers
			newest.Write(conn.TextMessage("two"))
		}
	}
	c.Close()
	<-c.Done()
	// Output:
	// 1: one
	// 2: two
	// session 1 is over, planned: true
}
