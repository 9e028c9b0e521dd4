package heartbeat

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// ErrLate is the cause of the end of a session whose server has promised heartbeats but was silent for too
// long: see [Dialer].Every. Its reason is [backoff.ReasonSilent].
var ErrLate error = late{}

type late struct{}

func (late) Error() string          { return "heartbeat: the server is late" }
func (late) Reason() backoff.Reason { return backoff.ReasonSilent }

// watch cuts a connection whose server is late. It looks at the connection every half of Every.
type watch struct {
	conn    conn.Conn
	every   time.Duration // 0: a server is never late
	some    atomic.Bool   // a message has come since the last look
	reading atomic.Bool   // a Read is under way

	mu      sync.Mutex // guards what follows; not held while the connection is cut
	timer   *time.Timer
	silent  int   // how many looks in a row have seen no message, although somebody read
	cause   error // why we have cut the connection; nil: we have not
	stopped bool  // it looks no more
	over    bool  // it does not close the connection any more

	closing sync.WaitGroup // while it closes the connection
}

// lateAfter is after how many looks the connection is cut.
const lateAfter = 4

func (w *watch) start(c conn.Conn, every time.Duration) {
	w.conn, w.every = c, every
	if every > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timer = time.AfterFunc(every/2, w.look)
	}
}

// look is the timer's callback.
func (w *watch) look() {
	if w.isLate() {
		w.close()
	}
}

// close closes the connection, unless the watch was stopped.
func (w *watch) close() {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return
	}
	w.closing.Add(1) // beats.CloseNow waits
	w.mu.Unlock()
	defer w.closing.Done()
	_ = w.conn.CloseNow()
}

// isLate counts one look, and reports whether it was the last.
func (w *watch) isLate() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
		return false
	case w.some.Swap(false):
		w.silent = 0
	case w.reading.Load():
		w.silent++
	}
	if w.silent < lateAfter {
		w.timer.Reset(w.every / 2)
		return false
	}
	w.cause = fmt.Errorf("%w: nothing has come for %v", ErrLate, 2*w.every)
	return true
}

// read notes that a Read begins or ends.
func (w *watch) read(is bool) {
	if w.every > 0 {
		w.reading.Store(is)
	}
}

// heard notes a message.
func (w *watch) heard() {
	if w.every > 0 {
		w.some.Store(true)
	}
}

// cutIn cuts the connection after d, unless it is stopped before.
func (w *watch) cutIn(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.stopped = true
	w.timer = time.AfterFunc(d, w.close)
}

// stop stops the timer for good, and returns why the watch has cut the connection, if it has.
func (w *watch) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped, w.over = true, true
	if w.timer != nil {
		w.timer.Stop()
	}
	return w.cause
}
