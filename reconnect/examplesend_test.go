package reconnect_test

import (
	"context"
	"fmt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// What is sent before there is a session is kept, and Shutdown sends it before it
// ends. OnReceipt hears what became of each message.
func ExampleConn_Send() {
	chat, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		return conntest.NewFake(nil), nil // a dialer.WebSocket in real life
	}), &reconnect.Options{
		WhenDown: reconnect.WhenDownKeep,
		Outbox: reconnect.Outbox{OnReceipt: func(_ context.Context, r reconnect.Receipt) {
			fmt.Printf("%v: %v by session %d\n", r.Out.Tag, r.Fate, r.Session)
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, line := range []string{"hello", "anybody there?"} {
		out := reconnect.Out{Message: conn.Message{Type: conn.Text, Data: []byte(line)}, Tag: fmt.Sprint("line ", i+1)}
		if err := chat.Send(out); err != nil {
			fmt.Println("not accepted:", err)
		}
	}
	if err := chat.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// line 1: written by session 1
	// line 2: written by session 1
}
