//go:build !js

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/subscription"
)

// message is a message of the venue, or to it.
type message struct {
	ID    string   `json:"id,omitempty"`    // of a request, and of the answer
	Op    string   `json:"op,omitempty"`    // of a request: "subscribe", "unsubscribe", "snapshot", "ping"
	Books []string `json:"books,omitempty"` // of a request
	Error string   `json:"error,omitempty"` // of an answer: why the venue refuses

	Type string `json:"type,omitempty"` // of what the venue sends: "done", "error", "snapshot", "update", "pong"
	Conn uint64 `json:"conn,omitempty"` // the venue's number for the connection
	Book string `json:"book,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`  // counts the updates of a book; in a snapshot, the number of the last update that it contains
	Bids levels `json:"bids,omitempty"` // in an update a size of 0 removes the level
	Asks levels `json:"asks,omitempty"`
}

func (m message) encode() conn.Message {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a message can always be encoded
	}
	return conn.Message{Type: conn.Text, Data: data}
}

// encode makes the message for a request.
func encode(r *subscription.Request[string]) (conn.Message, error) {
	return message{ID: r.ID, Op: r.Op.String(), Books: r.Keys}.encode(), nil
}

// answer reads the answer to such a request.
func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	if !bytes.Contains(m.Data, []byte(`"id":`)) {
		return a, false // so that an update is parsed only once
	}
	var v message
	if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
		return a, false
	}
	if a.ID = v.ID; v.Error != "" {
		a.Err = errors.New(v.Error)
	}
	return a, true
}

// parse reads what belongs to a book.
func parse(m reconnect.Message) (it replay.Item[string, message], ok bool) {
	var v message
	if json.Unmarshal(m.Data, &v) != nil || v.Book == "" {
		return it, false
	}
	return replay.Item[string, message]{Key: v.Book, Last: v.Seq, Snapshot: v.Type == "snapshot", Value: v}, true
}

// token returns a token for one dial: something that nobody has used yet, signed with the key.
func token(key string) string {
	nonce := rand.Text()
	return nonce + "." + sign(key, nonce)
}

func sign(key, nonce string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(nonce))
	return fmt.Sprintf("%x", mac.Sum(nil))
}
