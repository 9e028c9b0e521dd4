//go:build js

// Page is the program in the page of examples/browser. It follows a venue by a connection that
// is kept open, and shows the books, the state of the connection, and what happens to it.
//
// client.go is the part to copy: the login by a first message, because a page cannot set a
// header; the probe by a message, because a page has no ping; and lifecycle.go, which tells the
// connection what the browser knows. Beside it view.go draws, and journal.go keeps what has come,
// for the console of the browser and for tests.
package main

import (
	"context"
	"net/url"
	"syscall/js"
	"time"
)

func main() {
	location := js.Global().Get("location")
	query, _ := url.ParseQuery(trimmed(location.Get("search").String()))
	var o options // those of the address, such as ?silence=3s&wait=1h, for trying things out
	o.silence, _ = time.ParseDuration(query.Get("silence"))
	o.wait, _ = time.ParseDuration(query.Get("wait"))

	j, v := new(journal), newView()
	c, err := follow("ws"+location.Get("origin").String()[len("http"):], o, v.note)
	if err != nil {
		v.note("bad", err.Error())
		return
	}
	follows(c, v)
	export(c, j)
	v.open(c)
	err = c.read(context.Background(), func(e *event) {
		j.add(e)
		v.seen(e)
	})
	v.note("bad", "it has ended: "+err.Error())
	select {} // the page still shows why
}

// trimmed returns the query without its question mark.
func trimmed(search string) string {
	if search != "" {
		return search[1:]
	}
	return ""
}
