//go:build !js

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
)

// room is the state that the members share. Only the goroutine in run uses it. Other
// goroutines pass functions to do, which run calls.
type room struct {
	name    string
	log     *logFile // nil without -log
	print   func(format string, args ...any)
	calls   chan func()
	ended   chan struct{} // closed when run has returned
	failure error         // why it ended by itself; read it after ended

	seq     uint64             // of the last line
	history []message          // the last lines
	authors map[string]*author // by id
	members map[*member]bool
	closing bool
}

// author is a client that is or was in the room.
type author struct {
	id      string
	last    uint64  // the number of its last line
	seen    uint64  // the room's seq when it was here last
	present *member // nil if it is away
}

const (
	historyKept = 500
	historyShow = 10 // lines that a client receives when it joins for the first time
	authorsKept = 10000
)

// openRoom opens a room, and restores it from the log at path if path is not empty.
func openRoom(path string, print func(format string, args ...any)) (*room, error) {
	r := &room{
		name: rand.Text(), print: print, calls: make(chan func()), ended: make(chan struct{}),
		authors: map[string]*author{}, members: map[*member]bool{},
	}
	if path == "" {
		return r, nil
	}
	log, name, err := openLogFile(path, r.restore)
	if err != nil {
		return nil, err
	}
	r.log, r.name = log, name
	return r, nil
}

func (r *room) restore(m message) error {
	if m.Seq != r.seq+1 {
		return fmt.Errorf("line %d of the room follows line %d", m.Seq, r.seq)
	}
	r.keep(r.author(m.From), m)
	return nil
}

// run calls the functions passed to do, until ctx ends or a write to the log fails.
func (r *room) run(ctx context.Context) {
	defer close(r.ended)
	defer r.log.close()
	for r.failure == nil {
		select {
		case f := <-r.calls:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// do passes f to the goroutine in run. It does not wait for f. It returns false if the room has
// ended, so that f will not run. The functions of one goroutine run in order.
func (r *room) do(f func()) bool {
	select {
	case r.calls <- f:
		return true
	case <-r.ended:
		return false
	}
}

// join lets m in. If the same client has an older connection, which may be half-open, m takes
// its place.
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

// since returns the lines to send to a client that joins, and how many more it has missed.
func (r *room) since(hello message) (lines []message, missed uint64) {
	unseen := r.seq
	switch {
	case hello.Room == "": // the first time
		return r.history[max(len(r.history)-historyShow, 0):], 0
	case hello.Room == r.name && hello.Seen <= r.seq: // if it has seen more lines than there are, the log has lost its end
		unseen -= hello.Seen
	}
	n := min(unseen, uint64(len(r.history)))
	return r.history[uint64(len(r.history))-n:], unseen - n
}

// say logs a line of m, sends it to all members and acknowledges it. If the line was said
// before, say only acknowledges it.
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
	if err := r.log.append(line); err != nil {
		r.failure = err // the line is not acknowledged
		return
	}
	r.keep(a, line)
	data := encode(line).Data
	for each := range r.members {
		r.queue(each, data)
	}
	r.send(m, message{Type: "ack", ID: id})
}

// keep records a line and its number.
func (r *room) keep(a *author, line message) {
	r.seq, a.last, a.seen = line.Seq, line.ID, line.Seq
	if len(r.history) >= historyKept {
		r.history = slices.Delete(r.history, 0, 1)
	}
	r.history = append(r.history, line)
}

// who sends m the names of all members.
func (r *room) who(m *member) {
	var names []string
	for each := range r.members {
		names = append(names, each.name)
	}
	slices.Sort(names)
	r.send(m, message{Type: "who", Names: names})
}

// author returns the author with this id. If it is new and there are too many, the room
// forgets the author that has been away for longest.
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

// queue queues a message for m. If the queue is full, m is cut off. Its client will join again
// and receive what it has missed.
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

// leave removes m after its connection has ended.
func (r *room) leave(m *member) {
	if r.members[m] {
		r.print("%s is gone", m.name)
		r.dismiss(m)
	}
}

// dismiss removes m. The writer of m sends what is queued and then closes the connection.
func (r *room) dismiss(m *member) {
	delete(r.members, m)
	m.author.present, m.author.seen = nil, r.seq
	close(m.queue)
}

// farewell dismisses all members and lets no more join.
func (r *room) farewell() {
	r.closing = true
	for m := range r.members {
		r.dismiss(m)
	}
}
