//go:build !js

package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/terminal"
)

func TestInvalidMessagesAreRefused(t *testing.T) {
	for data, message := range map[string]string{
		`{`:                             "unexpected end",
		`{"type":"shout"}`:              `message "shout": unknown type`,
		`{"type":"hello","name":"ann"}`: "the client must have 1 to 64 bytes",
		`{"type":"hello","client":"1"}`: "a name has 1 to 24 letters",
		`{"type":"welcome"}`:            "the room is missing",
		`{"type":"say","text":"hello"}`: "the number is missing",
		`{"type":"say","id":1}`:         "the text is missing",
		`{"type":"line","id":1,"text":"hello","name":"ann","from":"1"}`:         "the number or the author is missing",
		`{"type":"line","seq":1,"id":1,"text":"hello","name":"-","from":"1"}`:   `must not contain '-'`,
		`{"type":"say","id":1,"text":"` + strings.Repeat("x", maxText+1) + `"}`: "the text has 1001 bytes, and the limit is 1000",
		`{"type":"ack"}` + strings.Repeat(" ", maxMessage):                      "the message has 16398 bytes, and the limit is 16384",
	} {
		_, err := decode([]byte(data))
		require.ErrorContains(t, err, message, data)
	}
}

func TestANameDoesNotLookLikeAnotherPartOfTheLine(t *testing.T) {
	for _, name := range []string{"ann", "Ann-Marie", "x_1.2", "Zoë", "王"} {
		require.NoError(t, checkName(name))
	}
	for _, name := range []string{"", "--", "-ann", "a b", "a:", "a\x1b", "a\n", "a\u202e", "a\xff", strings.Repeat("ë", 25)} {
		require.Error(t, checkName(name), name)
	}
}

// FuzzDecode asserts that decode refuses a message, or that the message is safe to print and
// is the same after encode and decode.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"hello","client":"1","name":"ann","room":"r","seen":7}`))
	f.Add([]byte(`{"type":"welcome","room":"r","id":3,"seq":9,"missed":37}`))
	f.Add([]byte(`{"type":"line","seq":10,"from":"1","id":4,"name":"ann","text":"hello \u001b[2J"}`))
	f.Add([]byte(`{"type":"say","id":18446744073709551615,"text":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		for _, r := range m.Name + terminal.Clean(m.Text) {
			require.True(t, unicode.IsPrint(r) || m.Type == "welcome" || m.Type == "ack")
		}
		again, err := decode(encode(m).Data)
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// FuzzTyped asserts that a typed line is too long, or that the server accepts it. The
// client would send a line that the server refuses again and again.
func FuzzTyped(f *testing.F) {
	f.Add("hello")
	f.Add("\xff\x00 <>&")
	f.Add(strings.Repeat("\xff", maxText))
	f.Add(strings.Repeat("a", 500) + strings.Repeat(" ", 501))
	f.Fuzz(func(t *testing.T, typed string) {
		text := sayable(typed)
		if len(text) > maxText || text == "" {
			return
		}
		m, err := decode(encode(message{Type: "say", ID: 1, Text: text}).Data)
		require.NoError(t, err)
		require.Equal(t, text, m.Text)
	})
}
