// Centrifugo follows a channel of a Centrifugo server, and prints the data of each publication. After a loss it
// subscribes from its last offset, and the server answers with what was missed (recovery). At the beginning, and if the
// server cannot recover, the program prints a line that begins with "snapshot": fetch one there, if you need one.
// Left out of the protocol: new tokens, subscriptions by the server, presence, join and leave, RPC, deltas, protobuf.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

type reply struct { // the answer to the command with that ID, or a push
	ID        int
	Error     json.RawMessage
	Subscribe event
	Push      struct{ Pub, Unsubscribe event }
}

type event struct {
	bridge.Cursor         // of the channel (epoch and offset), or of a publication (offset)
	Recovered     bool    // of a subscription
	Publications  []event // that were missed
	Data          json.RawMessage
	Reason        string // of an unsubscribe
}

type feed struct { // needs no lock, because OnSession and OnMessage never run at the same time
	token, channel string
	at             bridge.Cursor
	conn           *reconnect.Conn
}

func (f *feed) start(c *reconnect.Conn) error {
	f.conn = c
	return nil
}

func (f *feed) subscribe(_ context.Context, o *reconnect.Opening) error {
	connect := fmt.Sprintf(`{"id":1,"connect":{"token":%q}}`, f.token)
	subscribe := fmt.Sprintf(`{"id":2,"subscribe":{"channel":%q,"recover":%t,"epoch":%q,"offset":%d}}`,
		f.channel, f.at.Epoch != "", f.at.Epoch, f.at.Offset)
	if err := o.Write(conn.TextMessage(connect + "\n" + subscribe)); err != nil {
		return err
	}
	for {
		var r reply
		m, err := o.Read()
		if err = cmp.Or(err, json.Unmarshal(m.Data, &r)); err != nil {
			return err
		} else if r.Error != nil || r.ID == 2 && r.Subscribe.Epoch == "" {
			// A redial does not help: wait longer.
			return backoff.Slow(fmt.Errorf("refused, or a channel without recovery: %s", m.Data))
		} else if r.ID == 2 {
			return o.Deliver(m)
		}
	}
}

func (f *feed) handle(_ context.Context, m reconnect.Message) {
	var r reply
	if err := json.Unmarshal(m.Data, &r); err != nil || r.Push.Unsubscribe.Reason != "" {
		f.conn.Redial(m.Session, fmt.Errorf("unsubscribed: %s", m.Data)) // the next session recovers
	}
	if r.ID == 2 && !r.Subscribe.Recovered {
		f.at = r.Subscribe.Cursor
		output("snapshot: what follows comes after offset", f.at.Offset)
	}
	for _, p := range append(r.Subscribe.Publications, r.Push.Pub) {
		if f.at.Take(f.at.Epoch, p.Offset) == bridge.PlacementNext { // without a publication the offset is 0
			output(string(p.Data))
		}
	}
}

func follow(url, token, channel string) error {
	f := &feed{token: token, channel: channel}
	c, err := reconnect.New(&heartbeat.Dialer{
		Dialer: &dialer.WebSocket{URL: url, Split: conn.Split{Func: bufio.ScanLines}},
		Answer: func(m conn.Message) (conn.Message, bool) { return conn.TextMessage("{}"), string(m.Data) == "{}" },
	}, &reconnect.Options{
		OnSession: f.subscribe,
		OnMessage: f.handle,
		Layers:    []*reconnect.Layer{{Start: f.start}},
		Run:       reconnect.RunOptions{Classify: backoff.ClassifyRefusals, Trace: reconnect.Log(slog.Default())},
	})
	if err != nil {
		return err
	}
	<-c.Done()
	return c.Err()
}

// output prints a line, or ends the program with exit code 4, so that a full disk is noticed.
func output(values ...any) {
	if _, err := fmt.Println(values...); err != nil {
		slog.Error("standard output", "err", err)
		os.Exit(4)
	}
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8000/connection/websocket", "the server")
	token := flag.String("token", "", "the token of the connection")
	channel := flag.String("channel", "news", "the channel, which must have a history with recovery")
	flag.Parse()
	log.Fatal(follow(*url, *token, *channel))
}
