package link

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Link is one connection, from its dial to its loss. It is a context that ends with the connection.
type Link struct {
	xsync.Context
	Conn      conn.Conn
	Transport conn.Transport // Conn, if it is a Transport; else nil
	Session   uint64         // its number; does not change once others know the link

	life *Life
	end  atomic.Pointer[ending]        // nil: we have not ended it
	shut atomic.Pointer[chan struct{}] // closed when CloseNow has returned; nil: it was not called
	slot xsync.Slot                    // held by the one goroutine that writes, once the link is ready
	turn atomic.Uint64                 // what the supervisor does at the reading end
	rest *rest                         // nil: nothing
}

// Observer is told what happens on a link. No lock is held meanwhile.
type Observer interface {
	NoteHeard()   // a message came; in the goroutine that reads
	NoteResumed() // reading begins again after a pause; in the goroutine that reads
	NoteWrote()   // messages were written, or begun; in the goroutine that holds the slot
}

// rest is what only some links have.
type rest struct {
	window   *pace    // guarded by slot; nil: there is no limit
	observer Observer // nil: nobody
}

// Begin makes l the link of c. No more messages are written by it than the window lets through.
func (l *Link) Begin(c conn.Conn, life *Life, window budget.Window) {
	l.Conn, l.life = c, life
	if p := newPace(window); p != nil {
		l.rest = &rest{window: p}
	}
	l.Transport, _ = c.(conn.Transport)
}

// Observe sets the observer. It is called before another goroutine knows the link.
func (l *Link) Observe(o Observer) { l.rest = &rest{window: l.window(), observer: o} }

// window returns the window, nil if there is no limit.
func (l *Link) window() *pace {
	if l.rest == nil {
		return nil
	}
	return l.rest.window
}

// observer returns the observer, nil if there is none.
func (l *Link) observer() Observer {
	if l.rest == nil {
		return nil
	}
	return l.rest.observer
}

// Life returns what all links of the Conn share.
func (l *Link) Life() *Life { return l.life }

// ending is why we ended a link, and how.
type ending struct {
	cause  error
	reason backoff.Reason // ReasonOther: that of the cause
	closed chan struct{}  // closed after the close handshake, or when the reader has had its time; nil: there is neither
	unread bool           // something had come that nobody had read, so that messages may be missing
	failed bool           // a write or a ping has failed: the reader may know why
}

// lastWords is how long the reader may go on after a write or a ping has failed.
const lastWords = time.Second

// Turn is what the supervisor does at the reading end of a link, and which pause it is: its lowest
// bits are the former, the highest count the pauses. Between them is what Lag has noted.
type Turn uint64

// The acts of the supervisor at the reading end.
const (
	Reading  Turn = iota // the supervisor reads
	Handling             // OnMessage runs, or messages at hand wait for it, and nobody reads
	Blocked              // the inbox is full, and nobody reads

	turnMask = 3
	lagging  = 4 // see Lag
	nextTurn = 8
)

// Pause notes that nobody reads until Resume; why is Handling or Blocked. Only the supervisor calls
// it.
func (l *Link) Pause(why Turn) { l.turn.Store(l.turn.Load()&^turnMask + nextTurn | uint64(why)) }

// Turn returns the present turn. Any goroutine may call it.
func (l *Link) Turn() Turn { return Turn(l.turn.Load()) }

// Does returns what the supervisor does.
func (t Turn) Does() Turn { return t & turnMask }

// Resume notes that reading begins again.
func (l *Link) Resume() {
	if o := l.observer(); o != nil {
		o.NoteResumed()
	}
	l.turn.Store(l.turn.Load() &^ turnMask)
}

// Unpause is Resume if l is paused.
func (l *Link) Unpause() {
	if l.Paused() {
		l.Resume()
	}
}

// Paused reports whether nobody reads, or messages that have come during a pause are still at
// hand.
func (l *Link) Paused() bool { return l.Turn().Does() != Reading }

// Lag notes whether messages have come that the reader has not read yet, while it reads the link itself. The caller has
// the turn to read.
func (l *Link) Lag(lags bool) {
	if l.Lags() != lags {
		l.turn.Store(l.turn.Load() ^ lagging)
	}
}

// Lags returns what Lag has noted last.
func (l *Link) Lags() bool { return l.Turn()&lagging != 0 }

// Behind reports whether something has come that nobody has read, and perhaps much.
func (l *Link) Behind() bool { return l.Paused() || l.Lags() }

// Close cuts the connection. It returns when the connection is closed, also if another goroutine is closing it: the next dial
// must begin after that.
func (l *Link) Close() error {
	l.End()
	shut := make(chan struct{})
	if !l.shut.CompareAndSwap(nil, &shut) {
		<-*l.shut.Load()
		return nil
	}
	defer close(shut)
	return l.Conn.CloseNow()
}

