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
	// Options.WhenDown says: see How a request ends in the package documentation. Default: no request is sent
	// twice.
	Repeatable bool
}

// pending is a request in flight, or one that was given up. Client.mu guards what changes, unless noted.
type pending[K comparable] struct {
	id         K
	only       uint64 // Request.Session
	repeatable bool
	order      uint64        // place in the order of a queue
	place      *list.Element // in its queue, or nil

	session  uint64        // the session that is to respond, or 0
	done     chan struct{} // closed when p is answered, or is lost (and has its turn, if repeatable)
	turn     chan struct{} // to be closed when p is the first in the line, or nil
	answered bool
	response reconnect.Message // valid if answered
	cause    error             // why the session has ended, or why none was ready

	// Owned by Do:
	tried uint64 // the newest session in which p was sent or attempted, or 0
	sent  bool   // the peer may have p
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
// ctx a deadline.
func (c *Client[K]) Do(ctx context.Context, r Request[K]) (reconnect.Message, error) {
	p := &pending[K]{id: r.ID, only: r.Session, repeatable: r.Repeatable}
	if err := c.admit(ctx, r.ID, p); err != nil {
		return reconnect.Message{}, &Error{Fate: reconnect.FateDropped, Err: err}
	}
	for {
		session, err := c.await(ctx, p)
		if err == nil {
			err = c.wrote(ctx, p, c.conn.Load().WriteTo(ctx, session, r.Message))
		}
		if err == nil {
			err = c.awaitResponse(ctx, p)
		}
		switch err {
		case nil:
			return p.response, nil
		case errAgain:
		default:
			return c.conclude(p, err)
		}
	}
}

// How Do continues without a response.
var (
	errAgain = errors.New("the request is to be sent again")
	errLost  = errors.New("the request has no session")
)

// admit adds p to the requests in flight.
func (c *Client[K]) admit(ctx context.Context, id K, p *pending[K]) error {
	on := c.conn.Load()
	switch {
	case on == nil:
		return errNoConn
	case on.InCallback(ctx):
		return ErrInCallback
	case p.repeatable && p.only != 0:
		return errPinned
	case p.id != id:
		return errBadID
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case c.inFlight[id] != nil:
		c.counts.Refused++
		return ErrIDInUse
	case len(c.inFlight) >= c.o.InFlight:
		c.counts.Refused++
		return ErrTooMany
	}
	c.order++
	p.order = c.order
	c.inFlight[id] = p
	c.counts.Asked++
	return nil
}

// await waits until p may be written, begins p, and returns the session in which p is to be sent.
func (c *Client[K]) await(ctx context.Context, p *pending[K]) (session uint64, err error) {
	for {
		changed := c.line.changed.Wait() // before anything is checked, so that no change is missed
		wait := c.enqueue(p)
		if wait == nil {
			if session, err = c.session(ctx, p); err != nil {
				return 0, err
			}
			if wait, err = c.begin(p, session, changed); wait == nil {
				return session, err
			}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// enqueue puts a repeatable request into the line, unless it can be sent immediately. If other requests come
// before p, enqueue returns a channel that is closed when p is the first.
func (c *Client[K]) enqueue(p *pending[K]) (turn <-chan struct{}) {
	if !p.repeatable {
		return nil // begin checks the line
	}
	ready := c.conn.Load().State() == reconnect.StateReady
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ready {
		c.line.join(p)
	}
	if c.line.open(p) {
		return nil
	}
	return c.line.turn(p)
}

// session returns the session in which p may be sent. A repeatable request waits for one.
func (c *Client[K]) session(ctx context.Context, p *pending[K]) (uint64, error) {
	if p.only != 0 {
		return p.only, nil
	}
	for on := c.conn.Load(); ; {
		session, err := on.AwaitSession(ctx)
		switch {
		case err == nil:
			return session, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case !errors.Is(err, reconnect.ErrNotReady):
			return 0, err
		case !p.repeatable:
			p.cause = err
			return 0, errLost
		}
		c.enqueue(p)                            // because the session has ended meanwhile
		_ = on.Await(ctx, reconnect.StateReady) // AwaitSession returns the error
	}
}

// begin gives p a session, before the write, because the response can come before WriteTo returns. If other
// requests come before p, begin returns a channel to wait for, which is changed if p is not repeatable.
func (c *Client[K]) begin(
	p *pending[K], session uint64, changed <-chan struct{},
) (wait <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.only == 0 && !c.line.open(p):
		if p.repeatable {
			return c.line.turn(p), nil
		}
		return changed, nil
	case c.reserved[key[K]{session, p.id}] != nil:
		return nil, ErrIDInUse
	}
	if p.sent {
		c.counts.Repeated++
	}
	p.session, p.tried, p.cause = session, session, nil
	p.done = make(chan struct{})
	return nil, nil
}

// wrote notes that WriteTo has returned err. A nil result means that p has its response, or waits for it.
func (c *Client[K]) wrote(ctx context.Context, p *pending[K], err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || p.answered {
		p.sent = true
		if p.session != 0 { // otherwise it is to be sent again
			c.line.leave(p)
		}
		return nil
	}
	p.session = 0
	e := err.(*reconnect.WriteError) // as documented at WriteTo
	lost := e.Session != 0 || errors.Is(e.Err, reconnect.ErrSessionLost) || errors.Is(e.Err, reconnect.ErrNotReady)
	switch {
	case e.Fate == reconnect.FateUnknown:
		p.sent = true
	case !lost || errors.Is(e.Err, conn.ErrBadMessage): // which has a session if it was queued
		return e.Err
	case e.Session == 0 && ctx.Err() != nil: // whose cause may look like the end of a session
		return context.Cause(ctx)
	}
	if p.cause == nil {
		p.cause = e.Err
	}
	return c.over(p)
}

func (c *Client[K]) awaitResponse(ctx context.Context, p *pending[K]) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done: // the end of the session comes first
		default:
			return context.Cause(ctx)
		}
	}
	if p.answered {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over(p)
}

// over returns errAgain if p may be sent again after the end of its session, and otherwise errLost. The
// caller must hold mu.
func (c *Client[K]) over(p *pending[K]) error {
	switch {
	case p.repeatable:
		c.line.join(p)
	case p.sent || p.only != 0:
		return errLost
	}
	return errAgain
}

// conclude ends p because of err, unless the response has come meanwhile, and returns the result of Do.
func (c *Client[K]) conclude(p *pending[K], err error) (reconnect.Message, error) {
	fate := reconnect.FateDropped
	if p.sent {
		fate = reconnect.FateUnknown
	}
	_, now := c.conn.Load().AwaitSession(canceled)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.answered {
		return p.response, nil
	}
	c.remove(p)
	if p.session != 0 {
		c.reserve(p)
	}
	switch {
	case err == errLost:
		c.counts.Lost++
		err = &LostError{Fate: fate, Session: p.tried, Err: p.cause, closed: errors.Is(now, net.ErrClosed)}
		return reconnect.Message{}, err
	case err == ErrIDInUse && !p.sent:
		c.counts.Asked--
		c.counts.Refused++
	default:
		c.counts.GivenUp++
	}
	return reconnect.Message{}, &Error{Fate: fate, Session: p.tried, Err: err}
}

// canceled is a context with which AwaitSession does not wait: its error says whether the Conn is closing.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Ask sends a request while a session is opened, such as the login, and returns the response, whose data
// belongs to the caller. Call Ask in OnSession and Layer.Open, where Do returns [ErrInCallback], in the
// goroutine that may use o. It passes messages that come before the response to [reconnect.Opening.Deliver].
// The request does not count as one of the Client's: its ID must differ from those of all requests in flight,
// as the numbers of Client.Next do. An error means that the session cannot be opened: return it, unless it is
// [conn.ErrBadMessage].
func (c *Client[K]) Ask(o *reconnect.Opening, id K, request conn.Message) (conn.Message, error) {
	if err := o.Write(request); err != nil {
		return conn.Message{}, err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return conn.Message{}, err
		}
		if got, ok := c.o.ID(reconnect.Message{Message: m, Session: o.Session}); ok && got == id {
			return m, nil
		}
		if err := o.Deliver(m); err != nil {
			return conn.Message{}, err
		}
	}
}
