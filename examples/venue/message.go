package venue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/redial-go/redial/conn"
)

// Message is a message to the venue, or from it. Empty fields are left out.
type Message struct {
	Op    string   `json:"op,omitempty"`    // to it: "login", "subscribe", "unsubscribe", "snapshot", "ping"
	ID    string   `json:"id,omitempty"`    // of a request, and of its answer
	Token string   `json:"token,omitempty"` // of a login
	Books []string `json:"books,omitempty"` // of the other requests, but for a ping

	Type  string `json:"type,omitempty"`  // from it: "welcome", "done", "error", "snapshot", "update", "pong"
	Error string `json:"error,omitempty"` // of an error: why
	Conn  uint64 `json:"conn,omitempty"`  // of a welcome: the venue's number for the connection
	Book  string `json:"book,omitempty"`  // of a snapshot or an update
	Seq   uint64 `json:"seq,omitempty"`   // counts the updates of a book; of a snapshot, the last one in it
	Bids  Levels `json:"bids,omitempty"`  // in an update a size of 0 removes the level
	Asks  Levels `json:"asks,omitempty"`
}

// Encode returns m as it travels.
func (m Message) Encode() conn.Message {
	text, err := conn.JSONMessage(m)
	if err != nil {
		panic(err) // a message can always be encoded
	}
	return text
}

// FetchToken returns a token from url: the answer of [Venue.Token].
func FetchToken(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("no token: %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return string(text), err
}

// Decode returns the message that was sent.
func Decode(data []byte) (m Message, err error) {
	err = json.Unmarshal(data, &m)
	return m, err
}
