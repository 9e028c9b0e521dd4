package netwatch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/netwatch"
)

var _ netwatch.Conn = (*reconnect.Conn)(nil)

// feed stands for a *reconnect.Conn.
type feed struct{ done chan struct{} }

func (f *feed) Kick()                 {} // dial now, if you wait
func (f *feed) Check()                {} // find out whether you are alive, if you are connected
func (f *feed) Done() <-chan struct{} { return f.done }

// A program that has all its connections from the start.
func ExampleAttach() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	prices, orders := &feed{}, &feed{}

	watcher, err := netwatch.Attach(ctx, prices, orders)
	if err != nil {
		fmt.Println("nobody watches the network:", err) // the connections find out later by themselves
		return
	}

	cancel() // the end of the program
	<-watcher.Done()
	fmt.Println("nothing is left")
	// Output: nothing is left
}

// A gateway has one Watcher, and attaches each connection that it opens.
func ExampleWatcher_Attach() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond) // so that the example ends
	defer cancel()
	watcher, err := netwatch.New(ctx, &netwatch.Options{
		Spread: 10 * time.Second, // for thousands of connections
		Ignore: func(name string) bool { return name == "wg0" || netwatch.Virtual(name) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watcher.Close()

	customer := &feed{done: make(chan struct{})}
	watcher.Attach(ctx, customer)
	close(customer.done) // which detaches it

	for change := range watcher.Changes(ctx) {
		fmt.Println(change) // such as: 192.0.2.7 (eth0) is gone, IPv4 route: none
	}
	fmt.Println("the watch is over")
	// Output: the watch is over
}
