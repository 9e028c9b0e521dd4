package history

import (
	"errors"
	"net"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// After Close no message is handed over: neither to OnMessage, nor to a Read, nor to a layer.

// closes calls Close, and notes that. If a session is ready, there may be messages that must not come any more.
func (w *world) closes() {
	c := w.theConn()
	ready := c.State() == reconnect.StateReady
	w.mu.Lock()
	if w.closing == 0 {
		w.closing = w.now()
	}
	if w.closedAt == 0 {
		w.closedAt, w.closedReady = w.now(), ready
	}
	w.mu.Unlock()
	c.Close()
	w.closed.Store(true)
}

// hasClosed reports whether Close had returned before a call of OnMessage or of a layer. The call asks that first, because another goroutine
// may call Close while it waits for w.mu. With package yield another one may do that just before the call.
func (w *world) hasClosed() bool { return w.closed.Load() && !yield.Used() }

// handedOver checks a message that the reader, or a layer, gets now. late is what hasClosed has returned; false, if the call had begun before
// the message came: then it may have come before Close at the same instant. The caller holds w.mu.
func (w *world) handedOver(m reconnect.Message, late bool) {
	if late || w.closedAt > 0 && w.now() > w.closedAt {
		w.check(SilentAfterClose, false, "a message of session %d, and Close was called at %v", m.Session, w.closedAt)
	}
}

// readAfterClose checks the error of a Read. late says that Close had returned before the Read began.
func (w *world) readAfterClose(late bool, err error) {
	if late {
		w.claim(SilentAfterClose, errors.Is(err, net.ErrClosed), "Read returns %v", err)
	}
}

// hearing lets the layers check what they receive.
func (w *world) hearing(o *reconnect.Options) {
	for i, l := range o.Layers {
		if l.Receive == nil {
			continue
		}
		one := *l
		one.Receive = func(m reconnect.Message) bool {
			late := w.hasClosed()
			w.mu.Lock()
			w.handedOver(m, late)
			w.mu.Unlock()
			return l.Receive(m)
		}
		o.Layers[i] = &one
	}
}
