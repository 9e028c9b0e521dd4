// Booksnapshot keeps order books of an exchange whose stream has only changes, and whose snapshots come by HTTP. For
// each change it prints the symbol, the number of the last update, and the lots by price: go run ./booksnapshot BTC
//
// The program fetches a snapshot after the first change of a book has come, so that no change is missing between the
// two. It fetches again after a loss, and if a number is missing. It prints nothing of a book that may be wrong: none
// before its snapshot, and after a change that cannot be understood the program connects again.
// Left out: pings by the client (recipe book), checksums, symbols that come and go (package subscription).
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

type message struct { // a change of a book, or a snapshot
	Book        string
	First, Last uint64  // the numbers of the updates in it, from 1 on; a snapshot has the Last
	Bids, Asks  [][]int // prices and their lots; 0 lots remove the price
}

type book struct {
	bids, asks map[int]int // the lots by price; nil until there is a snapshot
	stale      bool        // changes are missing
}

func main() {
	address := flag.String("url", "ws://127.0.0.1:8080/stream", "the stream of the changes of all books that are named")
	depth := flag.String("http", "http://127.0.0.1:8080/depth", "the snapshots")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ws := &dialer.WebSocket{URL: *address + "?books=" + url.QueryEscape(strings.Join(flag.Args(), ","))}
	feed, err1 := reconnect.New(ws, &reconnect.Options{Run: reconnect.RunOptions{Trace: reconnect.Log(slog.Default())}})
	stream, err2 := bridge.New(&bridge.Options[string, message]{AwaitSubscribed: true,
		Parse: func(m reconnect.Message) (item bridge.Item[string, message], ok bool) {
			var v message
			err := cmp.Or(json.Unmarshal(m.Data, &v), v.check())
			if err == nil && len(v.Bids)+len(v.Asks) > 0 && (v.First == 0 || v.First > v.Last) {
				err = fmt.Errorf("a change without numbers: %.200s", m.Data)
			}
			if err != nil {
				feed.Redial(m.Session, err) // the next session begins with snapshots
			}
			item = bridge.Item[string, message]{Key: v.Book, First: v.First, Last: v.Last, Value: v}
			return item, err == nil && v.First > 0
		},
		Wanted: func(symbol string) bool { return slices.Contains(flag.Args(), symbol) },
		Snapshot: func(ctx context.Context, symbol string) (bridge.Item[string, message], error) {
			v, err := fetch(ctx, *depth, symbol)
			return bridge.Item[string, message]{Last: v.Last, Value: v}, err
		}})
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

func fetch(ctx context.Context, address, symbol string) (v message, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?book="+url.QueryEscape(symbol), nil)
	if err != nil {
		return v, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return v, err
	}
	defer answer.Body.Close()
	err = json.NewDecoder(answer.Body).Decode(&v)
	if answer.StatusCode != http.StatusOK || err == nil && v.Book != symbol {
		err = fmt.Errorf("no snapshot of %q: %s, with the book %q", symbol, answer.Status, v.Book)
	}
	return v, cmp.Or(err, v.check())
}

func (v *message) check() error {
	wrong := func(level []int) bool { return len(level) != 2 }
	if slices.ContainsFunc(v.Bids, wrong) || slices.ContainsFunc(v.Asks, wrong) {
		return fmt.Errorf("a price without lots, or too much: %v", *v)
	}
	return nil
}
