package scene

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/redial-go/redial/reconnect"
)

// Notes collects what callbacks saw.
type Notes struct {
	mu   sync.Mutex
	list []string
}

func (n *Notes) Add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *Notes) All() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.list...)
}

// Lines returns the lines that a logger wrote.
func Lines(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// Logger writes to b, whatever the level is, and without the times.
func Logger(b *bytes.Buffer) *slog.Logger {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
}

// Recorder returns a Trace that notes each event.
func Recorder(n *Notes) *reconnect.Trace {
	number := func(s uint64) string { return string('0' + rune(s)) }
	return &reconnect.Trace{
		DialStart: func(reconnect.DialStart) { n.Add("dial") },
		DialDone: func(d reconnect.DialDone) {
			if d.Err == nil {
				n.Add("dialed ok")
			} else {
				n.Add("dialed " + d.Err.Error())
			}
		},
		SessionStart: func(s *reconnect.Session) { n.Add("session " + number(s.Number)) },
		SessionReady: func(s *reconnect.Session) { n.Add("ready " + number(s.Number)) },
		SessionDone:  func(e reconnect.SessionDone) { n.Add("session " + number(e.Session) + " ended") },
		WaitStart:    func(reconnect.WaitStart) { n.Add("wait") },
		WaitDone:     func(reconnect.WaitDone) { n.Add("waited") },
		ConnDone:     func(reconnect.ConnDone) { n.Add("end") },
	}
}
