// Socketio prints the events of a Socket.IO server (Engine.IO 4), over WebSocket alone. If the server has connection
// state recovery, a new session continues after the last event. If not, or if the server has forgotten the session, the
// program prints a line that begins with "snapshot": fetch one there.
// Left out of the protocol: HTTP polling, other namespaces, binary and volatile events, acknowledgements, sending.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

// feed has what the server needs to recover a session. It needs no lock, because OnSession and OnMessage never run at
// the same time.
type feed struct {
	pid, offset string // the private name of the session, and its last event
	conn        *reconnect.Conn
}

func (f *feed) start(c *reconnect.Conn) error {
	f.conn = c
	return nil
}

// open is OnSession. Engine.IO opens with "0...", and Socket.IO with "40..." from either side, or "44..." for a
// refusal.
func (f *feed) open(_ context.Context, o *reconnect.Opening, auth map[string]any) error {
	if _, err := o.Read(); err != nil { // "0..."
		return err
	}
	auth["pid"], auth["offset"] = f.pid, f.offset
	m, err := conn.JSONMessage(auth)
	if err != nil {
		return err
	}
	err = o.Write(conn.TextMessage("40" + string(m.Data)))
	for err == nil && !bytes.HasPrefix(m.Data, []byte("40")) {
		if m, err = o.Read(); err == nil && bytes.HasPrefix(m.Data, []byte("44")) {
			err = backoff.Slow(fmt.Errorf("the server refuses: %s", m.Data)) // somebody must mend it
		}
		if err == nil {
			err = o.Deliver(m) // what was missed comes before "40..."
		}
	}
	return err
}

func (f *feed) handle(_ context.Context, m reconnect.Message) {
	var event []json.RawMessage
	var session struct{ PID string }
	switch kind, body := m.Data[:min(2, len(m.Data))], m.Data[min(2, len(m.Data)):]; string(kind) {
	case "40":
		if err := json.Unmarshal(body, &session); err != nil || session.PID != f.pid || f.pid == "" {
			f.pid, f.offset = session.PID, ""
			output("snapshot: session", m.Session, "begins without its past")
		}
	case "41":
		f.conn.Redial(m.Session, backoff.Slow(errors.New("the server has disconnected us")))
	case "42":
		if err := json.Unmarshal(body, &event); err != nil || len(event) == 0 {
			log.Printf("left out: %q", m.Data) // an event that wants an acknowledgement
			return
		}
		if last := len(event) - 1; f.pid != "" && last > 0 && json.Unmarshal(event[last], &f.offset) == nil {
			event = event[:last] // a server with recovery appends the offset
		}
		output(fmt.Sprintf("%s", event))
	}
}

func follow(url string, auth map[string]any) error {
	f := &feed{}
	c, err := reconnect.New(&heartbeat.Dialer{
		Dialer: &dialer.WebSocket{URL: url},
		Answer: func(m conn.Message) (conn.Message, bool) { return conn.TextMessage("3"), string(m.Data) == "2" },
	}, &reconnect.Options{
		OnSession: func(ctx context.Context, o *reconnect.Opening) error { return f.open(ctx, o, auth) },
		OnMessage: f.handle,
		Layers:    []*reconnect.Layer{{Start: f.start}},
		Run:       reconnect.RunOptions{Trace: reconnect.Log(slog.Default())},
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
	url := flag.String("url", "ws://127.0.0.1:3000/socket.io/?EIO=4&transport=websocket", "the server")
	text := flag.String("auth", "{}", "what the server gets as auth")
	auth := map[string]any{}
	if flag.Parse(); json.Unmarshal([]byte(*text), &auth) != nil {
		log.Fatal("-auth is no JSON object")
	}
	log.Fatal(follow(*url, auth))
}
