package link

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/chunk"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Link is one connection, from its dial to its loss. It is a context that ends with the connection.
type Link struct {
	xsync.Context
	xsync.Slot // held by the one goroutine that writes, once the link is ready; to be first, use acquireFirst

	Conn      conn.Conn
	Transport conn.Transport // Conn, if it is a Transport; else nil
	Session   uint64         // its number; does not change once others know the link

	life *Life
	end  atomic.Pointer[ending]        // nil: we have not ended it
	shut atomic.Pointer[chan struct{}] // closed when CloseNow has returned; nil: it was not called
	turn atomic.Uint64                 // what the supervisor does at the reading end
	rest *rest                         // nil: nothing

	goodbye atomic.Uint32 // goodbyeSaid or goodbyeAnswered, or 0

	// Lead is the state of package lead, which decides whether the supervisor reads or the reader of the
	// Conn. Under LeadMask it is LeadFree while neither does.
	Lead atomic.Uint32
}

// These are parts of Lead.
const (
	LeadMask = 7
	LeadFree = 2
)

// Observer is told what happens on a link. No lock is held meanwhile.
type Observer interface {
	NoteHeard()   // a message came; in the goroutine that reads
	NoteResumed() // reading begins again after a pause; in the goroutine that reads
	NoteWrote()   // messages were written, or begun; in the goroutine that holds the slot
}

// rest is what only some links have.
type rest struct {
	window   *pace    // guarded by Slot, or nil if there is no limit
	observer Observer // nil: nobody
}

