// Book keeps order books of an exchange that sends a snapshot in the stream after a subscription. For each change it prints
// the symbol, the number of the change, and the lots by price of both sides: go run ./book -url ws://127.0.0.1:8080/ws BTC ETH
//
// The client pings, because the exchange ends a connection that does not. After a loss it subscribes again. If a
// number is missing, it asks for a snapshot. It prints nothing of a book that may be wrong.
//
// Left out: a login, checksums, symbols that come and go (package subscription). The recipe booksnapshot is for snapshots by HTTP.
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
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// message is a change of a book, the answer to a request, or a pong.
type message struct {
	Error, Book, Type string   // Type is "snapshot" or "update"
	Seq               uint64   // counts the updates; of a snapshot: the last update in it
	Bids, Asks        [][2]int // prices and their lots; 0 lots remove the price
}

type book struct {
	bids, asks  map[int]int // the lots by price
	stale, lost bool        // wrong: until the missing changes have come; until the next snapshot
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8080/ws", "the exchange")
	every := flag.Duration("ping", 15*time.Second, "how often to ping")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	feed, err1 := reconnect.New(&dialer.WebSocket{URL: *url}, &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			subscribe, _ := conn.JSONMessage(map[string]any{"op": "subscribe", "books": flag.Args()})
			return o.Write(subscribe)
		},
		Liveness: reconnect.Liveness{ProbeEvery: *every, Probe: func(_ context.Context, write func(conn.Message) error) error {
			return write(conn.TextMessage(`{"op":"ping"}`))
		}},
		Run: reconnect.RunOptions{Trace: reconnect.Log(slog.Default())}})
	stream, err2 := bridge.New(&bridge.Options[string, message]{Parse: parse, Ask: func(ctx context.Context, symbol string) error {
		return feed.Write(ctx, conn.TextMessage(fmt.Sprintf(`{"op":"snapshot","books":[%q]}`, symbol)))
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
			continue // a pong, or a seam: the books become stale
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
	if v.Error != "" {
		slog.Error("the exchange refuses", "cause", v.Error)
	}
	return bridge.Item[string, message]{Key: v.Book, Last: v.Seq, Snapshot: v.Type == "snapshot", Value: v}, err == nil && v.Book != ""
}
