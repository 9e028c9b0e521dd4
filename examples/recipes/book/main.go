// Book keeps order books of an exchange that sends a snapshot in the stream after a subscription. For each change it
// prints the symbol, the number of the change, and the lots by price of both sides: go run ./book BTC ETH
//
// The client pings, because the exchange ends a connection that does not. After a loss it subscribes again. If a
// number is missing, it asks for a snapshot. It prints nothing of a book that may be wrong: none before its snapshot,
// and after a change that cannot be understood the program connects again.
//
// Left out: a login, checksums, symbols that come and go (package subscription), snapshots by HTTP (booksnapshot).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// message is a change of a book, a snapshot of it, the answer to a request, or a pong.
type message struct {
	Error, Book, Type string  // Type of a change is "update", and of a snapshot "snapshot"
	Seq               uint64  // counts the updates from 1; of a snapshot: the last update in it
	Bids, Asks        [][]int // prices and their lots; 0 lots remove the price
}

type book struct {
	bids, asks map[int]int // the lots by price; nil until there is a snapshot
	stale      bool        // changes are missing
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8080/ws", "the exchange")
	every := flag.Duration("ping", 15*time.Second, "how often to ping")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	feed, err1 := reconnect.New(&dialer.WebSocket{URL: *url}, &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			return o.Write(request("subscribe", flag.Args()...))
		},
		Liveness: reconnect.Liveness{
			ProbeEvery: *every,
			Probe:      func(_ context.Context, write func(conn.Message) error) error { return write(request("ping")) },
		},
		Run: reconnect.RunOptions{Trace: reconnect.Log(slog.Default())}})
	stream, err2 := bridge.New(&bridge.Options[string, message]{
		Parse: func(m reconnect.Message) (item bridge.Item[string, message], ok bool) {
			item, ok, err := parse(m.Data)
			if err != nil {
				feed.Redial(m.Session, err) // the next session begins with snapshots
			}
			return item, ok
		},
		Wanted: func(symbol string) bool { return slices.Contains(flag.Args(), symbol) },
		Ask:    func(ctx context.Context, symbol string) error { return feed.Write(ctx, request("snapshot", symbol)) },
	})
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	defer feed.Close()
	books := map[string]*book{}
	for _, symbol := range flag.Args() {
		books[symbol] = &book{}
	}
	for e, err := range stream.Events(ctx, feed) {
		if ctx.Err() != nil {
			return // interrupted
		} else if err != nil {
			log.Fatal(err)
		} else if e.Kind == bridge.EventOther || !books[e.Key].change(&e) {
			continue // a message of another kind, a seam, or a book that is not right now
		} else if _, err := fmt.Println(e.Key, e.Last, books[e.Key].bids, books[e.Key].asks); err != nil {
			slog.Error("standard output", "err", err)
			os.Exit(4)
		}
	}
}

// change applies an event, and reports whether the book is right.
func (b *book) change(e *bridge.Event[string, message]) bool {
	switch e.Kind {
	case bridge.EventStale:
		b.stale = true
	case bridge.EventHealed:
		b.stale = false
	case bridge.EventLost:
		b.bids = nil // the next snapshot is needed
	case bridge.EventSnapshot:
		b.bids, b.asks = map[int]int{}, map[int]int{}
	}
	if b.bids != nil {
		apply(b.bids, e.Value.Bids)
		apply(b.asks, e.Value.Asks)
	}
	return b.bids != nil && !b.stale
}

func apply(side map[int]int, levels [][]int) {
	for _, level := range levels {
		if side[level[0]] = level[1]; level[1] == 0 {
			delete(side, level[0])
		}
	}
}

func request(op string, symbols ...string) conn.Message {
	m, _ := conn.JSONMessage(map[string]any{"op": op, "books": symbols})
	return m
}

// parse returns false for a message that is neither a change nor a snapshot, and an error for a broken one of these.
func parse(data []byte) (item bridge.Item[string, message], ok bool, err error) {
	var v message
	err = json.Unmarshal(data, &v)
	if v.Error != "" {
		slog.Error("request rejected", "err", v.Error)
		return item, false, nil
	}
	for _, level := range slices.Concat(v.Bids, v.Asks) {
		if len(level) != 2 {
			err = fmt.Errorf("a price without lots, or too much: %v", level)
		}
	}
	if v.Type == "update" && v.Seq == 0 {
		err = fmt.Errorf("a change without a number: %.200s", data)
	}
	item = bridge.Item[string, message]{Key: v.Book, Last: v.Seq, Snapshot: v.Type == "snapshot", Value: v}
	return item, err == nil && v.Book != "" && (v.Type == "update" || v.Type == "snapshot"), err
}
