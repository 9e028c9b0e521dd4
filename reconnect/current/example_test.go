package current_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/current"
)

// The connection is lost once. Both messages are sent, each by the client of its time.
func Example() {
	var clients current.Of[*client]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients.End(reconnect.Run(ctx, func(context.Context) (*client, error) {
			here, there := net.Pipe()
			go func() { // ends with the connection
				buf := make([]byte, 100)
				n, _ := there.Read(buf)
				fmt.Printf("%s\n", buf[:n])
				fmt.Fprint(there, "ok")
				there.Close()
			}()
			return &client{Conn: here}, nil
		}, func(ctx context.Context, c *client, s *reconnect.Session) error {
			s.Ready()
			ctx, remove := clients.Set(ctx, c)
			defer remove()
			<-ctx.Done() // this library notices nothing by itself
			return context.Cause(ctx)
		}, &reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}))
	}()

	for _, text := range []string{"hello", "again"} {
		for {
			c, err := clients.Wait(ctx)
			if err != nil {
				fmt.Println(err)
				return
			}
			if _, err = c.publish(text); err == nil {
				break
			}
			clients.Fail(c, err)
		}
	}
	cancel()
	<-done
	_, err := clients.Wait(context.Background())
	fmt.Println(err)
	// Output:
	// hello
	// again
	// context canceled
}
