// Jsonrpc subscribes to events of a JSON-RPC server, such as an Ethereum node, and prints the result of each
// notification. A node does not repeat events that the program has missed while it was away. So the program prints a
// line that begins with "snapshot" when a session has its subscriptions. From there on nothing is missing: fetch there
// what you need.
//
// Left out of the protocol: calls (package reconnect/call makes them), batches, and blocks that a reorganization takes
// back.
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
	"strings"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

type message struct { // an answer, or a notification
	ID     json.Number
	Error  json.RawMessage
	Result json.RawMessage
	Params struct {
		Subscription string
		Result       json.RawMessage
	}
}

// encode asks for one event, such as ["newHeads"]. The node answers with a name, by which the subscription can be
// ended.
func encode(namespace string, r *subscription.Request[string]) (conn.Message, error) {
	params := []string{r.Keys[0]}
	if r.Op == subscription.OpUnsubscribe {
		params = r.Tags
	}
	return conn.JSONMessage(map[string]any{
		"jsonrpc": "2.0",
		"id":      json.Number(r.ID),
		"method":  namespace + "_" + r.Op.String(),
		"params":  params,
	})
}

func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	var v message
	if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
		return a, false // a notification, for the reader
	}
	if a.ID = string(v.ID); v.Error != nil {
		a.Err = fmt.Errorf("the server refuses: %s", v.Error)
	} else {
		_ = json.Unmarshal(v.Result, &a.Tag) // the answer to an unsubscribe has no name, but true
	}
	return a, true
}

func follow(url, namespace string, events []string) error {
	set, err := subscription.New(&subscription.Options[string]{
		Encode: func(r *subscription.Request[string]) (conn.Message, error) { return encode(namespace, r) },
		Answer: answer, Batch: 1,
	})
	if err != nil {
		return err
	}
	set.Add(events...)
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{
		Layers:      []*reconnect.Layer{set.Layer()},
		MarkRefetch: true,
		Run:         reconnect.RunOptions{Trace: reconnect.Log(slog.Default())},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	for m, err := range c.Messages(context.Background()) {
		var v message
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			if seam.Refetch {
				output("snapshot: nothing is missing after this line")
			}
		} else if err != nil {
			return err
		} else if err := json.Unmarshal(m.Data, &v); err != nil {
			c.Redial(m.Session, err)
		} else if event, ok := set.ByTag(m.Session, v.Params.Subscription); ok {
			output(event, string(v.Params.Result))
		}
	}
	return nil
}

// output prints a line, or ends the program with exit code 4, so that a full disk is noticed.
func output(values ...any) {
	if _, err := fmt.Println(values...); err != nil {
		slog.Error("standard output", "err", err)
		os.Exit(4)
	}
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8546", "the server")
	namespace := flag.String("namespace", "eth", "the part of the methods before _subscribe")
	events := flag.String("events", "newHeads", "the events, with commas between")
	flag.Parse()
	log.Fatal(follow(*url, *namespace, strings.Split(*events, ",")))
}
