package call

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Client sends requests over one [reconnect.Conn]. K is the type of the IDs. A Client is safe for concurrent
// use. It needs no Close: it ends with its Conn.
type Client[K comparable] struct {
	o     Options[K]
	layer reconnect.Layer
	last  atomic.Uint64                  // the newest number of Next
	conn  atomic.Pointer[reconnect.Conn] // set once, by start

	changed xsync.Signal // the line is empty, a session is ready or has ended, or the Conn has

	mu        sync.Mutex         // guards what follows; held neither while a question waits nor in a function of the user
	questions map[K]*question[K] // those without an answer
	line      line[K]            // of the questions that were lost and go again
	givenUp   givenUp[K]         // ids that must not be used again yet
	ready     uint64             // the newest session that is ready; 0: none is
	order     uint64             // of the newest question
	ended     error              // why the Conn has ended; nil: it has not
	counts    Stats              // without InFlight and Reserved
}

// Options are the options of [New]. ID must be set.
type Options[K comparable] struct {
	// ID returns the ID in a response, and reports whether m is a response to a request of this Client. Any
	// other message goes on to the reader of the Conn. ID is called with each message, in the goroutine that
	// reads the session, so it must be quick and must not keep the data.
	ID func(m reconnect.Message) (id K, ok bool)

	// InFlight is the maximum number of requests without a response, including those that wait for a session,
	// and also of reserved IDs of requests that were given up. Default: 1024. Negative: an error.
	InFlight int

	// Late is called with each late response, in the goroutine that reads the session. It must be quick, and
	// must not call Do, because the same goroutine would have to read the response. The data is valid until
	// Late returns. Default: late responses are only counted.
	Late func(m reconnect.Message)
}

const defaultInFlight = 1024

// New returns a Client. Put its Layer into [reconnect.Options].Layers of one Conn. The error names the wrong
// option. New copies o.
func New[K comparable](o *Options[K]) (*Client[K], error) {
	switch {
	case o == nil || o.ID == nil:
		return nil, errors.New("call: Options.ID is missing")
	case o.InFlight < 0:
		return nil, fmt.Errorf("call: Options.InFlight: %d is negative", o.InFlight)
	}
	c := &Client[K]{o: *o, questions: make(map[K]*question[K])}
	c.o.InFlight = cmp.Or(o.InFlight, defaultInFlight)
	c.givenUp.limit = c.o.InFlight
	c.layer = reconnect.Layer{Start: c.start, Ready: c.begun, Receive: c.receive, Lost: c.lost, End: c.end}
	return c, nil
}

// Layer returns the layer that connects c with its Conn, always the same. [reconnect.New] returns an error for
// a second Conn with this layer.
func (c *Client[K]) Layer() *reconnect.Layer { return &c.layer }

// Next returns 1, 2, 3 and so on, never a number twice, for a program that numbers its requests.
func (c *Client[K]) Next() uint64 { return c.last.Add(1) }

// Stats are the counts of a [Client] since [New]. Each request in Asked is in one of InFlight, Answered, Lost
// and GivenUp.
type Stats struct {
	InFlight int // requests without a response now
	Reserved int // IDs of requests that were given up and may still be answered

	Asked    uint64 // requests that were admitted
	Refused  uint64 // requests rejected with ErrTooMany or ErrIDInUse
	Answered uint64 // requests that got their response
	Lost     uint64 // requests that ended with a *LostError
	GivenUp  uint64 // requests that ended in another way, such as by their context
	Repeated uint64 // times a Repeatable request was sent again in another session

	Late      uint64 // responses that no request waited for
	Forgotten uint64 // reserved IDs forgotten because there were more than Options.InFlight
}

// Stats returns the counts.
func (c *Client[K]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.counts
	s.InFlight, s.Reserved = len(c.questions), c.givenUp.len()
	return s
}

// The rest are the functions of the layer.

func (c *Client[K]) start(on *reconnect.Conn) error {
	if !c.conn.CompareAndSwap(nil, on) {
		return errors.New("call: the Client has a Conn already: make a Client for each Conn")
	}
	return nil
}

// begun notes that questions can go by a session.
func (c *Client[K]) begun(session uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = session
	c.changed.Broadcast()
}

// receive takes the answers out of the stream.
func (c *Client[K]) receive(m reconnect.Message) bool {
	id, ok := c.o.ID(m)
	if !ok {
		return false
	}
	if q := c.take(id, m.Session); q != nil {
		q.answer = m
		q.answer.Data = make([]byte, len(m.Data))
		copy(q.answer.Data, m.Data)
		close(q.done)
	} else {
		c.late(m)
	}
	return true
}

// late counts an answer that no question waits for, and gives it to Options.Late.
func (c *Client[K]) late(m reconnect.Message) {
	c.mu.Lock()
	c.counts.Late++
	c.mu.Unlock()
	if c.o.Late != nil {
		c.o.Late(m)
	}
}

// take returns the question that has this id and was asked by this session, which has its answer
// now; or nil if there is none.
func (c *Client[K]) take(id K, session uint64) *question[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.questions[id]
	if q == nil || q.session != session {
		c.givenUp.remove(asked[K]{session, id})
		return nil
	}
	c.remove(q)
	q.answered = true
	c.counts.Answered++
	return q
}

// lost ends the questions that were asked by a session, or lets them go again.
func (c *Client[K]) lost(session uint64, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready == session {
		c.ready = 0
	}
	c.givenUp.removeAll(session)
	c.lose(cause, func(q *question[K]) bool { return q.session == session })
}

// end ends all questions. A question has a session then only if a callback has ended the goroutine
// that would have called lost.
func (c *Client[K]) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	c.lose(err, func(q *question[K]) bool { return q.session != 0 })
}

// lose takes the session away from some questions. Do does the rest. The caller holds mu.
func (c *Client[K]) lose(cause error, which func(*question[K]) bool) {
	var again []*question[K]
	for _, q := range c.questions {
		if !which(q) {
			continue
		}
		q.session, q.cause = 0, cause
		if q.repeatable {
			q.turn = q.done // so that its goroutine sleeps until q has the turn
			again = append(again, q)
		} else {
			close(q.done)
		}
	}
	slices.SortFunc(again, func(a, b *question[K]) int { return cmp.Compare(a.order, b.order) })
	for _, q := range again { // here, because another session may be ready, and the goroutines of Do come in any order
		c.line.join(q)
	}
	c.line.wake()
	c.changed.Broadcast()
}

// remove removes q from the questions in flight. The caller holds mu.
func (c *Client[K]) remove(q *question[K]) {
	delete(c.questions, q.id)
	c.leaveLine(q)
}

// leaveLine takes q out of the line, if it is there. The caller holds mu.
func (c *Client[K]) leaveLine(q *question[K]) {
	if c.line.leave(q) && c.line.Len() == 0 {
		c.changed.Broadcast()
	}
}
