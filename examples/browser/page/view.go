//go:build js

package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall/js"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// view draws the page. It draws at most once for each frame of the browser, and only when
// something has changed, so that a hidden page costs nothing.
type view struct {
	client  *client
	dirty   atomic.Bool // a frame is asked for
	draw    js.Func
	texts   map[string]*text // by the id of their elements; owned by the goroutine that draws
	tickets map[string]*ticket

	mu    sync.Mutex // guards what follows
	notes []note     // that are not drawn yet
	seams int
	ready bool // open was called
}

// note is a line of the list of events.
type note struct {
	at         time.Time
	kind, text string
}

const (
	maxNotes = 64                     // lines of the list
	refresh  = 100 * time.Millisecond // between two pictures of a countdown
)

func newView() *view { return &view{texts: map[string]*text{}, tickets: map[string]*ticket{}} }

// open begins to draw c. The page has the elements that index.html has.
func (v *view) open(c *client) {
	v.client = c
	for _, symbol := range symbols {
		v.tickets[symbol] = newTicket(symbol)
	}
	v.draw = js.FuncOf(func(js.Value, []js.Value) any {
		v.dirty.Store(false)
		v.frame()
		return nil
	})
	v.button("kick", func() { v.note("", "you: dial now"); c.feed.Kick() })
	v.button("check", func() { v.note("", "you: ask the venue"); c.feed.Check() })
	v.mu.Lock()
	v.ready = true
	v.mu.Unlock()
	go func() { // it ends with the page
		for range time.Tick(refresh) {
			if v.client.feed.State() != reconnect.StateReady {
				v.touch() // a countdown goes on
			}
		}
	}()
	v.touch()
}

// button calls f when the button with an id is clicked.
func (v *view) button(id string, f func()) {
	on(element(id), "click", func(js.Value) { f() })
}

// note adds a line to the list of events. Any goroutine may call it.
func (v *view) note(kind, text string) {
	v.mu.Lock()
	if v.notes = append(v.notes, note{time.Now(), kind, text}); len(v.notes) > maxNotes {
		v.notes = v.notes[1:]
	}
	v.mu.Unlock()
	v.touch()
}

// seen takes an event of the stream.
func (v *view) seen(e *event) {
	if seam, ok := errors.AsType[*reconnect.Seam](e.Err); ok && e.Key == "" {
		v.mu.Lock()
		v.seams++
		v.mu.Unlock()
		v.note("seam", fmt.Sprintf("seam after session %d: messages may be missing here (%v)", seam.Session, seam.Reason))
	}
	v.touch()
}

// touch asks for a frame, if none is asked for.
func (v *view) touch() {
	v.mu.Lock()
	ready := v.ready
	v.mu.Unlock()
	if ready && !v.dirty.Swap(true) {
		js.Global().Call("requestAnimationFrame", v.draw)
	}
}

// frame draws everything that has changed.
func (v *view) frame() {
	status, stats := v.client.feed.Status(), v.client.feed.Stats()
	v.set("state", status.State.String())
	element("state").Set("className", "pill "+status.State.String())
	v.set("detail", detail(&status))
	v.set("session", fmt.Sprint(status.Session))
	v.set("received", fmt.Sprint(stats.Received))
	v.set("dials", fmt.Sprint(stats.Dials))
	v.set("probes", fmt.Sprint(stats.Probes))
	v.mu.Lock()
	notes := v.notes
	v.notes = nil
	v.set("seams", fmt.Sprint(v.seams))
	v.mu.Unlock()
	list := element("events")
	for _, n := range notes {
		line := create(list, "li", n.kind)
		create(line, "time", "").Set("textContent", n.at.Format("15:04:05.000"))
		create(line, "span", "").Set("textContent", n.text)
		list.Call("prepend", line)
	}
	for list.Get("childElementCount").Int() > maxNotes {
		list.Get("lastElementChild").Call("remove")
	}
	for symbol, t := range v.tickets {
		b := v.client.view(symbol)
		t.draw(&b, status.State == reconnect.StateReady)
	}
}

// detail says what the connection is doing, and why.
func detail(s *reconnect.Status) string {
	since := time.Since(s.Since).Seconds()
	switch s.State {
	case reconnect.StateReady:
		return ""
	case reconnect.StateWaiting:
		return fmt.Sprintf("try %d in %.1f s (%v): %v", s.Try+1, max(0, time.Until(s.Next).Seconds()), s.Verdict, s.Err)
	case reconnect.StateClosed:
		return fmt.Sprint(s.Err)
	}
	text := fmt.Sprintf("for %.1f s", since)
	if s.Verdict != backoff.ClassOK {
		text += fmt.Sprintf(", after: %v", s.Err)
	}
	return text
}

// set sets the text of an element.
func (v *view) set(id, s string) {
	if v.texts[id] == nil {
		v.texts[id] = &text{element: element(id)}
	}
	v.texts[id].set(s)
}

// text is an element whose text is set only when it changes.
type text struct {
	element js.Value
	last    string
}

func (t *text) set(s string) {
	if s != t.last {
		t.last = s
		t.element.Set("textContent", s)
	}
}

// element returns the element with an id.
func element(id string) js.Value { return js.Global().Get("document").Call("getElementById", id) }

// create adds a new element to parent, at its end.
func create(parent js.Value, tag, class string) js.Value {
	e := js.Global().Get("document").Call("createElement", tag)
	if class != "" {
		e.Set("className", class)
	}
	parent.Call("append", e)
	return e
}
