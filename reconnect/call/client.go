package call

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect"
)

// Client sends requests over one [reconnect.Conn]. K is the type of the IDs. A Client is safe for concurrent
// use. It needs no Close: it ends with its Conn.
type Client[K comparable] struct {
	o     Options[K]
	layer reconnect.Layer
	last  atomic.Uint64                  // newest number of Next
	conn  atomic.Pointer[reconnect.Conn] // set once, by start

	mu       sync.Mutex             // guards the rest; held neither in a wait nor in a function of the user
	inFlight map[K]*pending[K]      // requests without a response
	line     queue[K]               // those that are repeated, or wait for a session to be sent
	reserved map[key[K]]*pending[K] // requests that were given up and that their session may still answer
	givenUp  queue[K]               // the same
	order    uint64                 // number of the newest entry of a queue
	ended    error                  // why the Conn has ended, or nil
	counts   Stats                  // without InFlight and Reserved
}

// key is the ID of a request, and the session that is to respond.
type key[K comparable] struct {
	session uint64
	id      K
}

// Options are the options of [New]. ID must be set.
type Options[K comparable] struct {
	// ID returns the ID in a response, and reports whether m is a response to a request of this Client. ID is
	// called with each message, in the goroutine that reads the session, so it must be quick and must not keep
	// the data.
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
	c := &Client[K]{o: *o}
	c.inFlight, c.reserved = make(map[K]*pending[K]), make(map[key[K]]*pending[K])
	c.o.InFlight = cmp.Or(o.InFlight, defaultInFlight)
	end := func(err error) { c.lost(0, err) }
	c.layer = reconnect.Layer{Start: c.start, Receive: c.receive, Lost: c.lost, End: end}
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
	s.InFlight, s.Reserved = len(c.inFlight), len(c.reserved)
	return s
}

func (c *Client[K]) start(on *reconnect.Conn) error {
	if !c.conn.CompareAndSwap(nil, on) {
		return errors.New("call: the Client has a Conn already: make a Client for each Conn")
	}
	return nil
}

// receive takes the responses out of the stream.
func (c *Client[K]) receive(m reconnect.Message) bool {
	id, ok := c.o.ID(m)
	if !ok {
		return false
	}
	response := m
	response.Data = make([]byte, len(m.Data))
	copy(response.Data, m.Data)
	if p := c.deliver(id, response); p != nil {
		close(p.done)
	} else if c.o.Late != nil {
		c.o.Late(m)
	}
	return true
}

// deliver hands a response to its request, and returns the request, or nil if there is none.
func (c *Client[K]) deliver(id K, response reconnect.Message) *pending[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.inFlight[id]
	if p == nil || p.session != response.Session {
		c.counts.Late++
		c.release(c.reserved[key[K]{response.Session, id}])
		return nil
	}
	c.remove(p)
	p.answered, p.response = true, response
	c.counts.Answered++
	return p
}

// lost takes the requests away from a session that has ended: Do repeats them or returns. Session 0 means that
// the Conn has ended. Then requests are left only if a callback has ended the goroutine that calls lost.
func (c *Client[K]) lost(session uint64, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session == 0 {
		c.ended = cause
	}
	var again []*pending[K]
	for _, p := range c.inFlight {
		if p.session == 0 || session != 0 && session != p.session {
			continue
		}
		p.session, p.cause = 0, cause
		if p.repeatable {
			p.turn = p.done // so that its goroutine sleeps until its turn
			again = append(again, p)
		} else {
			close(p.done)
		}
	}
	slices.SortFunc(again, func(a, b *pending[K]) int { return cmp.Compare(a.order, b.order) })
	for _, p := range again { // here, because the goroutines of Do run in any order
		c.line.join(p)
	}
	for k, p := range c.reserved {
		if session == k.session {
			c.release(p)
		}
	}
	c.line.wake()
	c.line.changed.Broadcast()
}

// remove removes p from the requests in flight. The caller must hold mu.
func (c *Client[K]) remove(p *pending[K]) {
	delete(c.inFlight, p.id)
	c.line.leave(p)
}

// reserve keeps the ID of p, because a response to p would look like one to a newer request with this ID.
// The caller must hold mu.
func (c *Client[K]) reserve(p *pending[K]) {
	if len(c.reserved) == c.o.InFlight {
		c.release(at[K](c.givenUp.Front()))
		c.counts.Forgotten++
	}
	c.order++
	p.order = c.order // the oldest is the one that was given up first
	c.reserved[key[K]{p.session, p.id}] = p
	c.givenUp.join(p)
}

// release makes the ID of p usable again. p may be nil. The caller must hold mu.
func (c *Client[K]) release(p *pending[K]) {
	if p != nil {
		delete(c.reserved, key[K]{p.session, p.id})
		c.givenUp.leave(p)
	}
}
