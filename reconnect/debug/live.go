package debug

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A page that is open in a browser gets its changes as server-sent events. Each event is a message,
// and the script of the page puts its parts in their places.

const (
	streamLimit = 5 * time.Second  // for one write: a browser that does not read loses its stream
	streamAlive = 15 * time.Second // a sign of life while nothing changes, so that a lost browser is noticed
)

// message is one event. Parts that have not changed are left out.
type message struct {
	Boot  string            `json:"boot"`
	Now   int64             `json:"now"` // Unix milliseconds
	Parts map[string]string `json:"parts,omitempty"`
	Order []string          `json:"order,omitzero"` // the elements of all rows, in order; nil: as before, or there are none
	Rows  map[string]string `json:"rows,omitempty"`
}

// stream is what one open page has.
type stream struct {
	page  *Page
	q     *query
	parts map[string]string
	rows  map[string]string
	order []string
	began bool
}

// enter takes a place for a stream. It returns false if there is none.
func (p *Page) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
		return false
	default:
	}
	select {
	case p.streams <- struct{}{}:
		p.running.Add(1)
		return true
	default:
		return false
	}
}

// leave gives a place back.
func (p *Page) leave() {
	<-p.streams
	p.running.Done()
}

// serveStream sends changes until the browser is gone or the Page is closed.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request, q *query) {
	if !p.enter() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages are open: debug.Options.Streams is the limit", http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	s := &stream{page: p, q: q}
	control := http.NewResponseController(w)
	tick := time.NewTicker(p.o.Interval)
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
		case <-p.closing:
			return
		}
	}
}

// next returns the event that brings the browser to what is true now, nil if nothing has changed.
func (s *stream) next(now time.Time) []byte {
	v := s.page.view(s.q, now)
	m := message{Boot: s.page.boot, Now: now.UnixMilli()}
	if v.Detail {
		s.part(&m, v, "detail")
	} else {
		for _, name := range []string{"summary", "others", "pager"} {
			s.part(&m, v, name)
		}
		s.table(&m, v)
	}
	if s.began && m.Parts == nil && m.Order == nil {
		return nil
	}
	s.began = true
	data, err := json.Marshal(m)
	if err != nil {
		return nil // strings and numbers have no such error
	}
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// part adds a part of the page, if it has changed.
func (s *stream) part(m *message, v *view, name string) {
	var b strings.Builder
	render(&b, parts, name, v)
	html := b.String()
	if old, ok := s.parts[name]; ok && old == html {
		return
	}
	if s.parts == nil {
		s.parts = map[string]string{}
	}
	if m.Parts == nil {
		m.Parts = map[string]string{}
	}
	s.parts[name], m.Parts[name] = html, html
}

// table adds the rows that have changed, and the order of all if there are such rows or the
// order is another.
func (s *stream) table(m *message, v *view) {
	rows, order := make(map[string]string, len(v.Rows)), make([]string, len(v.Rows))
	same := s.began && len(order) == len(s.order)
	for i, r := range v.Rows {
		var b strings.Builder
		render(&b, parts, "row", r)
		id, html := "c"+strconv.FormatUint(r.ID, 10), b.String()
		order[i], rows[id] = id, html
		same = same && s.order[i] == id
		if old, ok := s.rows[id]; !ok || old != html {
			if m.Rows == nil {
				m.Rows = map[string]string{}
			}
			m.Rows[id] = html
		}
	}
	if !same || m.Rows != nil {
		m.Order = order
	}
	s.rows, s.order = rows, order
}
