package conn

import "sync/atomic"

// readTurn decides which goroutine reads: that of a Read, or that of Close. A Read may lend
// its turn to coder/websocket.
//
// A Read that finds that Close has the turn waits until Close has ended. If it returned at
// once, its caller would take the connection for dead and cut it during the close
// handshake.
type readTurn struct {
	state atomic.Uint32
	close *closing // nil until Close wants the turn; to be read after the state
}

// closing is what Close waits for, and what waits for it.
type closing struct {
	handed chan struct{} // closed when the turn is Close's
	over   chan struct{} // closed when Close has ended
	lent   bool          // the turn was lent when Close came; only Close uses it
}

// The states of a readTurn.
const (
	nobody   uint32 = iota
	reader          // a Read reads
	lent            // coder/websocket reads, called by a Read
	wanted          // a Read has the turn, and gives it to Close in the end
	recalled        // as lent; when coder/websocket has read, Close gets the turn
	closer          // Close reads, from now on
)

// begin takes the turn for a Read. It reports false if another has it.
func (t *readTurn) begin() bool { return t.state.CompareAndSwap(nobody, reader) }

// end ends a Read.
func (t *readTurn) end() { t.change(reader, nobody) }

// lend lets coder/websocket read. It reports false if Close wants the turn: then a
// Read must end, because coder/websocket's own Close reads.
func (t *readTurn) lend() bool { return t.state.CompareAndSwap(reader, lent) }

// takeBack ends lend. It reports false if Close has the turn now.
func (t *readTurn) takeBack() bool { return t.change(lent, reader) }

// held reports whether the Read that took the turn still has it.
func (t *readTurn) held() bool { return t.state.Load() != closer }

// change changes the state, or gives the turn to Close if that wants it.
func (t *readTurn) change(from, to uint32) bool {
	if t.state.CompareAndSwap(from, to) {
		return true
	}
	if t.state.CompareAndSwap(wanted, closer) || t.state.CompareAndSwap(recalled, closer) {
		close(t.close.handed)
	}
	return false
}

// awaitClose waits until a Close that is under way has ended, and calls before, which may be
// nil, before it waits. The caller does not have the turn.
func (t *readTurn) awaitClose(before func()) {
	if s := t.state.Load(); s >= wanted {
		if before != nil {
			before()
		}
		<-t.close.over
	}
}

// want asks for the turn for Close: from now on no Read begins. Only one Close may call it;
// it calls done in the end.
func (t *readTurn) want() {
	t.close = &closing{handed: make(chan struct{}), over: make(chan struct{})}
	for {
		switch {
		case t.state.CompareAndSwap(nobody, closer):
			close(t.close.handed)
			return
		case t.state.CompareAndSwap(reader, wanted):
			return
		case t.state.CompareAndSwap(lent, recalled):
			t.close.lent = true
			return
		}
	}
}

// awaitLent waits until coder/websocket reads no more.
func (t *readTurn) awaitLent() {
	if t.close.lent {
		<-t.close.handed
	}
}

// claim waits until the turn is Close's.
func (t *readTurn) claim() { <-t.close.handed }

// done ends what want began.
func (t *readTurn) done() { close(t.close.over) }
