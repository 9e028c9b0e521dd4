//go:build !js

package main

import (
	"fmt"
	"sync"

	"github.com/redial-go/redial/reconnect/replay"
)

// audit checks what a client applies to its books: after a snapshot each update once and in
// order, and nothing of an old session. Any goroutine may call its methods.
type audit struct {
	mu    sync.Mutex        // guards what follows
	books map[string]place  // of each book
	conns map[uint64]uint64 // the venue's number for the connection of a session
	err   error             // the first error
}

// place is how far a book is.
type place struct {
	seq, session uint64 // of the last message
	valid        bool   // nothing is missing
}

// orderError says that an update was applied to a stale book, twice, or before its turn.
type orderError struct {
	book      string
	want, got uint64
}

func (e *orderError) Error() string {
	return fmt.Sprintf("%s: update %d was applied where %d was due", e.book, e.got, e.want)
}

// oldError says that a message of an old session was applied, or one of another connection
// than that of its session.
type oldError struct{ session, conn, of, ofConn uint64 }

func (e *oldError) Error() string {
	return fmt.Sprintf("message of session %d (connection %d) after one of session %d (%d)", e.session, e.conn, e.of, e.ofConn)
}

func newAudit() *audit {
	return &audit{books: map[string]place{}, conns: map[uint64]uint64{}}
}

// event checks an event that was applied. It reports whether that has made a book valid, and how
// many updates the book has missed. A book that is wanted anew has missed what came meanwhile.
func (a *audit) event(e *event) (resync bool, missed uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.books[e.Key]
	switch e.Kind {
	case replay.Stale:
		a.books[e.Key] = place{was.seq, was.session, false}
	case replay.Live, replay.Snapshot:
		if a.err == nil {
			a.err = a.check(e, was)
		}
		resync = e.Kind == replay.Snapshot && !was.valid
		if resync && was.seq > 0 && e.Last > was.seq {
			missed = e.Last - was.seq
		}
		a.books[e.Key] = place{e.Last, e.Session, was.valid || resync}
	}
	return resync, missed
}

// check returns what is wrong with an update or a snapshot. The caller holds mu.
func (a *audit) check(e *event, was place) error {
	if a.conns[e.Session] == 0 {
		a.conns[e.Session] = e.Value.Conn
	}
	switch {
	case e.Session < was.session, e.Value.Conn != a.conns[e.Session]:
		return &oldError{e.Session, e.Value.Conn, was.session, a.conns[was.session]}
	case e.Kind == replay.Live && (!was.valid || e.Last != was.seq+1):
		return &orderError{e.Key, was.seq + 1, e.Last}
	}
	return nil
}

// result returns the first error.
func (a *audit) result() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}
