package history

import (
	"context"
	"errors"
	"net"
	"time"
)

// Until the faults are over, a reader may take some time for each message: less than the server takes
// until the next one, or more. The contexts of its Reads end meanwhile.

// drawSlowReader draws how long the reader takes, from a stream of its own.
func (p *Plan) drawSlowReader() {
	r := p.stream(17)
	p.Settings.Leads = r.IntN(4) > 0
	switch r.IntN(6) {
	case 0: // short, so that the reader may read the connection itself
		p.Settings.ReaderTakes = time.Microsecond + upTo(r, 20*time.Millisecond)
	case 1:
		p.Settings.ReaderTakes = 20*time.Millisecond + upTo(r, 3*time.Second)
	}
}

// readerTakes returns how long the reader takes for a message.
func (w *world) readerTakes() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calmed.Load() {
		return w.endTakes
	}
	return max(w.set.ReaderTakes, w.endTakes)
}

// readAfterCancel checks the error of a Read. over says that its context was done before it began.
func (w *world) readAfterCancel(over bool, err error) {
	if !over {
		return
	}
	canceled := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	w.claim(CancelEnds, canceled || errors.Is(err, net.ErrClosed), "the context had ended, and Read returns %v", err)
}

// readEndsAtClose checks when the last Read, which began at began, has returned. The caller holds w.mu.
func (w *world) readEndsAtClose(began, ended time.Duration) {
	if w.closedAt > 0 {
		w.check(ReadEndsAtClose, ended <= max(began, w.closedAt),
			"Read returns at %v, and Close was called at %v", ended, w.closedAt)
	}
}

// The invariants that are checked here.
const (
	CancelEnds      Invariant = "7: a Read whose context has ended returns no message"
	ReadEndsAtClose Invariant = "11: Close ends a Read at once, also after a Shutdown"
)
