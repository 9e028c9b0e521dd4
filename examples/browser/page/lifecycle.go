//go:build js

package main

import (
	"errors"
	"syscall/js"

	"github.com/redial-go/redial/examples/books"
)

// follows tells the connection what the browser knows about the page and the network. A page
// that was hidden had slow timers, and one that was frozen had none. So when it comes back, the
// peer is asked at once whether it is there (Check), and a wait for the next dial is cut short
// (Kick). Each call does nothing where it does not apply.
func follows(c *books.Client) {
	back := func() {
		c.Feed.Check()
		c.Feed.Kick()
	}
	document := js.Global().Get("document")
	on(js.Global(), "online", func(js.Value) { note("good", "the browser is online"); back() })
	on(js.Global(), "offline", func(js.Value) {
		note("bad", "the browser is offline")
		c.Feed.Check() // a connection over loopback, or another network, may be well
	})
	on(document, "visibilitychange", func(js.Value) {
		state := document.Get("visibilityState").String()
		if note("", "the page is %s", state); state == "visible" {
			back()
		}
	})
	on(document, "freeze", func(js.Value) { note("", "the page is frozen") })
	on(document, "resume", func(js.Value) { note("", "the page goes on"); back() })
	on(js.Global(), "pagehide", func(e js.Value) {
		if e.Get("persisted").Bool() { // it may go into the back/forward cache, with a connection that nobody reads
			note("", "the page is left")
			c.Feed.Redial(c.Feed.Status().Session, errLeft)
		}
	})
	on(js.Global(), "pageshow", func(e js.Value) {
		if e.Get("persisted").Bool() { // from the back/forward cache
			note("", "the page comes out of the cache")
			back()
		}
	})
}

// errLeft is why the session of a page ends that the user leaves.
var errLeft = errors.New("the user has left the page")

// on calls f for each event of a name, for as long as the page lives. f must not wait.
func on(target js.Value, name string, f func(event js.Value)) {
	target.Call("addEventListener", name, js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args[0])
		return nil
	}))
}
