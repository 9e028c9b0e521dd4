//go:build js

// Peer makes a conn.WebSocket usable by the scripts of a test, as the object peer:
//
//	await peer.open("ws://127.0.0.1:1234/", {limit: 100, timeout: 1000, protocols: ["a"]})
//	await peer.read()                    // {text, size, error}
//	await peer.write("text")             // the error, or ""
//	await peer.close(1000, "reason")
//
// A promise is never rejected: an error is a word of those below, or a text.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall/js"
	"time"

	"github.com/redial-go/redial/conn"
)

// ws is the connection that was opened last. The scripts wait for one call before the next.
var ws *conn.WebSocket

func main() {
	js.Global().Set("peer", map[string]any{
		"open":   async(open),
		"read":   async(read),
		"write":  async(write),
		"raw":    async(raw),
		"flood":  async(flood),
		"close":  async(func(a []js.Value) any { return word(ws.Close(limited(20000), a[0].Int(), a[1].String())) }),
		"cut":    async(func([]js.Value) any { return word(ws.CloseNow()) }),
		"hungUp": async(func([]js.Value) any { return ws.HungUp() }),
		"chosen": async(func([]js.Value) any { return ws.Subprotocol() }),
	})
	select {}
}

// open opens a connection. The limits are those of the options.
func open(a []js.Value) any {
	options := a[1]
	number := func(name string) int64 {
		if v := options.Get(name); v.Type() == js.TypeNumber {
			return int64(v.Int())
		}
		return 0
	}
	var protocols []string
	if list := options.Get("protocols"); list.Type() == js.TypeObject {
		for i := range list.Length() {
			protocols = append(protocols, list.Index(i).String())
		}
	}
	ctx := context.Background()
	if ms := number("timeout"); ms > 0 {
		ctx = limited(ms)
	}
	limits := conn.Limits{ReadLimit: number("limit"), WriteTimeout: time.Duration(number("write")) * time.Millisecond}
	c, err := conn.OpenWebSocket(ctx, a[0].String(), protocols, &conn.WebSocketOptions{Limits: limits})
	if err == nil {
		ws = c
	}
	return word(err)
}

func read([]js.Value) any {
	m, err := ws.Read(nil)
	return map[string]any{"text": string(m.Data[:min(len(m.Data), 100)]), "size": len(m.Data), "error": word(err)}
}

func write(a []js.Value) any { return word(ws.Write(conn.TextMessage(a[0].String()))) }

// raw writes a Text that has the bytes of the list a[0].
func raw(a []js.Value) any {
	data := make([]byte, a[0].Length())
	for i := range data {
		data[i] = byte(a[0].Index(i).Int())
	}
	return word(ws.Write(conn.Message{Type: conn.Text, Data: data}))
}

// flood writes messages of 1 MiB until a write fails, a[0] at most, and returns how many were
// written and why it has ended.
func flood(a []js.Value) any {
	data, n := make([]byte, 1<<20), 0
	for ; n < a[0].Int(); n++ {
		if err := ws.Write(conn.BinaryMessage(data)); err != nil {
			return map[string]any{"written": n, "error": word(err)}
		}
	}
	return map[string]any{"written": n, "error": ""}
}

// word returns an error as a word.
func word(err error) string {
	prefix := ""
	if errors.Is(err, conn.ErrNotWritten) {
		prefix = "not written: "
	}
	if e, ok := errors.AsType[*conn.CloseError](err); ok {
		return prefix + fmt.Sprintf("code %d %s", e.Code, e.Reason)
	}
	if _, ok := errors.AsType[*conn.TooBigError](err); ok {
		return prefix + "too big"
	}
	if _, ok := errors.AsType[*conn.UnreadError](err); ok {
		return prefix + "unread"
	}
	if _, ok := errors.AsType[*conn.SlowMessageError](err); ok {
		return prefix + "slow"
	}
	for target, word := range map[error]string{
		net.ErrClosed: "closed", io.EOF: "hung up", context.DeadlineExceeded: "deadline", conn.ErrBadMessage: "bad message",
	} {
		if errors.Is(err, target) {
			return prefix + word
		}
	}
	if err != nil {
		return prefix + err.Error()
	}
	return ""
}

// limited returns a context that ends after so many milliseconds.
func limited(ms int64) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
	return ctx
}

// async makes a function that returns a promise of what f returns. f runs in a goroutine.
func async(f func([]js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		var executor js.Func
		executor = js.FuncOf(func(_ js.Value, promise []js.Value) any {
			go func() {
				defer executor.Release()
				promise[0].Invoke(f(args))
			}()
			return nil
		})
		return js.Global().Get("Promise").New(executor)
	})
}
