//go:build !js

package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// client is a connection that comes back, and what becomes of the lines that it sends.
type client struct {
	o    *options
	conn *reconnect.Conn
	show *reporter

	connected atomic.Bool               // there was a session
	leaving   atomic.Bool               // the program ends the connection
	failure   atomic.Pointer[error]     // why the last dial has failed, or the last session has ended
	until     atomic.Pointer[time.Time] // before then the server wants no dial; nil before the first wait

	typed                     int           // how many lines were read; only the goroutine that talk starts uses it, and then talk
	written, dropped, unknown atomic.Int64  // how many of them have which fate
	settled                   chan struct{} // has a value when a line has got its fate

	came, shown atomic.Int64  // how many messages have come, and how many of them are shown
	received    chan struct{} // closed when all messages are shown
}

// typedLine is the Tag of the message that a line stands for.
type typedLine struct {
	number int // from 1 on
	text   string
}

func makeClient(o *options, show *reporter) *client {
	return &client{o: o, show: show, settled: make(chan struct{}, 1), received: make(chan struct{})}
}

// newClient starts to keep a connection open, and shows what happens. The caller must call talk.
func newClient(o *options, show *reporter) (*client, error) {
	c := makeClient(o, show)
	d := &dialer.WebSocket{
		URL: o.url, Header: o.header, Subprotocols: o.subprotocols,
		Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: o.max}},
	}
	var err error
	c.conn, err = reconnect.New(d, &reconnect.Options{
		OnSession: c.subscribe,
		WhenDown:  reconnect.WhenDownKeep,
		Outbox:    reconnect.Outbox{OnReceipt: c.settle, Bytes: int(max(o.max, 16<<20))},
		Run: reconnect.RunOptions{
			// The longest wait is 10 s and not the default of 30 s, because a user is waiting.
			Policy:   backoff.First(time.Second, &backoff.Exponential{Cap: 10 * time.Second}),
			Classify: c.classify,
			Trace: &reconnect.Trace{
				WaitStart: func(w reconnect.WaitStart) {
					c.failure.Store(&w.Cause)
					until := time.Now().Add(w.Verdict.RetryAfter)
					c.until.Store(&until)
					show.wait(w)
				},
				DialHung: show.hung,
				Overdue: func(e reconnect.Overdue) {
					if e.What == "reader" {
						show.unread()
					}
				},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	show.start(func() string { return terminal.State(c.conn.Status()) })
	go c.receive() // talk waits for it, unless nobody reads standard output
	return c, nil
}

// subscribe makes a new connection ready. It shows that here and not in a hook, so that it comes
// before the first message and the first fate.
func (c *client) subscribe(_ context.Context, o *reconnect.Opening) error {
	for _, m := range c.o.subscribe {
		if err := o.Write(m); err != nil {
			return err
		}
	}
	c.connected.Store(true)
	subprotocol := ""
	if ws, ok := o.Conn().(*conn.WebSocket); ok {
		subprotocol = ws.Subprotocol()
	}
	c.show.ready(o.Session, subprotocol, o.Downtime)
	return nil
}

// classify is the usual verdict, except that the first failure is the end with -once, and a
// failure that somebody must mend is the end if there never was a connection.
func (c *client) classify(err error) backoff.Verdict {
	v := backoff.Classify(err)
	if c.o.once || v.Class == backoff.ClassSlow && !c.connected.Load() {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return v
}

// receive shows the messages and seams. The seam after the last session is not shown.
func (c *client) receive() {
	defer close(c.received)
	for m, err := range c.conn.Messages(context.Background()) {
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			if !c.leaving.Load() && !c.o.once {
				c.show.seam(seam)
			}
		} else if err != nil {
			return // the Conn has ended
		} else {
			c.came.Add(1)
			c.show.message(c.o.form, m)
			c.shown.Add(1)
		}
	}
}

// send sends a line, and waits while there is no room for it, until ctx ends. If there is room, it
// sends the line though ctx has ended, because the user may press Ctrl-C right after Enter.
func (c *client) send(ctx context.Context, text string) {
	c.typed++
	m, err := c.o.form.message(text)
	out := reconnect.Outgoing{Message: m, Tag: typedLine{c.typed, text}}
	switch {
	case len(text) > c.o.form.lineLimit(c.o.max), int64(len(m.Data)) > c.o.max:
		err = errTooLong
	case err == nil:
		if c.conn.State() != reconnect.StateReady {
			c.show.kept(text)
		}
		if err = c.conn.Send(out); errors.Is(err, reconnect.ErrOutboxFull) {
			err = c.conn.SendWait(ctx, out)
		}
	}
	if err != nil {
		c.settle(ctx, reconnect.Receipt{Outgoing: out, Fate: reconnect.FateDropped, Err: err})
	}
}

var errTooLong = errors.New("longer than -max")

// settle receives the fate of each line. A line whose fate is unknown is not sent again,
// because the server may have it.
func (c *client) settle(_ context.Context, r reconnect.Receipt) {
	switch r.Fate {
	case reconnect.FateWritten:
		c.written.Add(1)
	case reconnect.FateDropped:
		c.dropped.Add(1)
	case reconnect.FateUnknown:
		c.unknown.Add(1)
	}
	line := r.Outgoing.Tag.(typedLine)
	c.show.fate(line.number, line.text, r.Outgoing.Message, r.Fate, r.Session, because(r.Err))
	select {
	case c.settled <- struct{}{}:
	default:
	}
}

// unsettled returns how many lines have no fate yet.
func (c *client) unsettled() int {
	return c.typed - int(c.written.Load()+c.dropped.Load()+c.unknown.Load())
}

// because returns why a line was not written.
func because(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, reconnect.ErrExpired):
		return "it waited for more than 5 minutes"
	case errors.Is(err, net.ErrClosed):
		return "the end came first" // there was no connection, or it was too slow
	}
	if refused, ok := errors.AsType[*reconnect.WriteError](err); ok {
		err = refused.Err
	}
	return err.Error()
}
