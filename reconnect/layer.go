package reconnect

import (
	"context"

	"github.com/redial-go/redial/reconnect/internal/watch"
)

// Layer follows the life of a connection. Each field may be nil. [Options].Layers are called in order at
// each event. Ready, Receive and Lost run in the goroutine that reads the session; during a [Rotation],
// calls for two sessions run concurrently. See Callbacks in the package documentation.
type Layer struct {
	// Start gives the layer its Conn. New calls it first, and fails with its error, after calling End of
	// the layers that have started, and closing Done of the Conn.
	Start func(c *Conn) error

	// Open prepares a new session, after OnSession has returned and before the session is ready, in the
	// goroutine of OnSession and under its limit. An error fails the attempt.
	Open func(ctx context.Context, o *Opening) error

	// Ready says that messages can be sent by the session now. If a rotation replaces a session during a
	// slow Trace.SessionReady, its Ready comes after that of the next session.
	Ready func(session uint64)

	// Receive gets each message of a session in order, before the inbox or OnMessage. If it reports
	// true, no later layer gets the message, and neither does the reader of the Conn. Receive must be
	// quick; the data is valid until it returns.
	Receive func(m Message) (taken bool)

	// Lost says that a session has ended because of cause, exactly once for each dialed session, unless
	// a callback has ended the Conn by [runtime.Goexit]. The reader gets the seam afterwards.
	Lost func(session uint64, cause error)

	// End is the last call: the Conn has ended. err is the result of [Conn.Err].
	End func(err error)
}

// layers calls the layers of a Conn.
type layers []*Layer

// open calls Open. It ends with the first error.
func (ls layers) open(ctx context.Context, o *Opening) error {
	for i, l := range ls {
		if l.Open == nil {
			continue
		}
		o.layer = i
		if err := l.Open(ctx, o); err != nil {
			return err
		}
	}
	o.layer = noLayer
	return nil
}

// noLayer stands for OnSession, which is no layer.
const noLayer = -1

// sessionReady calls Ready, if there is one.
func (l *Layer) sessionReady(c *watch.Calls, session uint64) {
	if l.Ready != nil {
		outer := c.Enter(&layerReady)
		l.Ready(session)
		c.Leave(outer)
	}
}

// sessionEnded calls Lost, if there is one.
func (l *Layer) sessionEnded(c *watch.Calls, session uint64, cause error) {
	if l.Lost != nil {
		outer := c.Enter(&layerLost)
		l.Lost(session, cause)
		c.Leave(outer)
	}
}

// take reports whether a layer has taken m. Layer number but, which passes m on, is not asked.
func (ls layers) take(m Message, but int) bool {
	for i, l := range ls {
		if l.Receive != nil && i != but && l.Receive(m) {
			return true
		}
	}
	return false
}

// ends returns a call of each End.
func (ls layers) ends(c *watch.Calls, err error) (calls []func()) {
	for _, l := range ls {
		if l.End != nil {
			calls = append(calls, func() {
				outer := c.Enter(&layerEnd)
				l.End(err)
				c.Leave(outer)
			})
		}
	}
	return calls
}
