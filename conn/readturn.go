package conn

import (
	"context"
	"sync/atomic"
)

// readTurn decides which goroutine reads: that of a Read, or that of Close.
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
}

// The states of a readTurn.
const (
	free   uint32 = iota
	reader        // a Read reads
	wanted        // a Read has the turn, and gives it to Close in the end
	closer        // Close reads, from now on
)

// begin takes the turn for a Read. It reports false if another has it.
func (t *readTurn) begin() bool { return t.state.CompareAndSwap(free, reader) }

// end ends a Read, and gives the turn to Close if that wants it.
func (t *readTurn) end() {
	if !t.state.CompareAndSwap(reader, free) && t.state.CompareAndSwap(wanted, closer) {
		close(t.close.handed)
	}
}

// asked reports whether Close wants the turn, which a Read has.
func (t *readTurn) asked() bool { return t.state.Load() == wanted }

// held reports whether the Read that took the turn still has it.
func (t *readTurn) held() bool { return t.state.Load() != closer }

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
		case t.state.CompareAndSwap(free, closer):
			close(t.close.handed)
			return
		case t.state.CompareAndSwap(reader, wanted):
			return
		}
	}
}

// claim waits until the turn is Close's, or ctx ends.
func (t *readTurn) claim(ctx context.Context) error {
	select {
	case <-t.close.handed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done ends what want began.
func (t *readTurn) done() { close(t.close.over) }
