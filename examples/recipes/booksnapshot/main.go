// Booksnapshot keeps order books of an exchange whose stream has only changes, and whose snapshots come by HTTP. For each change
// it prints the symbol, the number of the last update, and the lots by price: go run ./booksnapshot -url ws://HOST/stream -http http://HOST/depth BTC
//
// The program fetches a snapshot after the first change of a book has come, so that no change is missing between the two. It
// fetches again after a loss, and if a number is missing. It prints nothing of a book that may be wrong.
// Left out: pings by the client (recipe book), checksums, symbols that come and go (package subscription).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

type message struct { // a change of a book, or a snapshot
	Book        string
	First, Last uint64   // the numbers of the updates in it; a snapshot has the Last
	Bids, Asks  [][2]int // prices and their lots; 0 lots remove the price
}

type book struct {
	bids, asks  map[int]int // the lots by price
	stale, lost bool        // wrong: until the missing changes have come; until the next snapshot
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8080/stream", "the stream of the changes of all books that are named")
	depth := flag.String("http", "http://127.0.0.1:8080/depth", "the snapshots")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	feed, err1 := reconnect.New(&dialer.WebSocket{URL: *url + "?books=" + strings.Join(flag.Args(), ",")},
		&reconnect.Options{Run: reconnect.RunOptions{Trace: reconnect.Log(slog.Default())}})
	stream, err2 := bridge.New(&bridge.Options[string, message]{Parse: parse, AwaitSubscribed: true,
		Snapshot: func(ctx context.Context, symbol string) (item bridge.Item[string, message], err error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, *depth+"?book="+symbol, nil)
			if err != nil {
				return item, err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return item, err
			}
			defer answer.Body.Close()
			if err = json.NewDecoder(answer.Body).Decode(&item.Value); answer.StatusCode != http.StatusOK {
				err = fmt.Errorf("no snapshot: %s", answer.Status)
			}
			item.Last = item.Value.Last
			return item, err
		}})
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	defer feed.Close()
	books := map[string]book{}
	for e, err := range stream.Events(ctx, feed) {
		if err != nil {
			return // interrupted
		} else if e.Kind == bridge.EventOther {
			continue // a seam: the books become stale
		}
		b := books[e.Key]
		b.stale = e.Kind == bridge.EventStale || b.stale && e.Kind != bridge.EventHealed
		b.lost = e.Kind == bridge.EventLost || b.lost && e.Kind != bridge.EventSnapshot
		if e.Kind == bridge.EventSnapshot {
			b.bids, b.asks = map[int]int{}, map[int]int{}
		}
		apply(b.bids, e.Value.Bids)
		apply(b.asks, e.Value.Asks)
		if books[e.Key] = b; !b.stale && !b.lost {
			fmt.Println(e.Key, e.Last, b.bids, b.asks)
		}
	}
}

func apply(side map[int]int, levels [][2]int) {
	for _, level := range levels {
		if side[level[0]] = level[1]; level[1] == 0 {
			delete(side, level[0])
		}
	}
}

func parse(m reconnect.Message) (bridge.Item[string, message], bool) {
	var v message
	err := json.Unmarshal(m.Data, &v)
	return bridge.Item[string, message]{Key: v.Book, First: v.First, Last: v.Last, Value: v}, err == nil && v.Book != ""
}
