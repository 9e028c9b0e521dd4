package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redial-go/redial/reconnect"
)

// State returns what a connection is doing, always in the same width, for a prompt.
func State(s reconnect.Status) string {
	text := s.State.String()
	if s.State == reconnect.StateWaiting {
		text = "next try in " + Seconds(time.Until(s.Next))
	}
	return fmt.Sprintf("%*s", len("next try in 3610 s"), text) // a server may ask for an hour
}

// Seconds formats d in whole seconds, rounded up and at least 1.
func Seconds(d time.Duration) string {
	return fmt.Sprintf("%d s", max(int((d+time.Second-1)/time.Second), 1))
}

// Count formats a number of things.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Clean returns s with control sequences, invisible characters and bytes that are not UTF-8
// escaped, so that it is safe on a terminal.
func Clean(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", r), "'"))
		}
	}
	return b.String()
}
