package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
)

// room is the state that the members share. Only the goroutine in run uses it. Other
// goroutines pass functions to do, which run calls.
type room struct {
	name    string
	print   func(format string, args ...any)
	log     *os.File // a message per line, the first one a welcome with the name of the room; nil without -log
	calls   chan func()
	ended   chan struct{} // closed when run has returned
	failure error         // why it ended by itself; read it after ended

	seq     uint64             // of the last line
	history []message          // the last lines
	last    map[string]uint64  // the number of the last line of each author
	members map[string]*member // by author
}

// member is one connection of a client in the room.
type member struct {
	name, author string
	queue        chan []byte // the room sends to it, and closes it when m is not a member any more
	cut          context.CancelFunc
}

const (
	historyKept = 500
	historyShow = 10 // lines that a client receives when it joins for the first time
	authorsKept = 10000

	// queueLength is how many messages may wait for a member: the whole history, and an
	// acknowledgement of each line that a client may send again before it reads.
	queueLength = historyKept + maxUnsaid + 500
)

// openRoom opens a room, and restores it from the log at path if path is not empty.
func openRoom(path string, print func(format string, args ...any)) (*room, error) {
	r := &room{
		name: rand.Text(), print: print, calls: make(chan func()), ended: make(chan struct{}),
		last: map[string]uint64{}, members: map[string]*member{},
	}
	if path == "" {
		return r, nil
	}
	var err error
	if r.log, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if err = r.restore(path); err != nil {
		r.log.Close()
		return nil, fmt.Errorf("log %s: %w", path, err)
	}
	return r, nil
}

// restore reads the log, which may be empty. It cuts off an incomplete last line, because the room
// has not acknowledged that.
func (r *room) restore(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	begin := encode(message{Type: "welcome", Room: r.name})
	if len(data) > 0 && !bytes.HasPrefix(data, begin.Data[:len(`{"type":"welcome"`)]) {
		return errors.New("it is not a chat log")
	}
	if whole == 0 {
		return errors.Join(r.log.Truncate(0), r.append(begin.Data))
	}
	n := 0
	for line := range bytes.Lines(data[:whole]) {
		n++
		m, err := decode(bytes.TrimSpace(line))
		switch {
		case err != nil:
		case n == 1:
			r.name = m.Room
		case m.Type != "line" || m.Seq != r.seq+1:
			err = fmt.Errorf("%q %d follows line %d of the room", m.Type, m.Seq, r.seq)
		default:
			r.keep(m)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r.log.Truncate(int64(whole))
}

// append writes a message to the log. When it has returned nil, the message survives the process.
func (r *room) append(data []byte) error {
	if r.log == nil {
		return nil
	}
	_, err := r.log.Write(append(slices.Clone(data), '\n'))
	return err
}

// run calls the functions passed to do, until ctx ends or a write to the log fails.
func (r *room) run(ctx context.Context) {
	defer close(r.ended)
	if r.log != nil {
		defer r.log.Close()
	}
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
	r.dismiss(r.members[m.author])
	if _, known := r.last[m.author]; !known {
		r.forget()
		r.last[m.author] = 0
	}
	r.members[m.author] = m
	lines, missed := r.since(hello)
	r.print("%s is here", m.name)
	r.send(m, message{Type: "welcome", Room: r.name, ID: r.last[m.author], Seq: r.seq - uint64(len(lines)), Missed: missed})
	for _, line := range lines {
		r.send(m, line)
	}
}

// forget forgets an author without a connection, if there are too many authors.
func (r *room) forget() {
	for author := range r.last {
		if len(r.last) < authorsKept {
			return
		}
		if r.members[author] == nil {
			delete(r.last, author)
		}
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
	if r.members[m.author] != m {
		return
	}
	if id > r.last[m.author] {
		line := message{Type: "line", Seq: r.seq + 1, From: m.author, ID: id, Name: m.name, Text: text}
		if r.failure = r.append(encode(line).Data); r.failure != nil {
			return // the line is not acknowledged
		}
		r.keep(line)
		for _, each := range r.members {
			r.send(each, line)
		}
	}
	r.send(m, message{Type: "ack", ID: r.last[m.author]})
}

// keep records a line and its number.
func (r *room) keep(line message) {
	r.seq, r.last[line.From] = line.Seq, line.ID
	if len(r.history) >= historyKept {
		r.history = slices.Delete(r.history, 0, 1)
	}
	r.history = append(r.history, line)
}

// send queues a message for m. If the queue is full, m is cut off. Its client will join again
// and receive what it has missed.
func (r *room) send(m *member, what message) {
	if r.members[m.author] != m {
		return
	}
	select {
	case m.queue <- encode(what).Data:
	default:
		r.print("%s reads too slowly and is cut off", m.name)
		r.dismiss(m)
		m.cut()
	}
}

// dismiss removes m, if it is a member. The writer of m sends what is queued and then closes the
// connection.
func (r *room) dismiss(m *member) {
	if m != nil && r.members[m.author] == m {
		delete(r.members, m.author)
		close(m.queue)
		r.print("%s is gone", m.name)
	}
}