// Cut ends the connection because of cause, unless it has been ended before: the first cause
// is kept.
func (l *Link) Cut(cause error) {
	if !l.end.CompareAndSwap(nil, &ending{cause: cause, unread: l.Behind()}) {
		if e := l.end.Load(); e.failed { // the reader reads no more
			l.end.CompareAndSwap(e, &ending{cause: e.cause, closed: e.closed, unread: l.Behind()})
		}
	}
	l.Close()
}

// Fail ends the connection because err is the error of a write or a ping. The peer may have said why
// it ended the connection before, in a close frame for instance. So the reader may go on for
// lastWords, and if it has an error, that is the cause: see EndedBy. If nobody reads, Fail is Cut.
// Fail does not wait: see Parted.
func (l *Link) Fail(err error) {
	if l.Paused() {
		l.Cut(err)
		return
	}
	e := &ending{cause: err, failed: true, closed: make(chan struct{})}
	if !l.end.CompareAndSwap(nil, e) {
		return
	}
	go func() { // joined by Parted
		defer close(e.closed)
		late := time.NewTimer(lastWords)
		defer late.Stop()
		select {
		case <-l.Done():
		case <-late.C:
			l.Cut(err)
		}
	}()
}

// EndedBy notes that the reader has seen the end of the session as err, and returns why it has
// ended. The reader's error is the cause if we have not ended the link, or only because a write or
// a ping has failed; what fails afterwards does not change the cause.
func (l *Link) EndedBy(err error) error {
	if l.end.CompareAndSwap(nil, &ending{cause: err}) {
		return err
	}
	if e := l.end.Load(); e != nil && e.failed && !errors.Is(err, net.ErrClosed) {
		l.end.CompareAndSwap(e, &ending{cause: err, closed: e.closed})
	}
	return l.Cause(err)
}

// Part ends the connection because of cause, like Cut, but with a close handshake that takes
// at most limit, unless limit is negative. It does not wait: see Parted.
func (l *Link) Part(cause error, why backoff.Reason, limit time.Duration) {
	e := &ending{cause: cause, reason: why, unread: l.Behind()}
	if limit >= 0 {
		e.closed = make(chan struct{})
	}
	if !l.end.CompareAndSwap(nil, e) {
		return
	}
	if limit < 0 {
		l.Close()
		return
	}
	l.End()
	go func() { // joined by Parted
		defer close(e.closed)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		l.Conn.Close(ctx, closeCode(cause), "")
	}()
}

// closeCode returns the code that cause has, if a close frame may carry it (RFC 6455,
// section 7.4), or else 1000.
func closeCode(cause error) int {
	var c interface{ CloseCode() int }
	if !errors.As(cause, &c) {
		return 1000
	}
	switch code := c.CloseCode(); {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
		return code
	}
	return 1000
}

// Parted waits for the close handshake, if Part was called, and for the goroutine of Fail, if that
// was called. The supervisor reads no more.
func (l *Link) Parted() {
	if e := l.end.Load(); e != nil && e.closed != nil {
		l.End()
		<-e.closed
	}
}

// AwaitParted is Parted, but it ends with ctx, and does nothing for a nil link.
func (l *Link) AwaitParted(ctx context.Context) {
	if l == nil {
		return
	}
	if e := l.end.Load(); e != nil && e.closed != nil {
		select {
		case <-e.closed:
		case <-ctx.Done():
		}
	}
}

// Lost reports whether we have ended the link. The supervisor reads on until the link has Ended:
// see Fail.
func (l *Link) Lost() bool { return l.end.Load() != nil }

// Unread reports whether the link was Behind when we have ended it.
func (l *Link) Unread() bool {
	e := l.end.Load()
	return e != nil && e.unread
}

// Cause returns the cause with which we ended the link, or err if we have not.
func (l *Link) Cause(err error) error {
	if e := l.end.Load(); e != nil {
		return e.cause
	}
	return err
}

// Reason returns the kind of the cause, that of err if we have not ended the link.
func (l *Link) Reason(err error) backoff.Reason {
	if e := l.end.Load(); e != nil && e.reason != backoff.ReasonOther {
		return e.reason
	}
	return ReasonOf(l.Cause(err))
}

// Read returns the next message, in the memory that buffer returns if that is large enough:
// see [conn.Transport]. A Conn that is no Transport holds the memory while it waits.
func (l *Link) Read(buffer func(size int) []byte) (conn.Message, error) {
	if l.Transport != nil {
		return l.Transport.ReadBuffer(buffer)
	}
	return l.Conn.Read(buffer(-1))
}

// Heard notes a message.
func (l *Link) Heard() {
	if o := l.observer(); o != nil {
		o.NoteHeard()
	}
}
