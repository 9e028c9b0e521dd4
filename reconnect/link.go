package reconnect

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// link is one connection of a [Conn], from its dial to its loss. It is a context
// that ends with the connection.
type link struct {
	xsync.Context
	conn    conn.Conn
	late    conn.BufferReader // conn, if it needs no buffer while it waits; else nil
	session uint64
	end     atomic.Pointer[ending] // nil: we have not ended it
	slot    xsync.Slot             // held by the one goroutine that writes, once the link is ready

	delivered bool // a message of it is in the stream; belongs to the supervisor, and to OnSession while that runs
	resumed   bool // OnSession has called Resumed; likewise
	broken    bool // a Read or Write of OnSession has failed; likewise
	overlaps  bool // another session led before this one ended; belongs to the supervisor

	clock uint32 // when its dial began; once it is ready, how long the dial and OnSession took: see milliseconds

	// Guarded by outbox.mu.
	flushing bool // there is a flusher
	sending  bool // it writes messages that any session could send

	seen uint32 // the lowest bits of turn at the last tick of liveness, whose callback owns it

	extra   *extra   // nil: none
	calling callback // the user's function that runs in the supervisor's goroutine

	turn     atomic.Uint64 // what the supervisor does at the reading end
	liveness liveness
}

// Value returns the lifetime for its key: l is the context of callbacks.
func (l *link) Value(key any) any {
	if key == (lifetimeKey{}) {
		return l.liveness.life
	}
	return nil
}

// extra is what only some links have.
type extra struct {
	hint  *hint  // with which it was dialed
	aging *aging // nil: there is no limit on its age
	idle  *idler // nil: nothing is written when nothing was for a while
	pace  *pace  // guarded by slot; nil: there is no limit
	stall *stall // nil: there is no limit
	mark  *mark  // nil: the user wants none
}

// newExtra returns nil if there is nothing extra.
func newExtra(life *lifetime, h *hint) *extra {
	if h == nil && life.o.more.rare == noRare && life.o.Stall == nil {
		return nil
	}
	return &extra{hint: h, pace: newPace(life.o.more.Pace), mark: newMark(life)}
}

// stop stops the timers. The link is cut already.
func (x *extra) stop() {
	if x != nil {
		x.aging.stop()
		x.idle.stop()
	}
}

// hint returns the hint with which l was dialed, or nil.
func (l *link) hint() *hint {
	if l.extra == nil {
		return nil
	}
	return l.extra.hint
}

// ending is why we ended a link, and how.
type ending struct {
	cause  error
	reason backoff.Reason // ReasonOther: that of the cause
	closed chan struct{}  // closed after the close handshake, or when the reader has had its time; nil: there is neither
	unread bool           // nobody read at that time, so that messages may be missing
	failed bool           // a write or a ping has failed: the reader may know why
}

// lastWords is how long the reader may go on after a write or a ping has failed.
const lastWords = time.Second

// The lowest bits of link.turn are what the supervisor is doing at the reading end; the
// others count the pauses. Only the supervisor writes it.
const (
	reading  uint64 = iota // the supervisor reads
	handling               // OnMessage runs, or messages at hand wait for it, and nobody reads
	blocked                // the inbox is full, and nobody reads

	turnMask = 3
	nextTurn = turnMask + 1
)

// pause notes that nobody reads until resume; why is handling or blocked.
func (l *link) pause(why uint64) { l.turn.Store(l.turn.Load()&^turnMask + nextTurn | why) }

// resume notes that reading begins again.
func (l *link) resume() {
	if l.extra != nil {
		l.extra.stall.resumed()
	}
	l.turn.Store(l.turn.Load() &^ turnMask)
}

// unpause is resume if l is paused.
func (l *link) unpause() {
	if l.paused() {
		l.resume()
	}
}

// paused reports whether nobody reads, or messages that have come during a pause are still at
// hand.
func (l *link) paused() bool { return l.turn.Load()&turnMask != reading }

// Close cuts the connection for Run.
func (l *link) Close() error {
	l.End()
	return l.conn.CloseNow()
}

// cut ends the connection because of cause, unless it has been ended before: the first cause
// is kept.
func (l *link) cut(cause error) {
	l.end.CompareAndSwap(nil, &ending{cause: cause, unread: l.paused()})
	l.End()
	l.conn.CloseNow()
}

// fail ends the connection because err is the error of a write or a ping. The peer may have said why
// it ended the connection before, in a close frame for instance. So the reader may go on for
// lastWords, and if it has an error, that is the cause: see endedBy. If nobody reads, fail is cut.
// fail does not wait: see parted.
func (l *link) fail(err error) {
	if l.paused() {
		l.cut(err)
		return
	}
	e := &ending{cause: err, failed: true, closed: make(chan struct{})}
	if !l.end.CompareAndSwap(nil, e) {
		return
	}
	go func() { // joined by parted
		defer close(e.closed)
		late := time.NewTimer(lastWords)
		defer late.Stop()
		select {
		case <-l.Done():
		case <-late.C:
			l.end.CompareAndSwap(e, &ending{cause: err, closed: e.closed, unread: l.paused()})
			l.Close()
		}
	}()
}

// endedBy returns why the session has ended, which the reader has seen as err. The reader's error
// is the cause if we have ended the link only because a write or a ping has failed.
func (l *link) endedBy(err error) error {
	if e := l.end.Load(); e != nil && e.failed && !errors.Is(err, net.ErrClosed) {
		l.end.CompareAndSwap(e, &ending{cause: err, closed: e.closed})
	}
	return l.why(err)
}

