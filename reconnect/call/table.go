package call

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect"
)

// Table has the questions of one [reconnect.Conn] that wait for their answers. Any goroutine may
// call its methods. It needs no Close: it ends with its Conn. The type K is that of the ids.
type Table[K comparable] struct {
	o     Options[K]
	layer reconnect.Layer
	last  atomic.Uint64                  // the newest number of Next
	conn  atomic.Pointer[reconnect.Conn] // set once, by start

	mu        sync.Mutex         // guards what follows; held neither while a question waits nor in a function of the user's
	questions map[K]*question[K] // those without an answer
	line      line[K]            // of the questions that were lost and go again
	givenUp   givenUp[K]         // ids that must not be used again yet
	ready     uint64             // the newest session that is ready; 0: none is
	order     uint64             // of the newest question
	ended     error              // why the Conn has ended; nil: it has not
	counts    Stats              // but for InFlight and Reserved
	changed   chan struct{}      // closed, and made anew, when the line is empty, a session is ready or has ended, or the Conn has
}

// Options are the options of [New]. ID must be set.
type Options[K comparable] struct {
	// ID returns the id in an answer, and reports whether m is one. It is called with each
	// message, in the goroutine that reads the session, so it must be quick, and must not
	// keep the data. It must report false for what is no answer to a question of this table:
	// events, the peer's own questions, and answers to what others have asked by the
	// same connection. Those go on to the reader of the Conn.
	ID func(m reconnect.Message) (id K, ok bool)

	// InFlight is how many questions may be without an answer, those that wait for a session
	// included. Beside them as many ids are remembered of questions that were given up.
	// Default: 1024. Negative: an error.
	InFlight int

	// Late is called with each answer that no question waits for, in the goroutine that
	// reads the session, so it must be quick, and must not call Do, whose answer that
	// goroutine would have to read. The data is valid until it returns. Late answers never
	// reach the reader of the Conn. Default: they are only counted.
	Late func(m reconnect.Message)
}

const defaultInFlight = 1024

func (o *Options[K]) withDefaults() (Options[K], error) {
	var with Options[K]
	if o != nil {
		with = *o
	}
	switch {
	case with.ID == nil:
		return with, errors.New("call: Options.ID is missing")
	case with.InFlight < 0:
		return with, fmt.Errorf("call: Options.InFlight: %d is negative", with.InFlight)
	case with.InFlight == 0:
		with.InFlight = defaultInFlight
	}
	return with, nil
}

// New returns an empty table. Its Layer belongs into [reconnect.Options].Layers of one Conn. The
// error names the option that is wrong. o is copied.
func New[K comparable](o *Options[K]) (*Table[K], error) {
	with, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Table[K]{o: with, questions: make(map[K]*question[K]), changed: make(chan struct{})}
	t.givenUp.limit = with.InFlight
	t.layer = reconnect.Layer{Start: t.start, Ready: t.begun, Receive: t.receive, Lost: t.lost, End: t.end}
	return t, nil
}

// Layer returns what connects the table with its Conn. It is the same at each call. A second Conn
// with it is an error of [reconnect.New].
func (t *Table[K]) Layer() *reconnect.Layer { return &t.layer }

// Next returns 1, 2, 3 and so on, for a program that numbers its questions. No number comes twice
// from one table.
func (t *Table[K]) Next() uint64 { return t.last.Add(1) }

// Stats are the counts of a table since New. Each question of Asked is one of InFlight,
// Answered, Lost or GivenUp.
type Stats struct {
	InFlight int // questions without an answer now
	Reserved int // ids of questions that were given up, and that their session may still answer

	Asked    uint64 // questions that were let in
	Refused  uint64 // questions that were not, because of ErrTableFull or ErrIDInUse
	Answered uint64 // that got their answer
	Lost     uint64 // that ended with a *LostError
	GivenUp  uint64 // that ended in another way, such as by their context
	Repeated uint64 // how many times a Repeatable question went again by another session

	Late      uint64 // answers that no question waited for
	Forgotten uint64 // ids of questions given up that were forgotten, because too many were Reserved
}

// Stats returns the counts.
func (t *Table[K]) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.counts
	s.InFlight, s.Reserved = len(t.questions), t.givenUp.len()
	return s
}

// The rest are the functions of the layer.

var errSecondConn = errors.New("call: the Layer of a Table belongs to one Conn, and has one already")

func (t *Table[K]) start(c *reconnect.Conn) error {
	if !t.conn.CompareAndSwap(nil, c) {
		return errSecondConn
	}
	return nil
}

// changes returns a channel that is closed at the next change.
func (t *Table[K]) changes() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// broadcast wakes the questions that wait for a change. The caller holds mu.
func (t *Table[K]) broadcast() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// begun notes that questions can go by a session.
func (t *Table[K]) begun(session uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready = session
	t.broadcast()
}

// receive takes the answers out of the stream.
func (t *Table[K]) receive(m reconnect.Message) bool {
	id, ok := t.o.ID(m)
	if !ok {
		return false
	}
	if q := t.take(id, m.Session); q != nil {
		q.answer = m
		q.answer.Data = make([]byte, len(m.Data))
		copy(q.answer.Data, m.Data)
		close(q.done)
	} else if t.o.Late != nil {
		t.o.Late(m)
	}
	return true
}

// take returns the question that has this id and was asked by this session, which has its answer
// now; or nil if there is none.
func (t *Table[K]) take(id K, session uint64) *question[K] {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.questions[id]
	if q == nil || q.session != session {
		t.counts.Late++
		t.givenUp.remove(asked[K]{session, id})
		return nil
	}
	t.remove(q)
	q.answered = true
	t.counts.Answered++
	return q
}

// lost ends the questions that were asked by a session, or lets them go again.
func (t *Table[K]) lost(session uint64, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready == session {
		t.ready = 0
	}
	t.givenUp.removeAll(session)
	t.lose(cause, func(q *question[K]) bool { return q.session == session })
}

// end ends all questions. Those of a session are there only if a callback has ended the
// goroutine that would have called lost.
func (t *Table[K]) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.ready = err, 0
	t.lose(err, func(q *question[K]) bool { return q.session != 0 })
}

// lose takes their session from some questions. Do does the rest. The caller holds mu.
func (t *Table[K]) lose(cause error, which func(*question[K]) bool) {
	for _, q := range t.questions {
		if !which(q) {
			continue
		}
		q.session, q.cause = 0, cause
		if q.repeatable {
			t.line.join(q) // here, because another session may be ready, and the goroutines of Do come in any order
		}
		close(q.done)
	}
	t.broadcast()
}

// remove takes q out of the table. The caller holds mu.
func (t *Table[K]) remove(q *question[K]) {
	delete(t.questions, q.id)
	t.leaveLine(q)
}

// leaveLine takes q out of the line, if it is there. The caller holds mu.
func (t *Table[K]) leaveLine(q *question[K]) {
	if t.line.leave(q) && len(t.line) == 0 {
		t.broadcast()
	}
}
