// Graphqlws runs GraphQL subscriptions by the protocol graphql-transport-ws (the library graphql-ws and others), and
// prints each result, as it came. The protocol has no recovery. So the program prints a line that begins with
// "snapshot" when it has subscribed in a new session: run a query there, a little later, because the server does not
// confirm a subscription.
//
// Left out of the protocol: variables, queries and mutations (package reconnect/call), and the older graphql-ws
// subprotocol.
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
	"slices"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/heartbeat"
	"github.com/redial-go/redial/reconnect/subscription"
)

type message struct { // the id is the text of the subscription, which is the key of the Set
	ID, Type string
	Payload  json.RawMessage
}

func pong(m conn.Message) (answer conn.Message, ok bool) {
	var v message
	return conn.TextMessage(`{"type":"pong"}`), json.Unmarshal(m.Data, &v) == nil && v.Type == "ping"
}

func login(o *reconnect.Opening, payload string) error {
	if err := o.Write(conn.TextMessage(`{"type":"connection_init","payload":` + payload + `}`)); err != nil {
		return err
	}
	for {
		var v message
		if m, err := o.Read(); err != nil {
			return err
		} else if err := json.Unmarshal(m.Data, &v); err != nil || v.Type == "connection_ack" {
			return err
		}
	}
}

func encode(r *subscription.Request[string]) (conn.Message, error) {
	query := r.Keys[0]
	return conn.JSONMessage(map[string]any{
		"type":    "subscribe",
		"id":      query,
		"payload": map[string]string{"query": query},
	})
}

// answer finds the end of a subscription. After an error the Set subscribes again, with growing waits.
func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	var v message
	if err := json.Unmarshal(m.Data, &v); err != nil || v.Type != "error" && v.Type != "complete" {
		return a, false
	}
	a.Keys, a.Deliver = []string{v.ID}, true
	if a.Completed = v.Type == "complete"; !a.Completed {
		a.Ended, a.Err = true, fmt.Errorf("the server refuses: %s", v.Payload)
	}
	return a, true
}

func follow(url, payload string, queries []string) error {
	set, err := subscription.New(&subscription.Options[string]{
		Encode:    encode,
		Answer:    answer,
		NoAnswers: true,
		Batch:     1,
	})
	if err != nil {
		return err
	}
	set.Add(queries...)
	c, err := reconnect.New(&heartbeat.Dialer{
		Dialer: &dialer.WebSocket{URL: url, Subprotocols: []string{"graphql-transport-ws"}}, Answer: pong,
	}, &reconnect.Options{
		OnSession:   func(_ context.Context, o *reconnect.Opening) error { return login(o, payload) },
		MarkRefetch: true, Layers: []*reconnect.Layer{set.Layer()},
		Run: reconnect.RunOptions{Classify: backoff.ClassifyRefusals, Trace: reconnect.Log(slog.Default())},
	})
	if err != nil {
		return err
	}
	for m, err := range c.Messages(context.Background()) {
		var v message
		switch seam, ok := errors.AsType[*reconnect.Seam](err); {
		case ok && seam.Refetch:
			output("snapshot: subscribed by session", seam.Session)
		case err != nil && !ok:
			return err
		case err == nil && json.Unmarshal(m.Data, &v) == nil && slices.Contains(queries, v.ID):
			output(string(m.Data))
		case err == nil:
			slog.Warn("message left out", "message", string(m.Data))
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
	url := flag.String("url", "ws://127.0.0.1:4000/graphql", "the server")
	payload := flag.String("init", "{}", "the payload of connection_init, often with a token")
	flag.Parse()
	log.Fatal(follow(*url, *payload, flag.Args()))
}
