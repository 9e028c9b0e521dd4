package debug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A page that is open in a browser gets its changes as server-sent events. Each event is a message,
// and the script of the page puts its parts in their places.

const (
	streamsMost  = 16                     // a page beyond that says so and tries again
	streamPeriod = 500 * time.Millisecond // between two updates
	streamLimit  = 5 * time.Second        // for one write: a browser that does not read loses its stream
	streamAlive  = 15 * time.Second       // a sign of life while nothing changes, so that a lost browser is noticed
)

// message is one event.
type message struct {
	Boot  string            `json:"boot"`
	Now   int64             `json:"now"`             // Unix milliseconds
	Parts map[string]string `json:"parts,omitempty"` // by the element: the parts and rows that have changed
	Order []string          `json:"order,omitzero"`  // the elements of all rows, in order; nil: as before, or there are none
}

// stream is what one open page has.
type stream struct {
	page  *Page
	q     *query
	parts map[string]string // nil: nothing yet
	order []string
}

// enter takes a place for a stream. It returns false if there is none.
func (p *Page) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() || p.streams == streamsMost {
		return false
	}
	p.streams++
	p.running.Add(1)
	return true
}

// leave gives a place back.
func (p *Page) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams--
	p.running.Done()
}

// serveStream sends changes until the browser is gone or the Page is closed.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request, q *query) {
	if !p.enter() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("too many pages are open: %d at most are updated", streamsMost), http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	s := &stream{page: p, q: q}
	control := http.NewResponseController(w)
	tick := time.NewTicker(streamPeriod)
	defer tick.Stop()
	quiet := time.Now()
	for {
		data := s.next(time.Now())
		if data == nil && time.Since(quiet) >= streamAlive {
			data = []byte(": alive\n\n")
		}
		if data != nil {
			quiet = time.Now()
			_ = control.SetWriteDeadline(quiet.Add(streamLimit)) // not all writers have one
			if _, err := w.Write(data); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// next returns the event that brings the browser to what is true now, nil if nothing has changed.
func (s *stream) next(now time.Time) []byte {
	v := s.page.view(s.q, now)
	all, order := s.render(v)
	m := message{Boot: s.page.boot, Now: now.UnixMilli(), Parts: map[string]string{}}
	for id, html := range all {
		if old, ok := s.parts[id]; !ok || old != html {
			m.Parts[id] = html
		}
	}
	if s.parts == nil || !slices.Equal(order, s.order) {
		m.Order = order
	}
	if s.parts != nil && len(m.Parts) == 0 && m.Order == nil {
		return nil
	}
	s.parts, s.order = all, order
	data, _ := json.Marshal(m) // strings and numbers have no error
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// render returns the parts of the page, with the rows, and the order of the rows.
func (s *stream) render(v *view) (all map[string]string, order []string) {
	all = map[string]string{}
	add := func(id, name string, data any) {
		var b strings.Builder
		render(&b, parts, name, data)
		all[id] = b.String()
	}
	if v.Detail {
		add("detail", "detail", v)
		return all, nil
	}
	for _, name := range []string{"about", "summary", "others", "pager"} {
		add(name, name, v)
	}
	order = []string{}
	for i := range v.Conns {
		c := &v.Conns[i]
		id := fmt.Sprintf("c%d", c.ID)
		add(id, "row", c)
		order = append(order, id)
	}
	return all, order
}
