package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// publication is one message of the stream.
type publication struct {
	Offset uint64 `json:"offset"`
	Text   string `json:"text"`
}

// recovered is the answer to a subscribe that named an offset.
type recovered struct {
	Recovered    bool              `json:"recovered"` // nothing is missing
	Epoch        string            `json:"epoch"`
	Offset       uint64            `json:"offset"` // the newest
	Publications []json.RawMessage `json:"publications"`
}

// A server that recovers in its answer to a subscribe, as Centrifugo does: OnSession asks with the offset of a
// Cursor, and delivers what was missed. No Bridge is needed, because nothing is fetched. OnSession, OnMessage
// and OnSeam share variables without a lock, because they never run at the same time without a rotation.
func ExampleCursor_recovery() {
	var at bridge.Cursor
	epoch, done := "", make(chan struct{})
	gap := false // the server could not recover, and no seam has said so yet
	servers := make(chan *conntest.Fake, 1)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { // in place of a *dialer.WebSocket
		client, server := conntest.Pair(nil)
		servers <- server
		return client, nil
	}), &reconnect.Options{
		Resumable: true,
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			question, err := conn.JSONMessage(map[string]any{"subscribe": "news", "offset": at.Offset, "epoch": at.Epoch})
			if err != nil {
				return err
			}
			if err := o.Write(question); err != nil {
				return err
			}
			m, err := o.Read()
			if err != nil {
				return err
			}
			var a recovered
			if err := json.Unmarshal(m.Data, &a); err != nil {
				return err
			}
			if epoch = a.Epoch; !a.Recovered { // begin anew: fetch a snapshot here, if there is one
				gap = gap || at.Epoch != ""
				at = bridge.Cursor{Epoch: a.Epoch, Offset: a.Offset}
				return nil
			}
			if !gap { // else a session before this one could not recover, and was lost before it was ready
				if err := o.Resumed(); err != nil {
					return err
				}
			}
			for _, p := range a.Publications {
				if err := o.Deliver(conn.Message{Type: conn.Text, Data: p}); err != nil {
					return err
				}
			}
			return nil
		},
		OnMessage: func(_ context.Context, m reconnect.Message) {
			var p publication
			if json.Unmarshal(m.Data, &p) != nil || at.Take(epoch, p.Offset) != bridge.PlacementNext {
				return // has come before
			}
			fmt.Println(m.Session, p.Offset, p.Text)
			if p.Text == "bye" {
				close(done)
			}
		},
		OnSeam: func(_ context.Context, s *reconnect.Seam) {
			if gap = false; s.Resumed {
				fmt.Println("nothing is missing after session", s.Session)
			}
		},
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { c.Close(); <-c.Done() }()

	// The server. It publishes 3 while nobody is connected, and sends 2 once more.
	for _, says := range [][]string{
		{`{"epoch":"x"}`, `{"offset":1,"text":"hello"}`, `{"offset":2,"text":"world"}`},
		{`{"recovered":true,"epoch":"x","offset":3,"publications":[{"offset":2,"text":"world"},{"offset":3,"text":"missed"}]}`, `{"offset":4,"text":"bye"}`},
	} {
		server := <-servers
		question, _ := server.Read(nil)
		fmt.Printf("%s\n", question.Data)
		for _, text := range says {
			_ = server.Write(conn.TextMessage(text))
		}
		if len(says) == 3 {
			_ = server.Close(context.Background(), 1012, "restart")
		}
	}
	<-done
	// Output:
	// {"epoch":"","offset":0,"subscribe":"news"}
	// 1 1 hello
	// 1 2 world
	// {"epoch":"x","offset":2,"subscribe":"news"}
	// nothing is missing after session 1
	// 2 3 missed
	// 2 4 bye
}
