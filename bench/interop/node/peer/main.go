//go:build js

// Peer opens a conn.WebSocket in Node, ends it, and prints how many of its event handlers are left:
//
//	peer URL
//
// It waits for up to 2 s until the connection is open, and up to 5 s until the other side has
// answered the close frame.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall/js"
	"time"

	"github.com/redial-go/redial/conn"
)

// count makes a Set of the handlers of all WebSockets.
const count = `
globalThis.handlers = new Set();
const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
EventTarget.prototype.addEventListener = function (type, f, ...rest) {
	if (this instanceof WebSocket) handlers.add(f);
	return add.call(this, type, f, ...rest);
};
EventTarget.prototype.removeEventListener = function (type, f, ...rest) {
	if (this instanceof WebSocket) handlers.delete(f);
	return remove.call(this, type, f, ...rest);
};
`

func main() {
	if js.Global().Get("WebSocket").IsUndefined() {
		fmt.Println("there is no WebSocket")
		return
	}
	js.Global().Call("eval", count)
	handlers := js.Global().Get("handlers")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	ws, err := conn.OpenWebSocket(ctx, os.Args[1], nil, nil)
	if err != nil {
		fmt.Println("not open:", err)
	} else {
		fmt.Println("open, with handlers:", handlers.Get("size").Int())
		limit, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		fmt.Println("closed:", ws.Close(limit, 1000, ""))
	}
	fmt.Println("handlers left:", handlers.Get("size").Int())
	os.Exit(0) // Node would wait for a socket that is not open
}
