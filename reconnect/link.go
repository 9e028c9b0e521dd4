package reconnect

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
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
	broken    bool // a Read or Write of OnSession has failed; likewise

	turn     atomic.Uint64 // what the supervisor does at the reading end
	liveness liveness
	stall    *stall // nil: there is no limit
}

// ending is why we ended a link, and how.
type ending struct {
	cause  error
	closed chan struct{} // closed after the close handshake; nil: there is none
}

// The lowest bits of link.turn are what the supervisor is doing at the reading end; the
// others count the pauses. Only the supervisor writes it.
const (
	reading  uint64 = iota // the supervisor reads
	handling               // OnMessage runs, and nobody reads
	blocked                // the inbox is full, and nobody reads

	turnMask = 3
	nextTurn = turnMask + 1
)

// pause notes that nobody reads until resume; why is handling or blocked.
func (l *link) pause(why uint64) { l.turn.Store(l.turn.Load()&^turnMask + nextTurn | why) }

// resume notes that reading begins again.
func (l *link) resume() {
	l.stall.resumed()
	l.turn.Store(l.turn.Load() &^ turnMask)
}

// paused reports whether nobody reads.
func (l *link) paused() bool { return l.turn.Load()&turnMask != reading }

// Close cuts the connection for Run.
func (l *link) Close() error {
	l.End()
	return l.conn.CloseNow()
}

// cut ends the connection because of cause, unless it has been ended before: the first cause
// is kept.
func (l *link) cut(cause error) {
	l.end.CompareAndSwap(nil, &ending{cause: cause})
	l.End()
	l.conn.CloseNow()
}

// part ends the connection because of cause, like cut, but with a close handshake that takes
// at most limit. It does not wait: see parted.
func (l *link) part(cause error, limit time.Duration) {
	e := &ending{cause: cause, closed: make(chan struct{})}
	if limit < 0 {
		l.cut(cause)
		return
	}
	if !l.end.CompareAndSwap(nil, e) {
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

// parted waits for the close handshake, if part was called.
func (l *link) parted() {
	if e := l.end.Load(); e != nil && e.closed != nil {
		<-e.closed
	}
}

// lost reports whether we have ended the link.
func (l *link) lost() bool { return l.end.Load() != nil }

// why returns the cause with which we ended the link, or err if we have not.
func (l *link) why(err error) error {
	if e := l.end.Load(); e != nil {
		return e.cause
	}
	return err
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
	if err := l.slot.AcquireFirst(ctx, &life.Context); err != nil {
		return err
	}
	defer l.slot.Release()
	err := l.conn.Write(m)
	if err == nil {
		life.counts.written(m)
	}
	return err
}

// heard notes a message.
func (l *link) heard() {
	l.liveness.heard()
	l.stall.heard()
}

// instant is a time by the monotonic clock. It has a third of the size of a [time.Time].
type instant = time.Duration

var epoch = time.Now()

func now() instant { return time.Since(epoch) }
