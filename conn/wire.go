package conn

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Wire joins a [WebSocket] or a [Framed] to the connection under it. The zero value is ready to
// use. Make a Wire for each dial attempt; it must not be copied or reused.
//
// Put Tap around the raw connection, under TLS. For a WebSocket, also put Transport around the
// http.RoundTripper that makes the handshake, and pass the Wire to [NewWebSocket]; [NewFramed]
// finds it by itself.
type Wire struct {
	tap          atomic.Pointer[tap]
	cut          atomic.Bool
	closeSent    atomic.Bool                // we have sent a close frame; set under the lock of the sender
	heard        atomic.Int64               // when the last byte came, by the package's clock
	cause        atomic.Pointer[error]      // why the connection ended: the first reason only
	goodbye      atomic.Pointer[CloseError] // the close frame that came, or nil
	leaving      atomic.Bool                // StartClose was called: no message is written any more
	closing      atomic.Bool                // Close or CloseNow was called
	wakes, waked atomic.Uint32              // calls of wake that have begun, and that have ended
	// how many calls of wake were answered; belongs to the goroutine that has the turn to read
	answered uint32
	woken    atomic.Bool // a call of wake has ended a wait

	reads   readTurn
	stream  *stream  // of a WebSocket; nil before its handshake
	pings   pingList // of a WebSocket
	writing watchdog // messages being written
	message watchdog // a message begun, but not complete
	top     top
}

// top is the WebSocket or the Framed that a Wire belongs to.
type top interface {
	abort() // ends what does not wait for the network, after Cut
	CloseNow() error
}

// Tap returns nc as a connection whose bytes count as signs of life when they are read. If Cut was
// called before, nc is closed immediately. Closing the returned connection closes nc.
//
// A second call closes the connection that was tapped before: tap the winner of a race, not each
// runner.
func (w *Wire) Tap(nc net.Conn) net.Conn {
	t := &tap{Conn: nc, wire: w}
	w.noteLife()
	if old := w.tap.Swap(t); old != nil {
		_ = old.Close()
	}
	if w.cut.Load() {
		t.cut()
	}
	return t
}

// Cut closes the raw connection, now or as soon as there is one. It is safe for concurrent use, and
// may be called repeatedly. Cut never waits for the network.
func (w *Wire) Cut() {
	w.cut.Store(true)
	if t := w.tap.Load(); t != nil {
		t.cut()
	}
	w.pings.end()
}

// join joins w to t, before anything is read or written.
func (w *Wire) join(t top, l Limits) {
	w.top = t
	w.writing.limit, w.message.limit = l.WriteTimeout, l.MessageTimeout
}

// end keeps the first cause of the connection's end, and returns that.
func (w *Wire) end(cause error) error {
	w.cause.CompareAndSwap(nil, &cause)
	return w.ended()
}

// close is Close of w.top. If err is nil and the connection has not ended, it calls handshake,
// which must return when the connection is cut.
func (w *Wire) close(ctx context.Context, err error, handshake func(context.Context) error) error {
	if err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
	case w.closing.Swap(true):
		err = net.ErrClosed
	default:
		w.reads.want() // before Read finds that the connection has ended
		defer w.reads.done()
		if err = w.end(net.ErrClosed); errors.Is(err, net.ErrClosed) { // else it was dead before
			cut := make(chan struct{})
			stop := context.AfterFunc(ctx, func() { w.Cut(); close(cut) })
			err = handshake(ctx)
			if !stop() {
				<-cut
				err = context.Cause(ctx)
			}
		}
	}
	_ = w.top.CloseNow()
	if err != nil {
		return &lostError{"close", err}
	}
	return nil
}

// closeNow cuts the connection and stops its timers.
func (w *Wire) closeNow() {
	w.closing.Store(true)
	w.end(net.ErrClosed)
	w.Cut() // first: what is above may wait for the network
	w.top.abort()
	w.writing.stop(w)
	w.message.stop(w)
}

// wake ends a wait for bytes: see [Follower].
func (w *Wire) wake() {
	t := w.tap.Load()
	if !readsOn(t.Conn) {
		return
	}
	w.wakes.Add(1)
	_ = t.SetReadDeadline(past)
	w.waked.Add(1)
}

// readsOn reports whether nc is known to read on after a deadline that is over. Other net.Conns, such as a tunnel, may
// end at a deadline.
func readsOn(nc net.Conn) bool {
	raw, _ := rawConn(nc)
	if own, ok := raw.(interface{ ReadsOn() bool }); ok {
		return own.ReadsOn()
	}
	_, socket := raw.(syscall.Conn)
	return socket
}

