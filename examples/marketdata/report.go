//go:build !js

package main

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// report measures how the client gets over each trouble, and prints that. It is safe for concurrent
// use.
type report struct {
	out io.Writer

	mu    sync.Mutex // guards the following fields
	rows  []*row
	last  map[string]uint64 // the last number of each book
	stale map[string]bool   // the books that are not right
}

// row is the row of a trouble in the table. A time is zero if the event has not happened.
type row struct {
	what                         string
	begun, noticed, ready, right time.Time
	missed                       uint64 // updates that a snapshot has replaced
}

func newReport(out io.Writer) *report {
	return &report{out: out, last: map[string]uint64{}, stale: map[string]bool{}}
}

// begin appends a row, and prints what happens.
func (r *report) begin(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, &row{what: what, begun: time.Now()})
	fmt.Fprintln(r.out, what)
}

// current returns the last row, or one that is not printed. The caller must hold mu.
func (r *report) current() *row {
	if len(r.rows) == 0 {
		return new(row)
	}
	return r.rows[len(r.rows)-1]
}

// trace returns a Trace that fills in the current row.
func (r *report) trace() *reconnect.Trace {
	return &reconnect.Trace{
		SessionReady: func(*reconnect.Session) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.current().ready = time.Now()
		},
		SessionDone: func(reconnect.SessionDone) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.current().notice()
		},
	}
}

// notice records that the client has noticed the trouble. If the next session was ready before, there
// was none to notice.
func (w *row) notice() {
	if w.noticed.IsZero() && w.ready.IsZero() {
		w.noticed = time.Now()
	}
}

// event fills in the current row by an event of a book.
func (r *report) event(e *books.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case bridge.EventStale:
		r.current().notice()
		r.stale[e.Key] = true
	case bridge.EventSnapshot:
		if before := r.last[e.Key]; before > 0 && e.Last > before {
			r.current().missed += e.Last - before
		}
		r.last[e.Key] = e.Last
	case bridge.EventLive:
		r.last[e.Key] = e.Last
	case bridge.EventHealed:
		delete(r.stale, e.Key)
		if len(r.stale) == 0 {
			r.current().right = time.Now()
		}
	}
}

// table prints the rows and removes them.
func (r *report) table() {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := tabwriter.NewWriter(r.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nwhat happened\tnoticed after\tback after\tmissed and fetched\tbooks right after")
	for _, row := range r.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d updates\t%s\n",
			row.what, row.after(row.noticed), row.after(row.ready), row.missed, row.after(row.right))
	}
	w.Flush()
	r.rows = nil
}

// after returns the time from the beginning of the trouble to at, in whole milliseconds, or "-" if at
// is zero.
func (w *row) after(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return max(at.Sub(w.begun).Round(time.Millisecond), time.Millisecond).String()
}
