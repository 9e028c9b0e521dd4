//go:build js

package main

import (
	"fmt"
	"strconv"
	"syscall/js"

	"github.com/redial-go/redial/examples/browser/venue"
)

// ticket draws the book of one symbol.
type ticket struct {
	card               js.Value
	class              string
	state, price, foot text
	asks, bids         [levels]row // the best level first
}

// levels is how many levels of a side are shown.
const levels = 6

// row is one level.
type row struct {
	price, size text
	bar         js.Value
	width       int // of bar, in percent
}

// newTicket adds a card for a symbol to the page.
func newTicket(symbol string) *ticket {
	t := &ticket{card: create(element("books"), "article", "")}
	t.card.Set("id", symbol)
	head := create(t.card, "header", "")
	create(head, "h2", "").Set("textContent", symbol)
	t.state.element = create(head, "span", "badge")
	table := create(t.card, "div", "ladder")
	for i := levels - 1; i >= 0; i-- { // the best ask is the lowest line of its side
		t.asks[i] = newRow(table, "ask")
	}
	t.price.element = create(table, "div", "spread")
	for i := range levels {
		t.bids[i] = newRow(table, "bid")
	}
	t.foot.element = create(t.card, "footer", "")
	return t
}

func newRow(table js.Value, class string) row {
	line := create(table, "div", "row "+class)
	r := row{bar: create(line, "i", "")}
	r.price.element = create(line, "span", "")
	r.size.element = create(line, "span", "")
	return r
}

// draw draws b. A book is live only if the connection is ready and nothing is missing in it.
func (t *ticket) draw(b *book, ready bool) {
	class, state := "live", "live"
	if b.stale || !ready {
		class, state = "stale", "stale"
	}
	if b.Seq == 0 {
		class, state = "stale", "no data yet"
	}
	if class != t.class {
		t.class = class
		t.card.Set("className", class)
	}
	t.state.set(state)
	bids, asks := b.Best(levels)
	for i := range levels {
		t.asks[i].draw(asks, i)
		t.bids[i].draw(bids, i)
	}
	if len(bids) > 0 && len(asks) > 0 {
		t.price.set("spread " + cents(asks[0].Price-bids[0].Price))
	}
	t.foot.set(fmt.Sprintf("update %d · session %d", b.Seq, b.session))
}

func (r *row) draw(side []venue.Level, i int) {
	width := 0
	if i < len(side) {
		r.price.set(cents(side[i].Price))
		r.size.set(strconv.Itoa(side[i].Size))
		width = side[i].Size * 8 // of 9 at most
	} else {
		r.price.set("")
		r.size.set("")
	}
	if width != r.width {
		r.width = width
		r.bar.Get("style").Set("width", strconv.Itoa(width)+"%")
	}
}

// cents returns a price as a person writes it.
func cents(price int) string { return fmt.Sprintf("%d.%02d", price/100, price%100) }
