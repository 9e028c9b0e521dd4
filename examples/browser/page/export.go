//go:build js

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall/js"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// journal keeps what the reader of the connection got, the last entries of it.
type journal struct {
	mu      sync.Mutex // guards what follows
	first   int        // the number of entries[0]
	entries []entry
}

// entry is one event.
type entry struct {
	Kind    string `json:"kind"` // of package bridge, or "seam"
	Session uint64 `json:"session,omitempty"`
	Book    string `json:"book,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Reason  string `json:"reason,omitempty"` // of a seam
	Code    int    `json:"code,omitempty"`   // of a seam: that of the venue's close frame
}

const maxEntries = 50_000

// add adds an event. The answers to probes are none.
func (j *journal) add(e *books.Event) {
	n := entry{Kind: e.Kind.String(), Session: e.Session, Book: e.Key, Seq: e.Last}
	if seam, ok := errors.AsType[*reconnect.Seam](e.Err); ok && e.Kind == bridge.EventOther {
		n = entry{Kind: "seam", Session: seam.Session, Reason: seam.Reason.String()}
		if frame, ok := errors.AsType[*conn.CloseError](seam.Cause); ok {
			n.Code = frame.Code
		}
	} else if e.Kind == bridge.EventOther {
		return
	}
	if n.Kind == "seam" {
		note("seam", "seam after session %d: messages may be missing here (%s)", n.Session, n.Reason)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries = append(j.entries, n); len(j.entries) > maxEntries {
		j.entries, j.first = j.entries[1:], j.first+1
	}
}

// after returns the entries from the number on.
func (j *journal) after(from int) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[min(max(0, from-j.first), len(j.entries)):]
}

// export makes the object redial, for the script of the page, the console of the browser and tests:
//
//	redial.status()        // {state, detail, session, received, lost, dials, probes}
//	redial.journal(0)      // what has come, from this number on
//	redial.symbols         // of the books
//	redial.book("GO-USD")  // {seq, session, stale, bids, asks}
//	redial.check(); redial.kick(); redial.close()
func export(c *books.Client, j *journal) {
	var shown []any
	for _, symbol := range venue.Symbols {
		shown = append(shown, symbol)
	}
	js.Global().Set("redial", map[string]any{
		"symbols": shown,
		"status": function(func([]js.Value) any {
			status, stats := c.Feed.Status(), c.Feed.Stats()
			return map[string]any{
				"state": status.State.String(), "detail": detail(&status), "session": status.Session,
				"received": stats.Received, "lost": stats.Lost, "dials": stats.Dials, "probes": stats.Probes,
			}
		}),
		"journal": function(func(args []js.Value) any { return j.after(args[0].Int()) }),
		"book": function(func(args []js.Value) any {
			b := c.View(args[0].String())
			return map[string]any{"seq": b.Seq, "session": b.Session, "stale": !b.Valid(), "bids": b.Bids, "asks": b.Asks}
		}),
		"check": function(func([]js.Value) any { c.Feed.Check(); return nil }),
		"kick":  function(func([]js.Value) any { c.Feed.Kick(); return nil }),
		"close": function(func([]js.Value) any { c.Feed.Close(); return nil }),
	})
}

// detail says what the connection is doing, and why.
func detail(s *reconnect.Status) string {
	switch s.State {
	case reconnect.StateReady:
		return ""
	case reconnect.StateWaiting:
		return fmt.Sprintf("try %d in %.1f s (%v): %v", s.Try+1, max(0, time.Until(s.Next).Seconds()), s.Verdict, s.Err)
	case reconnect.StateClosed:
		return fmt.Sprint(s.Err)
	}
	return fmt.Sprintf("for %.1f s", time.Since(s.Since).Seconds())
}

// function returns a function that returns what f returns, as an object of JavaScript.
func function(f func(args []js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		text, err := json.Marshal(f(args))
		if err != nil {
			panic(err) // all that is returned can be encoded
		}
		return js.Global().Get("JSON").Call("parse", string(text))
	})
}