// Begin makes l the link of c. No more messages are written by it than the window lets through.
func (l *Link) Begin(c conn.Conn, life *Life, window budget.Window) {
	l.Conn, l.life = c, life
	if window.N > 0 {
		l.rest = &rest{window: &pace{window: window}}
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

// Life returns what all links of the Conn share.
func (l *Link) Life() *Life { return l.life }

// ending is why we ended a link, and how.
type ending struct {
	cause  error
	reason backoff.Reason // ReasonOther: that of the cause
	closed chan struct{}  // closed after the close handshake, or when the reader has had its time; nil: there is neither
	unread bool           // something had come that nobody had read, so that messages may be missing
	failed bool           // a write or a ping has failed: the reader may know why

	retired bool // by Retire: the supervisor reads until the peer has answered
	behind  bool // with retired: the link was Behind then, or MayHaveEnded
	crossed bool // see Crossed
}

// The states of Link.goodbye.
const (
	goodbyeSaid     = 1 + iota // Goodbye was called
	goodbyeAnswered            // and then the peer has ended the connection in order
)

// After a write or a ping has failed the supervisor may wait for the network for lastWords, and take
// allWords for what has come.
const (
	lastWords = time.Second
	allWords  = 30 * time.Second
)

// Turn is what the supervisor does at the reading end of a link, and which pause it is: its lowest
// bits are the former, the highest count the pauses. Between them is what Lag has noted.
type Turn uint64

// The acts of the supervisor at the reading end.
const (
	Reading   Turn = iota // the supervisor reads
	Handling              // OnMessage is in progress, or messages at hand wait for it; no goroutine reads
	Blocked               // the inbox is full; no goroutine reads
	Receiving             // as Handling, with Receive of a Layer

	turnMask = 3
	lagging  = 4 // see Lag
	nextTurn = 8
)

// Pause notes that no goroutine reads until Resume, and why. Only the supervisor calls it.
func (l *Link) Pause(why Turn) { l.turn.Store(l.turn.Load()&^turnMask + nextTurn | uint64(why)) }

// Turn returns the present turn. Any goroutine may call it.
func (l *Link) Turn() Turn { return Turn(l.turn.Load()) }

// Does returns what the supervisor does.
func (t Turn) Does() Turn { return t & turnMask }

// Resume notes that reading begins again.
func (l *Link) Resume() {
	if r := l.rest; r != nil && r.observer != nil {
		r.observer.NoteResumed()
	}
	l.turn.Store(l.turn.Load() &^ turnMask)
}

// Unpause is Resume if l is paused: the application keeps the supervisor from reading, or messages that have come
// during such a pause are still buffered.
func (l *Link) Unpause() {
	if Turn(l.turn.Load())&turnMask != Reading {
		l.Resume()
	}
}

// IsRead reports whether a goroutine reads l now. If not, what comes is not noticed: because l is paused,
// or because the reader of the Conn has left the turn and the supervisor has not taken it yet.
func (l *Link) IsRead() bool {
	return Turn(l.turn.Load())&turnMask == Reading && l.Lead.Load()&LeadMask != LeadFree
}

// Lag notes whether messages have come that the reader has not read yet, while it reads the link itself. The caller has
// the turn to read.
func (l *Link) Lag(lags bool) {
	if lags != (l.turn.Load()&lagging != 0) {
		l.turn.Store(l.turn.Load() ^ lagging)
	}
}

// Lags returns what Lag has noted last.
func (l *Link) Lags() bool { return l.turn.Load()&lagging != 0 }

// Behind reports whether something may have come that has not been read, and perhaps much.
func (l *Link) Behind() bool { return !l.IsRead() || l.Lags() }

// MayHaveEnded reports whether the peer may have ended the connection without the reader having noticed it: it has
// hung up, as far as that is known, or may have answered Goodbye. It makes one system call and never waits.
func (l *Link) MayHaveEnded() bool {
	return l.goodbye.Load() > 0 || l.Transport != nil && l.Transport.HungUp()
}

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

// lose notes how the connection ends, unless it has been ended before, and reports whether it did. From then
// on l is Lost.
func (l *Link) lose(e *ending) bool {
	if !l.end.CompareAndSwap(nil, e) {
		return false
	}
	l.life.Changed.Broadcast()
	return true
}

// Cut ends the connection because of cause, unless it has been ended before: the first cause
// is kept.
func (l *Link) Cut(cause error) {
	if !l.lose(&ending{cause: cause, unread: l.Behind()}) {
		if e := l.end.Load(); e.failed || e.retired { // the reader reads no more
			unread := e.behind || l.Behind()
			l.end.CompareAndSwap(e, &ending{cause: e.cause, reason: e.reason, closed: e.closed, unread: unread})
		}
	}
	l.Close()
}

// Fail ends the connection because err is the error of a write or a ping. The peer may have sent messages
// before, and have said in a close frame why it ended the connection. So the supervisor reads on: see
// hearOut. If it reads an error, that is the cause: see EndedBy. After Goodbye or Retire a write may fail
// because our close frame was sent. Fail ignores such an error, so that the supervisor reads until the peer
// has answered. Fail does not wait: see Parted.
func (l *Link) Fail(err error) {
	if errors.Is(err, net.ErrClosed) && l.awaitsAnswer() {
		return
	}
	e := &ending{cause: err, failed: true, closed: make(chan struct{})}
	if !l.lose(e) {
		return
	}
	go func() { // joined by Parted
		defer close(e.closed)
		if !l.hearOut() {
			l.Cut(err)
		}
	}()
}

// hearOut reports true when l has ended, and false when the supervisor has waited for the network for
// lastWords altogether. Other time does not count, because there may be more at hand. But one call of
// OnMessage, or of a Layer, may take lastWords, because its context ends with l, and a full inbox may
// stay as it is for lastWords. After allWords hearOut reports false in any case: a peer that sends
// for ever must not keep a session in which nothing can be written.
func (l *Link) hearOut() (ended bool) {
	const steps = 10 // in lastWords
	look := time.NewTicker(lastWords / steps)
	defer look.Stop()
	last, waits, stays := l.Turn(), 0, 0
	for range allWords / lastWords * steps {
		select {
		case <-l.Done():
			return true
		case <-look.C:
		}
		turn := l.Turn()
		switch {
		case turn.Does() == Reading:
			waits++
		case turn == last:
			stays++
		default:
			stays = 0
		}
		if waits == steps || stays == steps {
			return false
		}
		last = turn
	}
	return false
}

// awaitsAnswer reports whether Goodbye or Retire was called.
func (l *Link) awaitsAnswer() bool {
	e := l.end.Load()
	return l.goodbye.Load() > 0 || e != nil && e.retired
}

// EndedBy notes that the reader has seen the end of the session as err, and returns why it has
// ended. The reader's error is the cause if we have not ended the link, or only because a write or
// a ping has failed; what fails afterwards does not change the cause. The peer's answer to Goodbye
// counts as [net.ErrClosed], because we have ended the connection.
func (l *Link) EndedBy(err error) error {
	answered := false
	if l.goodbye.Load() > 0 && orderly(err) {
		l.goodbye.Store(goodbyeAnswered)
		if answered = answers(err); answered {
			err = net.ErrClosed
		}
	}
	if l.lose(&ending{cause: err}) {
		return err
	}
	switch e := l.end.Load(); {
	case e.retired && answered:
		l.end.CompareAndSwap(e, e.readToAnswer())
	case errors.Is(err, net.ErrClosed): // by us
	case e.failed:
		l.end.CompareAndSwap(e, &ending{cause: err, closed: e.closed})
	case e.retired && !e.answeredBy(err):
		l.end.CompareAndSwap(e, &ending{cause: e.cause, reason: e.reason, closed: e.closed, unread: true})
	case e.retired && e.crossedBy(err):
		l.end.CompareAndSwap(e, &ending{cause: e.cause, reason: e.reason, closed: e.closed, crossed: true})
	case e.retired:
		l.end.CompareAndSwap(e, e.readToAnswer())
	}
	return l.Cause(err)
}

// readToAnswer returns e for a retired link whose reader has read the answer, so that it is behind no more.
func (e *ending) readToAnswer() *ending {
	return &ending{cause: e.cause, reason: e.reason, closed: e.closed, retired: true}
}

// answers reports whether err may be the peer's answer to Goodbye: a close frame with the code 1000, or
// the end of its direction.
func answers(err error) bool {
	frame, closed := errors.AsType[*conn.CloseError](err)
	return closed && frame.Code == 1000 || errors.Is(err, io.EOF)
}

// answeredBy reports whether err is the peer's answer to the close frame of Retire. If the link was behind at
// that time, the peer may have ended the session before, and only the code identifies the answer.
func (e *ending) answeredBy(err error) bool {
	if !e.behind {
		return orderly(err)
	}
	frame, closed := errors.AsType[*conn.CloseError](err)
	return closed && frame.Code == closeCode(e.cause)
}

// crossedBy reports whether err, which has the code of the answer to Retire, may be a close frame that the peer had
// sent before: the link was behind at that time, and the code is the usual one. Many servers repeat our reason in
// their answer.
func (e *ending) crossedBy(err error) bool {
	frame, closed := errors.AsType[*conn.CloseError](err)
	return e.behind && closed && frame.Code == 1000 && frame.Reason != e.reason.String()
}

// orderly reports whether err says that the peer has ended the connection after its last message.
func orderly(err error) bool {
	_, closed := errors.AsType[*conn.CloseError](err)
	return closed || errors.Is(err, io.EOF)
}

// Part ends the connection because of cause, like Cut, but with a close handshake that takes
// at most limit, unless limit is negative. It does not wait: see Parted.
func (l *Link) Part(cause error, why backoff.Reason, limit time.Duration) {
	l.part(&ending{cause: cause, reason: why, unread: l.Behind()}, limit)
}

func (l *Link) part(e *ending, limit time.Duration) {
	if limit >= 0 {
		e.closed = make(chan struct{})
	}
	if !l.lose(e) {
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
		l.Conn.Close(ctx, closeCode(e.cause), "")
	}()
}

// Retire is Part for a connection whose messages are still wanted: the supervisor reads on until the peer has
// answered the close frame, whose reason is why, for limit at most. If the connection cannot be read after a
// close frame, or limit is negative, Retire is Part.
func (l *Link) Retire(cause error, why backoff.Reason, limit time.Duration) {
	behind := l.Behind() || l.MayHaveEnded()
	if _, reads := l.Conn.(conn.CloseStarter); !reads || limit < 0 {
		l.part(&ending{cause: cause, reason: why, unread: behind}, limit)
		return
	}
	e := &ending{cause: cause, reason: why, closed: make(chan struct{}), retired: true, behind: behind}
	if !l.lose(e) {
		return
	}
	go func() { // joined by Parted
		defer close(e.closed)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if read, _ := l.farewell(ctx, closeCode(cause), why.String()); !read {
			unread := behind || l.Behind()
			l.end.CompareAndSwap(e, &ending{cause: cause, reason: why, closed: e.closed, unread: unread})
		}
		l.Close()
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

// Unread reports whether messages may be missing that the peer had sent before the link ended, because it was
// Behind then, or, with Retire, MayHaveEnded.
func (l *Link) Unread() bool {
	e := l.end.Load()
	return e != nil && e.unread
}

// Crossed reports whether the peer may have ended the link before Retire: see crossedBy. So it may have done if it
// has answered Goodbye.
func (l *Link) Crossed() bool {
	e := l.end.Load()
	return e != nil && e.crossed || l.goodbye.Load() == goodbyeAnswered
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
	if r := l.rest; r != nil && r.observer != nil {
		r.observer.NoteHeard()
	}
}

// Life is what all links of one Conn share. It is a context that ends when the Conn is to end.
type Life struct {
	xsync.Context
	Closed  atomic.Bool // Close was called: nothing more is read
	Leaving atomic.Bool // Shutdown was called: nothing more is accepted to be sent
	// a session was closed so that another can take its place: messages wait, whatever WhenDown says
	Bridging atomic.Bool
	Changed  xsync.Signal // sent with each new status of the Conn, when a link is lost, and when the end begins
	Counts   Counts
}

// Counts are the counts since the beginning of the Conn.
type Counts struct {
	Sessions              atomic.Uint64 // connections that were dialed
	Written, WrittenBytes atomic.Uint64 // written by the goroutine that holds the write slot
	Dropped, Unknown      atomic.Uint64 // messages with these fates
	Probes                atomic.Uint64
	RoundTrip             atomic.Int64 // of the last ping that was answered, in ns; not a count
	KeepAliveMessages     atomic.Uint64
}

// Wrote counts a message that was written.
func (n *Counts) Wrote(m conn.Message) {
	n.Written.Add(1)
	n.WrittenBytes.Add(uint64(len(m.Data)))
}

// Instant is a time by the monotonic clock. It has a third of the size of a [time.Time].
type Instant = time.Duration

// epoch is a whole second, so that in a bubble of [testing/synctest] an Instant in ms is rounded in the same way
// in each process.
var epoch = wholeSecond(time.Now())

func wholeSecond(t time.Time) time.Time { return t.Add(-time.Duration(t.Nanosecond())) }

// Now returns the present instant. It is negative at the beginning of a bubble of
// [testing/synctest].
func Now() Instant { return time.Since(epoch) }

// At returns the instant of t.
func At(t time.Time) Instant { return t.Sub(epoch) }

// Time returns the time of an instant.
func Time(at Instant) time.Time { return epoch.Add(at) }

// Ended is the error of a session that we have ended, and its reason.
type Ended struct {
	Text string
	Why  backoff.Reason
}

func (e *Ended) Error() string { return e.Text }

// Reason returns the reason for [backoff.ReasonOf].
func (e *Ended) Reason() backoff.Reason { return e.Why }

// ReasonOf returns the reason why a session has ended because of err.
func ReasonOf(err error) backoff.Reason {
	_, protocol := errors.AsType[*conn.ProtocolError](err)
	_, big := errors.AsType[*conn.TooBigError](err)
	_, slow := errors.AsType[*conn.SlowMessageError](err)
	switch {
	case protocol || big:
		return backoff.ReasonProtocol
	case slow:
		return backoff.ReasonTimeout
	}
	return backoff.ReasonOf(err)
}

// Page is memory for one message of a link at a time. The memory and the paused mark of the link are kept
// until the connection is about to block, if it announces that, so that messages already received cost
// no memory and no mark.
type Page struct {
	link   *Link
	chunk  *chunk.Chunk
	last   int32 // size of the message before, or chunk.Largest if that is less
	begun  bool  // a message is being read into the chunk
	waits  bool  // the connection calls rest before it waits
	buffer func(size int) []byte
}

// NewPage returns a page without memory. The caller calls Free in the end.
func NewPage(l *Link) *Page {
	p := &Page{link: l}
	p.buffer = p.room
	p.waits = l.Transport != nil && l.Transport.BeforeBlock(p.rest)
	return p
}

// Read returns the next message, which is valid until Done.
func (p *Page) Read() (conn.Message, error) { return p.link.Read(p.buffer) }

// room returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room.
func (p *Page) room(size int) []byte {
	p.begun = true
	if size == 0 {
		size = int(p.last)
	}
	if p.chunk != nil && p.chunk.Size() < size {
		p.Free()
	}
	if p.chunk == nil {
		if p.chunk = chunk.New(size); p.chunk == nil {
			return nil
		}
	}
	return p.chunk.Room()
}

// Done releases m before the next Read.
func (p *Page) Done(m conn.Message) {
	p.last, p.begun = int32(min(len(m.Data), chunk.Largest)), false
	if !p.waits {
		p.rest()
	}
}

// rest prepares for a wait.
func (p *Page) rest() {
	p.link.Unpause()
	if !p.begun && p.link.Transport != nil {
		p.Free()
	}
}

// Free gives the memory back.
func (p *Page) Free() {
	if p.chunk != nil {
		p.chunk.Free()
		p.chunk = nil
	}
}
