package history

import (
	"context"
	"errors"
	"go/ast"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Callbacks call the methods that wait, read, watch or end the Conn, and functions that few programs have act, too.

// drawCalls draws such calls, from a stream of its own.
func (p *Plan) drawCalls() {
	r := p.stream(33)
	if r.IntN(4) > 0 {
		return
	}
	p.Settings.Calls = true
	for range 1 + r.IntN(6) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), callsMore.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// laterCallbacks are functions of the user that allCallbacks lacks. New calls Layer.Start, so no event can plan it.
var laterCallbacks = []string{"AddressIgnored", "Gate.Acquire", "the gate's done"}

// callsMore is an event: the next call of a callback calls a method that act does not.
var callsMore = happening{"callback calls more", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.Calls || w.calmed.Load() {
		return
	}
	names := callbacks
	switch r.IntN(4) {
	case 0:
		names = laterCallbacks
	case 1:
		if w.set.Blocks {
			names = allCallbacks
		}
	}
	name := names[r.IntN(len(names))]
	if r.IntN(4) == 0 {
		w.actNext(name, w.act(r, e, name))
		return
	}
	w.actNext(name, w.actMore(r, name))
}}

// actMore draws a method that a callback calls. Each returns when its context is done.
func (w *world) actMore(r *rand.Rand, name string) func(ctx context.Context) {
	limit := 1 + upTo(r, 3*time.Second)
	if !mayWait(name) || slices.Contains(laterCallbacks, name) {
		limit = 0 // for which no time passes
	}
	method := r.IntN(7)
	if method == 6 && r.IntN(6) > 0 {
		method = 5
	}
	return func(context.Context) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		c, at := w.theConn(), w.now()
		called := ""
		switch method {
		case 0:
			called = "Await"
			_ = c.Await(ctx, reconnect.StateReady)
		case 1:
			called = "AwaitReady"
			_ = c.AwaitReady(ctx)
		case 2:
			called = "AwaitSession"
			_, _ = c.AwaitSession(ctx)
		case 3:
			called = "Read"
			w.readNothing(c)
		case 4:
			called = "Messages"
			w.messagesOfNothing(c)
		case 5:
			called = "Watch"
			c.Watch(&reconnect.Trace{SessionReady: func(*reconnect.Session) {}})()
		case 6:
			called = "Shutdown"
			w.allowEnd("Close in " + name)
			w.mu.Lock()
			if w.closing == 0 {
				w.closing = w.now()
			}
			w.mu.Unlock()
			_ = c.Shutdown(ctx)
		}
		w.claim(CallsReturn, w.now() <= at+limit, "%s in %s took %v of %v", called, name, w.now()-at, limit)
	}
}

// readNothing calls Read with a context that is done, so that the reader of the history misses no message.
func (w *world) readNothing(c *reconnect.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Read(ctx, nil)
	w.nothingRead(err)
}

// messagesOfNothing is readNothing with Messages.
func (w *world) messagesOfNothing(c *reconnect.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range c.Messages(ctx) {
		w.nothingRead(err)
		return
	}
}

// nothingRead checks the error of a Read whose context was done.
func (w *world) nothingRead(err error) {
	if w.set.Reader == readPush || w.set.InboxOverflow == 3 { // the messages go to OnMessage, or nowhere
		w.claim(CancelEnds, err != nil, "Read returns a message, and there is no inbox")
		return
	}
	canceled := errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)
	w.claim(CancelEnds, canceled, "the context had ended, and Read returns %v", err)
}

// starts is the Start of a layer. The Conn has not begun, so each method returns immediately.
func (w *world) starts(c *reconnect.Conn) error {
	r := w.plan.stream(34)
	at := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range r.IntN(4) {
		switch r.IntN(7) {
		case 0:
			c.Kick()
		case 1:
			c.Check()
		case 2:
			c.Redial(0, errRedial)
		case 3:
			c.Rotate(0, reconnect.Advice{})
		case 4:
			_ = c.Await(ctx, reconnect.StateReady)
			_, _ = c.AwaitSession(ctx)
		case 5:
			c.Watch(&reconnect.Trace{})()
			c.Status()
			c.Stats()
		case 6:
			c.State()
			c.Endpoint()
		}
	}
	w.claim(CallsReturn, time.Now().Equal(at), "methods in Layer.Start took %v", time.Since(at))
	return nil
}

// The callbacks of the histories are those of conntests, and two functions that SlowHandler
// never names.
func TestCallbacksAreThoseOfReconnect(t *testing.T) {
	var want []string
	for _, of := range []string{"callbacks", "untimed"} {
		want = append(want, keysOf(t, "../conntests/run/callbacks_test.go", of)...)
	}
	want = append(want, "Gate.Acquire", "Layer.Start")
	got := []string{"Layer.Start"}
	for _, name := range slices.Concat(allCallbacks, laterCallbacks) {
		if name = what(name); name == "Probe" {
			name = "Liveness.Probe"
		}
		got = append(got, name)
	}
	require.ElementsMatch(t, want, got)
}

// keysOf returns the keys of a map that a file declares.
func keysOf(t *testing.T, path, variable string) (keys []string) {
	ast.Inspect(source(t, path), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != variable {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			key, err := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			require.NoError(t, err)
			keys = append(keys, key)
		}
		return false
	})
	return keys
}

// CallsReturn is the invariant that actMore checks.
const CallsReturn Invariant = "11: a method that a callback calls returns with its context"
