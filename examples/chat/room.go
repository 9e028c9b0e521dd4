//go:build !js

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
)

// room is what the members share. One goroutine, in run, owns it: the others ask it
// to do things.
type room struct {
	name    string
	book    *logbook // nil: none
	print   func(format string, args ...any)
	asked   chan func()
	ended   chan struct{} // closed when run has returned
	failure error         // why it ended by itself; to be read after ended

	seq     uint64    // of the last line
	history []message // the last lines
	authors map[string]*author
	members map[*member]bool
	closing bool
}

// author is somebody who is here, or was.
type author struct {
	id      string
	last    uint64  // number that was said
	seen    uint64  // the room's seq when he was last here
	present *member // nil: away
}

const (
	historyKept = 500
	historyShow = 10 // to those who come for the first time
	authorsKept = 10000
)

// openRoom opens a room, with what the log at path says if path is not empty.
func openRoom(path string, print func(format string, args ...any)) (*room, error) {
	r := &room{
		name: rand.Text(), print: print, asked: make(chan func()), ended: make(chan struct{}),
		authors: map[string]*author{}, members: map[*member]bool{},
	}
	if path == "" {
		return r, nil
	}
	book, name, err := openLogbook(path, r.restore)
	if err != nil {
		return nil, err
	}
	r.book, r.name = book, name
	return r, nil
}

func (r *room) restore(m message) error {
	if m.Seq != r.seq+1 {
		return fmt.Errorf("line %d of the room follows line %d", m.Seq, r.seq)
	}
	r.keep(r.author(m.From), m)
	return nil
}

// run does what it is asked until ctx ends, or the log cannot be written.
func (r *room) run(ctx context.Context) {
	defer close(r.ended)
	defer r.book.close()
	for r.failure == nil {
		select {
		case f := <-r.asked:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// do has f run by the owner, and reports whether it will be. It does not wait for
// that. What one goroutine asks for is done in order.
func (r *room) do(f func()) bool {
	select {
	case r.asked <- f:
		return true
	case <-r.ended:
		return false
	}
}

// join lets m in, who says hello. A newer connection of somebody takes the place of
// the older, which may be a ghost.
func (r *room) join(m *member, hello message) {
	if r.closing || len(r.members) >= maxNames {
		m.cut()
		return
	}
	a := r.author(authorOf(hello.Client))
	if a.present != nil {
		r.dismiss(a.present)
	}
	m.name, m.author, a.present = hello.Name, a, m
	r.members[m] = true
	lines, missed := r.since(hello)
	r.print("%s is here", m.name)
	r.send(m, message{Type: "welcome", Room: r.name, ID: a.last, Seq: r.seq - uint64(len(lines)), Missed: missed})
	for _, line := range lines {
		r.send(m, line)
	}
}

// since returns the lines that somebody wants to hear, and how many more there were.
func (r *room) since(hello message) (lines []message, missed uint64) {
	unseen := r.seq
	switch {
	case hello.Room == "": // the first time
		return r.history[max(len(r.history)-historyShow, 0):], 0
	case hello.Room == r.name && hello.Seen <= r.seq: // more than there are: a log that has lost its end
		unseen -= hello.Seen
	}
	n := min(unseen, uint64(len(r.history)))
	return r.history[uint64(len(r.history))-n:], unseen - n
}

// say says a line of m to everybody, unless it was said before, and acknowledges it.
func (r *room) say(m *member, id uint64, text string) {
	if !r.members[m] {
		return
	}
	a := m.author
	if id <= a.last {
		r.print("%s sent number %d again, which is dropped", m.name, id)
		r.send(m, message{Type: "ack", ID: a.last})
		return
	}
	line := message{Type: "line", Seq: r.seq + 1, From: a.id, ID: id, Name: m.name, Text: text}
	if err := r.book.append(line); err != nil {
		r.failure = err // and nobody is told that it was said
		return
	}
	r.keep(a, line)
	data := encode(line).Data
	for each := range r.members {
		r.queue(each, data)
	}
	r.send(m, message{Type: "ack", ID: id})
}

// keep remembers a line.
func (r *room) keep(a *author, line message) {
	r.seq, a.last, a.seen = line.Seq, line.ID, line.Seq
	if len(r.history) >= historyKept {
		r.history = slices.Delete(r.history, 0, 1)
	}
	r.history = append(r.history, line)
}

// who tells m who is here.
func (r *room) who(m *member) {
	var names []string
	for each := range r.members {
		names = append(names, each.name)
	}
	slices.Sort(names)
	r.send(m, message{Type: "who", Names: names})
}

// author returns the one with this id. Of those who are away the one who was here
// last is forgotten last.
func (r *room) author(id string) *author {
	a := r.authors[id]
	if a != nil {
		return a
	}
	if len(r.authors) >= authorsKept {
		oldest, seen := "", uint64(math.MaxUint64)
		for id, a := range r.authors {
			if a.present == nil && a.seen < seen {
				oldest, seen = id, a.seen
			}
		}
		delete(r.authors, oldest)
	}
	a = &author{id: id, seen: r.seq}
	r.authors[id] = a
	return a
}

func (r *room) send(m *member, what message) { r.queue(m, encode(what).Data) }

// queue queues a message for m, who is dismissed if he is too slow: he will come back,
// and hear what he has missed.
func (r *room) queue(m *member, data []byte) {
	if !r.members[m] {
		return
	}
	select {
	case m.queue <- data:
	default:
		r.print("%s reads too slowly and is cut off", m.name)
		r.dismiss(m)
		m.cut()
	}
}

// leave notes that m has gone.
func (r *room) leave(m *member) {
	if r.members[m] {
		r.print("%s is gone", m.name)
		r.dismiss(m)
	}
}

// dismiss forgets m. His writer says goodbye after what is queued.
func (r *room) dismiss(m *member) {
	delete(r.members, m)
	m.author.present, m.author.seen = nil, r.seq
	close(m.queue)
}

// farewell dismisses everybody.
func (r *room) farewell() {
	r.closing = true
	for m := range r.members {
		r.dismiss(m)
	}
}
