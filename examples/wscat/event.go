//go:build !js

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/redial-go/redial/conn"
)

// event is one thing that happens, as -json writes it. The usage text describes the fields.
type event struct {
	Time        time.Time `json:"time"`
	Event       string    `json:"event"`
	Session     uint64    `json:"session,omitempty"`
	Subprotocol string    `json:"subprotocol,omitempty"`
	Try         int       `json:"try,omitempty"`
	Line        int       `json:"line,omitempty"`
	Fate        string    `json:"fate,omitempty"`
	Binary      bool      `json:"binary,omitempty"`
	Text        *string   `json:"text,omitempty"`
	Base64      *string   `json:"base64,omitempty"`
	Away        *float64  `json:"away,omitempty"`
	Wait        *float64  `json:"wait,omitempty"`
	RetryAfter  float64   `json:"retry_after,omitempty"`
	Since       float64   `json:"since,omitempty"`
	Cause       string    `json:"cause,omitempty"`
	Code        *int      `json:"code,omitempty"`
	*tally
}

// tally counts the lines of standard input by their fates.
type tally struct {
	Written int64 `json:"written"`
	Dropped int64 `json:"dropped"`
	Unknown int64 `json:"unknown"`
}

func (t *tally) String() string {
	text := fmt.Sprintf("%d written", t.Written)
	if t.Dropped > 0 {
		text += fmt.Sprintf(", %d not sent", t.Dropped)
	}
	if t.Unknown > 0 {
		text += fmt.Sprintf(", %d perhaps sent", t.Unknown)
	}
	return text
}

// setData sets the fields that have the data of m.
func (e *event) setData(m conn.Message) {
	e.Binary = m.Type == conn.Binary
	text, field := string(m.Data), &e.Text
	if e.Binary || !utf8.Valid(m.Data) {
		text, field = base64.StdEncoding.EncodeToString(m.Data), &e.Base64
	}
	*field = &text
}

// json returns e in one line. Characters that are not visible are escaped, so that it is safe
// on a terminal.
func (e event) json() string {
	e.Time = time.Now().UTC()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		panic(err) // an event can always be encoded
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !bytes.ContainsFunc(line, invisible) {
		return string(line)
	}
	var safe []byte
	for _, r := range string(line) {
		switch high, low := utf16.EncodeRune(r); {
		case !invisible(r):
			safe = utf8.AppendRune(safe, r)
		case r > 0xFFFF:
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return string(safe)
}

func invisible(r rune) bool { return !unicode.IsPrint(r) }

// seconds returns d as a number of seconds, in milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
