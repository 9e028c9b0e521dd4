package call

import (
	"container/list"
	"context"
	"errors"
	"net"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Request is a request for [Client.Do].
type Request[K comparable] struct {
	// ID is the ID that the response will have, unique among the requests in flight: see [ErrIDInUse].
	ID K

	// Message is the whole request, including the ID. Its data must not change until Do has returned; then it
	// belongs to the caller again.
	Message conn.Message

	// Session is the only session in which the request may be sent, such as that of a message that the request
	// is about. It is sent immediately, before repeated requests, or not at all. Default: the session that a
	// Write would use.
	Session uint64

	// Repeatable says that the peer may get the request twice. The request then waits for a session, whatever
	// Options.WhenDown says, and is sent again if its session ends before the response: see the package
	// documentation. Default: no request is sent twice.
	Repeatable bool
}

// question is a question in flight. Client.mu guards what changes, except where it says otherwise.
type question[K comparable] struct {
	id         K
	only       uint64 // Request.Session
	repeatable bool
	order      uint64 // counts the questions

	session uint64        // the session that is to answer; 0: none now
	place   *list.Element // in the line; nil: it is not in the line
	turn    chan struct{} // closed when it has the turn; nil: no goroutine waits for the turn

	done     chan struct{}     // closed when the question is answered, or its session has ended (and it has the turn, if it goes again)
	answered bool              // answer is there, or will be when done is closed; does not change after that
	answer   reconnect.Message // valid when done is closed and answered is set; until then the goroutine that reads owns it
	cause    error             // why the session has ended, or why none was ready

	// These belong to Do.
	tried uint64 // the newest session by which the question went, or tried to go; 0: none
	sent  bool   // the peer may have the question
}

// Do sends a request and waits for its response. The data of the response is a new slice without spare
// capacity, and belongs to the caller. The error is a [*LostError] or an [*Error]: see How a request ends in
// the package documentation. An Error wraps the cause of ctx, [net.ErrClosed] once the Conn is done, or
// [ErrTooMany], [ErrIDInUse], [ErrInCallback] or [conn.ErrBadMessage] if nothing was sent.
//
// Do does not return for ctx while the request is being written, because half a message would cost the
// connection. The connection has a write timeout.
//
// Do may be called in the goroutine that reads the messages of the Conn, because responses bypass the inbox.
// But while a full inbox blocks, later responses are not received until the program reads a message, so give
// ctx a deadline. Do cannot be called in a callback: see [ErrInCallback].
func (c *Client[K]) Do(ctx context.Context, r Request[K]) (reconnect.Message, error) {
	q := &question[K]{id: r.ID, only: r.Session, repeatable: r.Repeatable}
	if err := c.enter(ctx, q); err != nil {
		return reconnect.Message{}, &Error{Fate: reconnect.FateDropped, Err: err}
	}
	for {
		session, err := c.await(ctx, q)
		if err == nil {
			err = c.wrote(ctx, q, c.conn.Load().WriteTo(ctx, session, r.Message))
		}
		if err == nil {
			err = c.hear(ctx, q)
		}
		switch err {
		case nil:
			return q.answer, nil
		case errAgain:
			continue
		}
		return reconnect.Message{}, c.conclude(q, err)
	}
}

// These errors say how Do goes on.
var (
	errAgain = errors.New("it goes again")
	errLost  = errors.New("there is no session for it")
)

// enter admits q as a question of c.
func (c *Client[K]) enter(ctx context.Context, q *question[K]) error {
	on := c.conn.Load()
	switch {
	case on == nil:
		return errNoConn
	case on.InCallback(ctx):
		return ErrInCallback
	case q.repeatable && q.only != 0:
		return errPinned
	case !same(q.id, q.id):
		return errBadID
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case c.questions[q.id] != nil:
		c.counts.Refused++
		return ErrIDInUse
	case len(c.questions) >= c.o.InFlight:
		c.counts.Refused++
		return ErrTooMany
	}
	c.order++
	q.order = c.order
	c.questions[q.id] = q
	c.counts.Asked++
	return nil
}

func same[K comparable](a, b K) bool { return a == b }

// await waits until q may be written, begins q, and returns the session by which q goes. Questions that
// go again come first, in the order in which they were asked.
func (c *Client[K]) await(ctx context.Context, q *question[K]) (session uint64, err error) {
	for {
		changed := c.changed.Wait() // before anything is looked at, so that no change is missed
		wait := c.place(q)
		if wait == nil {
			if session, err = c.session(ctx, q); err != nil {
				return 0, err
			}
			if session != 0 {
				if ok, err := c.begin(q, session); ok || err != nil {
					return session, err
				}
				if q.repeatable {
					continue // to join the line
				}
			}
			wait = changed
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// session returns the session by which q may go, or 0 if q waits until one is ready.
func (c *Client[K]) session(ctx context.Context, q *question[K]) (uint64, error) {
	if q.only != 0 {
		return q.only, nil
	}
	session, err := c.conn.Load().AwaitSession(ctx)
	switch {
	case err == nil:
		return session, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case !errors.Is(err, reconnect.ErrNotReady):
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.repeatable {
		c.line.join(q)
		return 0, nil
	}
	q.cause = err
	return 0, errLost
}

// place puts a repeatable question into the line, unless q can go at once. If q has not the turn, place
// returns a channel that is closed when q may look again.
func (c *Client[K]) place(q *question[K]) (wait <-chan struct{}) {
	if !q.repeatable {
		return nil // begin looks at the line
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready == 0 || c.line.Len() > 0 {
		c.line.join(q)
	}
	return c.line.turn(q)
}

// begin notes that q is asked by a session, before the write, because an answer can come before WriteTo
// has returned. begin reports false if other questions come before q.
func (c *Client[K]) begin(q *question[K], session uint64) (ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case q.only == 0 && !c.line.open(q):
		return false, nil
	case c.givenUp.has(asked[K]{session, q.id}):
		return false, ErrIDInUse
	}
	if q.sent {
		c.counts.Repeated++
	}
	q.session, q.tried, q.cause = session, session, nil
	q.done = make(chan struct{})
	return true, nil
}

// wrote notes that WriteTo has returned err. A nil result means that q waits for its answer, or has it.
func (c *Client[K]) wrote(ctx context.Context, q *question[K], err error) error {
	var unwritten *reconnect.WriteError
	if err != nil {
		unwritten = err.(*reconnect.WriteError) // as WriteTo says
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || q.answered:
		q.sent = true
		if q.session != 0 { // else it goes again
			c.leaveLine(q)
		}
		return nil
	case unwritten.Fate == reconnect.FateUnknown:
		q.sent = true
	case !bySession(unwritten):
		q.session = 0
		return unwritten.Err
	case unwritten.Session == 0 && ctx.Err() != nil: // whose cause may look like the end of a session
		q.session = 0
		return context.Cause(ctx)
	}
	// Its session has ended.
	if q.session = 0; q.cause == nil {
		q.cause = unwritten.Err
	}
	return c.over(q)
}

// bySession reports whether a message was dropped because of its session, and not because of its
// context, its content or the end of the Conn.
func bySession(e *reconnect.WriteError) bool {
	if errors.Is(e.Err, conn.ErrBadMessage) {
		return false // from the queue it has a session, too
	}
	return e.Session != 0 || errors.Is(e.Err, reconnect.ErrSessionLost) || errors.Is(e.Err, reconnect.ErrNotReady)
}

// hear waits for the answer. If ctx ends first, the answer will be late.
func (c *Client[K]) hear(ctx context.Context, q *question[K]) error {
	select {
	case <-q.done:
	case <-ctx.Done():
		if c.giveUp(q) {
			return context.Cause(ctx)
		}
		<-q.done // soon, because the goroutine that closes it does not wait
	}
	if q.answered {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over(q)
}

// giveUp removes q, unless q is answered, or its session has ended and q is not to go again.
func (c *Client[K]) giveUp(q *question[K]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.answered || q.session == 0 && q.place == nil {
		return false
	}
	c.remove(q)
	if q.session != 0 && c.givenUp.add(asked[K]{q.session, q.id}) {
		c.counts.Forgotten++
	}
	return true
}

// over returns errAgain if q may go again after the end of its session, and else errLost. The caller
// holds mu.
func (c *Client[K]) over(q *question[K]) error {
	switch {
	case q.repeatable:
		c.line.join(q)
	case q.sent || q.only != 0:
		return errLost
	}
	return errAgain
}

// conclude ends q without an answer, because of err, and returns the error of Do.
func (c *Client[K]) conclude(q *question[K], err error) error {
	fate := reconnect.FateDropped
	if q.sent {
		fate = reconnect.FateUnknown
	}
	closed := err == errLost && closing(c.conn.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions[q.id] == q {
		c.remove(q)
	}
	switch {
	case err == errLost:
		c.counts.Lost++
		return &LostError{Fate: fate, Session: q.tried, Err: q.cause, closed: closed}
	case err == ErrIDInUse && !q.sent:
		c.counts.Asked--
		c.counts.Refused++
	default:
		c.counts.GivenUp++
	}
	return &Error{Fate: fate, Session: q.tried, Err: err}
}

// closing reports whether a Conn has ended, or is about to.
func closing(on *reconnect.Conn) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that AwaitSession does not wait
	_, err := on.AwaitSession(ctx)
	return errors.Is(err, net.ErrClosed)
}
