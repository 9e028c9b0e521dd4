//go:build !js

package main

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"unicode/utf8"

	"github.com/redial-go/redial/conn"
)

// form is how a line of text stands for a message.
type form string

const (
	formText   form = ""       // a line is a text message; binary messages are shown in hex
	formHex    form = "hex"    // a line is a binary message
	formBase64 form = "base64" // the same
)

// UnmarshalText implements [encoding.TextUnmarshaler], for a flag.
func (f *form) UnmarshalText(text []byte) error {
	switch *f = form(text); *f {
	case formHex, formBase64:
		return nil
	}
	return errors.New("want hex or base64")
}

// MarshalText implements [encoding.TextMarshaler].
func (f form) MarshalText() ([]byte, error) { return []byte(f), nil }

// lineLimit returns how long a line may be that stands for a message of max bytes.
func (f form) lineLimit(max int64) int {
	if f != formText {
		max *= 2
	}
	return int(max)
}

// message returns the message that a line stands for. If it stands for none, the error says what
// the line is, and the message is the line itself, to be shown.
func (f form) message(line string) (m conn.Message, err error) {
	m.Type = conn.Binary
	switch f {
	case formHex:
		if m.Data, err = hex.DecodeString(line); err != nil {
			err = errors.New("not hex")
		}
	case formBase64:
		if m.Data, err = base64.StdEncoding.DecodeString(line); err != nil {
			err = errors.New("not base64")
		}
	default:
		m = conn.Message{Type: conn.Text, Data: []byte(line)}
		if !utf8.Valid(m.Data) {
			err = errors.New("not UTF-8, as a text message must be: see -binary")
		}
	}
	if err != nil {
		m = conn.Message{Type: conn.Text, Data: []byte(line)}
	}
	return m, err
}

// line returns the line that stands for a message. That of a text is its data.
func (f form) line(m conn.Message) string {
	switch {
	case m.Type == conn.Text:
		return string(m.Data)
	case f == formBase64:
		return base64.StdEncoding.EncodeToString(m.Data)
	default:
		return hex.EncodeToString(m.Data)
	}
}
