//go:build !js

package main

import (
	"fmt"
	"strconv"

	"github.com/redial-go/redial/reconnect/debug"
)

// openPage opens a page at an address, which may be empty, and prints its URL. Before that it
// calls register, which may be nil. The caller closes the page.
func openPage(address string, print func(format string, args ...any), register func(*debug.Page)) (*debug.Page, error) {
	page, err := debug.New(nil)
	if err != nil {
		return nil, err
	}
	if register != nil {
		register(page)
	}
	if address == "" {
		return page, nil
	}
	url, err := page.Listen(address)
	if err != nil {
		page.Close()
		return nil, wrong("-page", err)
	}
	print("page: %s", url)
	return page, nil
}

// values returns what the page shows of the room: nothing if the room has ended.
func (r *room) values() []debug.Value {
	answer := make(chan []debug.Value, 1) // so that the room does not wait
	if !r.do(func() { answer <- r.count() }) {
		return nil
	}
	select {
	case values := <-answer:
		return values
	case <-r.ended:
		return nil
	}
}

// count returns the numbers of the room.
func (r *room) count() []debug.Value {
	slowest := 0
	for m := range r.members {
		slowest = max(slowest, len(m.queue))
	}
	return []debug.Value{
		{Name: "members", Text: strconv.Itoa(len(r.members))},
		{Name: "authors known", Text: strconv.Itoa(len(r.authors))},
		{Name: "lines said", Text: strconv.FormatUint(r.seq, 10)},
		{Name: "longest queue of a member", Text: fmt.Sprintf("%d of %d", slowest, queueLength)},
		{Name: "log", Text: map[bool]string{true: "kept in a file", false: "none"}[r.log != nil]},
	}
}

// register shows a client on a page.
func (c *client) register(page *debug.Page) {
	page.Register(c.name, c.conn, nil)
	page.RegisterValues("Lines", func() []debug.Value {
		s := c.ledger.Stats()
		return []debug.Value{
			{Name: "typed", Text: fmt.Sprint(s.Added)},
			{Name: "acknowledged", Text: fmt.Sprint(s.Acknowledged)},
			{Name: "to be acknowledged", Text: fmt.Sprint(s.Unacked)},
		}
	})
}
