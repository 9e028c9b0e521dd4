package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redial-go/redial/conn"
)

// message is a message in either direction. The package comment lists the fields of each
// type.
type message struct {
	Type   string `json:"type"`
	Client string `json:"client,omitempty"` // a secret that identifies a client on all its connections
	Name   string `json:"name,omitempty"`
	Room   string `json:"room,omitempty"`   // the name of the room; in a hello, empty if the client has seen none
	Seen   uint64 `json:"seen,omitempty"`   // the last line that the client has received in it
	ID     uint64 `json:"id,omitempty"`     // the author's number of a line
	Text   string `json:"text,omitempty"`   // of a line
	Seq    uint64 `json:"seq,omitempty"`    // the room's number of a line; in a welcome, that of the line before the first that follows
	Missed uint64 `json:"missed,omitempty"` // how many lines the client has not received and the room does not have any more
	From   string `json:"from,omitempty"`   // the author, as authorOf returns it
}

const (
	maxText    = 1000     // bytes of a line
	maxName    = 24       // letters
	maxMessage = 16 << 10 // bytes: enough for a text in which each byte is escaped
)

// encode returns m as a message of a connection.
func encode(m message) conn.Message {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a message can always be encoded
	}
	return conn.Message{Type: conn.Text, Data: data}
}

// decode returns the message in data, or an error if it is not valid.
func decode(data []byte) (message, error) {
	var m message
	if len(data) > maxMessage {
		return m, fmt.Errorf("the message has %d bytes, and the limit is %d", len(data), maxMessage)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("message %.20q: %w", m.Type, err)
	}
	return m, nil
}

func (m *message) check() error {
	switch m.Type {
	case "hello":
		if m.Client == "" || len(m.Client) > 64 {
			return errors.New("the client must have 1 to 64 bytes")
		}
		return checkName(m.Name)
	case "welcome":
		if m.Room == "" {
			return errors.New("the room is missing")
		}
		return nil
	case "say":
		return m.checkText()
	case "line":
		if m.Seq == 0 || m.From == "" || len(m.From) > 64 {
			return errors.New("the number or the author is missing")
		}
		return errors.Join(checkName(m.Name), m.checkText())
	case "ack":
		return nil
	}
	return errors.New("unknown type")
}

func (m *message) checkText() error {
	switch {
	case m.ID == 0:
		return errors.New("the number is missing")
	case m.Text == "":
		return errors.New("the text is missing")
	case len(m.Text) > maxText:
		return fmt.Errorf("the text has %d bytes, and the limit is %d", len(m.Text), maxText)
	}
	return nil
}

// checkName returns an error if name is not valid. A valid name is safe on a terminal, and
// does not look like a line of the program itself.
func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxName {
		return fmt.Errorf("a name has 1 to %d letters", maxName)
	}
	for i, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && (i == 0 || !strings.ContainsRune("-_.", r)) {
			return fmt.Errorf("a name must not contain %+q: only letters and digits, and - _ . after the first of them", r)
		}
	}
	return nil
}

// authorOf returns the public name of a client's secret.
func authorOf(client string) string {
	sum := sha256.Sum256([]byte(client))
	return hex.EncodeToString(sum[:8])
}