// past is a deadline that is over, on every clock.
var past = time.Unix(1, 0)

// called reports whether wake was called while no Read waited, and answers that. Otherwise the call would be lost on a
// net.Conn that sets a deadline of its own at the beginning of each Read. called reports nothing before a wait was woken
// for the first time, because Woken must be sure that wake works.
func (w *Wire) called() bool {
	return w.waked.Load() != w.answered && w.woken.Load() && w.answer()
}

// wokeUp reports whether err comes from wake, and answers that. Any other timeout is one of the net.Conn itself.
func (w *Wire) wokeUp(err error) bool {
	if err == nil || w.wakes.Load() == w.answered || !timedOut(err) || !w.answer() {
		return false
	}
	w.woken.Store(true)
	return true
}

// answer takes the deadline back, so that the next wait has none. A call of wake that has not returned may still set the
// deadline, so it does not count as answered.
func (w *Wire) answer() bool {
	w.answered = w.waked.Load()
	return w.tap.Load().SetReadDeadline(time.Time{}) == nil
}

// timedOut reports whether err is that of a deadline. Not every net.Conn has os.ErrDeadlineExceeded.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// ended returns why the connection ended, or nil if nothing has ended it so far.
func (w *Wire) ended() error {
	if cause := w.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// abandonRead ends a Read in which a function of the caller's has panicked, or has ended the goroutine: it is unknown
// where the next message begins.
func (w *Wire) abandonRead() {
	w.end(errAbandoned)
	w.reads.end()
}

// notWriting returns why no message can be written any more, or nil.
func (w *Wire) notWriting() error {
	if w.leaving.Load() {
		return net.ErrClosed
	}
	return w.ended()
}

// notReading returns the error of a Read that cannot begin, because the connection
// has ended or another Read is under way. If a Close is under way it waits for that, and calls
// beforeBlock first.
func (w *Wire) notReading(beforeBlock func()) error {
	w.reads.awaitClose(beforeBlock)
	if cause := w.ended(); cause != nil {
		return &lostError{"read", cause}
	}
	return &lostError{"read", errTwoReaders}
}

var errTwoReaders = errors.New("another Read is under way")

// cutSlow cuts the connection because something that d watches took longer than its limit.
// It runs on d's timer.
func (w *Wire) cutSlow(d *watchdog) {
	op := "write"
	if d == &w.message {
		op = "read"
	}
	w.end(&SlowMessageError{Op: op, Limit: d.limit})
	w.Cut()
	w.top.abort()
}

// noteLife notes that something came in just now.
func (w *Wire) noteLife() { w.heard.Store(int64(clock())) }

// wired has the methods of a [Transport] that its Wire can answer.
type wired struct{ wire *Wire }

// Silence implements [Transport].
func (c wired) Silence() time.Duration { return clock() - time.Duration(c.wire.heard.Load()) }

// HungUp implements [Transport].
func (c wired) HungUp() bool {
	raw, _ := rawConn(c.wire.tap.Load().Conn)
	if own, ok := raw.(interface{ HungUp() bool }); ok {
		return own.HungUp()
	}
	return socketHungUp(raw)
}

// LocalAddr implements [Transport].
func (c wired) LocalAddr() net.Addr { return c.wire.tap.Load().LocalAddr() }

// RemoteAddr returns the peer's address, which may be that of a proxy, or nil if it is unknown. It
// is safe for concurrent use.
func (c wired) RemoteAddr() net.Addr { return c.wire.tap.Load().RemoteAddr() }

// tap is the connection that was tapped.
type tap struct {
	net.Conn
	wire    *Wire
	severed atomic.Bool
	closed  atomic.Bool
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.wire.noteLife()
	}
	return n, err
}

// Close closes the connection below once, however often it is called.
func (t *tap) Close() error {
	if !t.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	return t.Conn.Close()
}

// cut closes from the bottom up, because closing TLS may wait for the network.
func (t *tap) cut() {
	if !t.severed.Swap(true) {
		if raw, layered := rawConn(t.Conn); layered {
			_ = raw.Close()
		}
	}
	_ = t.Close()
}

// rawConn returns the connection at the bottom of nc, and whether that is below
// nc. It looks under 16 layers, because a NetConn may return what is above it.
func rawConn(nc net.Conn) (raw net.Conn, layered bool) {
	for range 16 {
		l, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		below := l.NetConn()
		if below == nil {
			break
		}
		nc, layered = below, true
	}
	return nc, layered
}

var epoch = time.Now()

// clock is the time since the program started: monotonic, one word, and virtual
// inside a testing/synctest bubble.
func clock() time.Duration { return time.Since(epoch) }