// part ends the connection because of cause, like cut, but with a close handshake that takes
// at most limit, unless limit is negative. It does not wait: see parted.
func (l *link) part(cause error, why backoff.Reason, limit time.Duration) {
	e := &ending{cause: cause, reason: why, unread: l.paused()}
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
	go func() { // joined by parted
		defer close(e.closed)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		l.conn.Close(ctx, closeCode(cause), "")
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

// parted waits for the close handshake, if part was called, and for the goroutine of fail, if that
// was called. The supervisor reads no more.
func (l *link) parted() {
	if e := l.end.Load(); e != nil && e.closed != nil {
		l.End()
		<-e.closed
	}
}

// awaitParted is parted, but it ends with ctx, and does nothing for a nil link.
func (l *link) awaitParted(ctx context.Context) {
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

// lost reports whether we have ended the link. The supervisor reads on until the link has Ended:
// see fail.
func (l *link) lost() bool { return l.end.Load() != nil }

// unread reports whether we have ended the link while nobody read.
func (l *link) unread() bool {
	e := l.end.Load()
	return e != nil && e.unread
}

// why returns the cause with which we ended the link, or err if we have not.
func (l *link) why(err error) error {
	if e := l.end.Load(); e != nil {
		return e.cause
	}
	return err
}

// reason returns the kind of the cause, that of err if we have not ended the link.
func (l *link) reason(err error) backoff.Reason {
	if e := l.end.Load(); e != nil && e.reason != backoff.ReasonOther {
		return e.reason
	}
	return reasonOf(l.why(err))
}

// read returns the next message, in the memory that buffer returns if that is large enough:
// see [conn.BufferReader]. A conn that is no BufferReader holds the memory while it waits.
func (l *link) read(buffer func(size int) []byte) (conn.Message, error) {
	if l.late != nil {
		return l.late.ReadBuffer(buffer)
	}
	return l.conn.Read(buffer(-1))
}

// writeFirst writes m ahead of all others that wait to write.
func (l *link) writeFirst(ctx context.Context, life *lifetime, m conn.Message) error {
	if err := l.acquireFirst(ctx, life); err != nil {
		return err
	}
	defer l.slot.Release()
	err := l.conn.Write(m)
	l.wrote(1)
	switch {
	case err == nil:
		life.counts.written(m)
	case !errors.Is(err, conn.ErrBadMessage):
		l.fail(err)
	}
	return err
}

// acquireFirst gets the slot ahead of all others that wait for it, and waits until a message may
// be written. If ctx ends before because of the window, heldByPace reports it.
func (l *link) acquireFirst(ctx context.Context, life *lifetime) error {
	p := l.pace()
	var sleeps uint64
	if p != nil {
		sleeps = p.sleeps.Load()
	}
	if err := l.slot.AcquireFirst(ctx, &life.Context); err != nil {
		if p != nil && (sleeps%2 == 1 || p.sleeps.Load() != sleeps) { // its holder waited
			p.late.Store(true)
		}
		return err
	}
	err := l.awaitWrite(ctx, life)
	if err != nil { // there is a window
		p.late.Store(true)
		l.slot.Release()
	}
	return err
}

// pace returns the window, nil if there is no limit.
func (l *link) pace() *pace {
	if l == nil || l.extra == nil {
		return nil
	}
	return l.extra.pace
}

// awaitWrite waits until a message may be written. It ends with ctx, l and life. The caller
// holds the slot.
func (l *link) awaitWrite(ctx context.Context, life *lifetime) error {
	_, err := l.mayWrite(ctx, life, 1, nil)
	return err
}

// wakePace lets a wait for the window end, because there may be nothing to write any more.
func (l *link) wakePace() { l.pace().wake() }

// heldByPace reports whether the window has kept an acquireFirst from succeeding since the last
// call.
func (l *link) heldByPace() bool {
	p := l.pace()
	return p != nil && p.late.Swap(false)
}

// mayWrite waits until a message may be written, and returns how many may, most at most; 0 if
// nothing reports that there is nothing to write. It ends with ctx, l and life. The caller holds
// the slot.
func (l *link) mayWrite(ctx context.Context, life *lifetime, most int, nothing func() bool) (int, error) {
	return l.pace().wait(ctx, &life.Context, l, most, nothing)
}

// awaitPace waits until a ping may be written, and counts it.
func (l *link) awaitPace(ctx context.Context, life *lifetime) error {
	p := l.pace()
	if p == nil {
		return nil
	}
	if err := l.acquireFirst(ctx, life); err != nil {
		return err
	}
	defer l.slot.Release()
	p.wrote(1)
	return nil
}

// wrote notes that n messages were written, or begun.
func (l *link) wrote(n int) {
	if l.extra != nil {
		l.extra.idle.wrote()
		l.extra.pace.wrote(n)
	}
}

// heard notes a message.
func (l *link) heard() {
	l.liveness.heard()
	if l.extra != nil {
		l.extra.stall.heard()
	}
}

// milliseconds returns t in ms, in 32 bits, of which the difference of two is right within
// weeks.
func milliseconds(t instant) uint32 { return uint32(t.Milliseconds()) }

// instant is a time by the monotonic clock. It has a third of the size of a [time.Time].
type instant = time.Duration

var epoch = time.Now()

func now() instant { return time.Since(epoch) }
