package outbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// world is an Outbox in virtual time, with all that comes out of it.
type world struct {
	*Outbox
	t     *testing.T
	life  link.Life
	start time.Time
	peers []*peer

	plain  bool          // the connections of attach take one message at a time
	window budget.Window // and let through no more than this

	mu      sync.Mutex // guards what follows
	given   []string   // what the connections were given
	fates   []string   // the receipts
	overdue []string   // the functions for which Await has waited
	writes  []write    // without a fate
	batches []int      // how many messages were given to a connection, each time
	wrote   int        // how often a link says so
}

// write is a Write that waits.
type write struct {
	Waiting
	data string
}

// peer is a connection and its link.
type peer struct {
	*conntest.Fake
	link  *link.Link
	world *world
	slow  time.Duration // how long a write takes
}

var errLost, errBroken, errCanceled = errors.New("lost"), errors.New("broken"), errors.New("canceled")

// errNotBegun is the error of a write of which not a byte has left.
var errNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, errBroken)

// play plays a scene with an outbox, in the year 2100, where an Instant is positive. The outbox holds 100 messages of 1 MiB
// together, unless o says otherwise. The scene must want all that happens.
func play(t *testing.T, o Options, scene func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)))
		w := &world{t: t, start: time.Now()}
		if o.Messages == 0 {
			o.Limits = queue.Limits{Messages: 100, Bytes: 1 << 20, Full: o.Full}
		}
		receipt := o.Receipt
		o.Receipt = func(r *Receipt) {
			w.note(&w.fates, w.receipt(r))
			if receipt != nil {
				receipt(r)
			}
		}
		o.Await = func(done <-chan struct{}, function string) { w.note(&w.overdue, "awaits "+function); <-done }
		w.Outbox = New(o, &w.life, nil, nil, 0, false)
		defer func() { // also after a failure
			w.life.End()
			for _, p := range w.peers {
				p.link.Cut(errLost)
				p.link.Parted()
			}
			w.End()
		}()
		scene(t, w)
		w.want()
	})
}

// note adds a line to a list, with the time unless it is that of the start.
func (w *world) note(list *[]string, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := time.Since(w.start); at > 0 {
		line += fmt.Sprintf(" @%v", at)
	}
	*list = append(*list, line)
}

// receipt returns the line of a receipt: its fate, its session, how many tries there were, the begin and the end of the last
// one, and the error.
func (w *world) receipt(r *Receipt) string {
	line := fmt.Sprintf("%s: %s %d x%d", r.Out.Data, fateOf(r.Fate), r.Session, r.Tries)
	if !r.Began.IsZero() {
		line += fmt.Sprintf(" %v-%v", r.Began.Sub(w.start), r.Ended.Sub(w.start))
	}
	return line + because(r.Err)
}

func fateOf(f Fate) string { return [...]string{"written", "dropped", "unknown"}[f] }

func because(err error) string {
	if err == nil {
		return ""
	}
	return " (" + strings.ReplaceAll(err.Error(), "use of closed network connection", "closed") + ")"
}

// want asserts all that has happened since the last call: "1 < a+b" is a batch that the connection of session 1 was given,
// "a: written 1 x1 0s-0s" a receipt, and "w = written 1" the end of a Write. The connections come first, in their order.
func (w *world) want(lines ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.given, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	got := append(append(append([]string{}, w.given...), w.fates...), w.overdue...)
	w.given, w.fates, w.overdue = nil, nil, nil
	w.writes = slices.DeleteFunc(w.writes, func(m write) bool {
		if !closed(m.Done()) {
			return false
		}
		fate, session, err := m.Outcome()
		got = append(got, fmt.Sprintf("%s = %s %d%s", m.data, fateOf(fate), session, because(err)))
		return true
	})
	require.Equal(w.t, append([]string{}, lines...), got)
	require.LessOrEqual(w.t, w.wrote, len(w.batches), "a link notes that nothing was written")
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// dial returns a connection that is not ready.
func (w *world) dial() *peer {
	p := &peer{Fake: conntest.NewFake(&conntest.FakeOptions{Transport: true}), world: w}
	p.link = &link.Link{Session: w.life.Counts.Sessions.Add(1)}
	if w.plain {
		p.link.Begin(struct{ conn.Conn }{p}, &w.life, w.window)
	} else {
		p.link.Begin(batching{p, p.Fake.Conn().(conn.Transport)}, &w.life, w.window)
	}
	p.link.Observe(w)
	w.peers = append(w.peers, p)
	return p
}

// attach returns a connection that is ready.
func (w *world) attach() *peer {
	p := w.dial()
	w.Attach(p.link, func() {})
	return p
}

// stuck returns a connection that is ready, and stuck in the write of "a".
func (w *world) stuck() *peer {
	w.t.Helper()
	p := w.attach()
	p.Hold()
	w.send(out("a"))
	w.want(fmt.Sprintf("%d < a", p.link.Session))
	return p
}

// begin returns the link of a session that has begun, and its peer.
func begin(life *link.Life, session uint64) (*link.Link, *conntest.Fake) {
	f, l := conntest.NewFake(&conntest.FakeOptions{Transport: true}), &link.Link{Session: session}
	l.Begin(f.Conn(), life, budget.Window{})
	return l, f
}

// lose loses a session. Of the messages that it leaves behind keeps decides; nil: they wait.
func (w *world) lose(p *peer, keeps Keeps) {
	p.link.Cut(errLost)
	w.Detach(p.link, errLost, keeps)
}

// send queues messages, which must be accepted.
func (w *world) send(messages ...*Outgoing) {
	w.t.Helper()
	for _, m := range messages {
		require.NoError(w.t, w.Accept(m))
	}
}

// write queues a message of Write, for one session or, if that is 0, for any.
func (w *world) write(data string, session uint64) Waiting {
	w.t.Helper()
	m, _, err := w.Join(conn.TextMessage(data), session, false)
	require.NoError(w.t, err)
	w.writes = append(w.writes, write{m, data})
	return m
}

// out returns a message of Send for any session.
func out(data string) *Outgoing { return &Outgoing{Message: conn.TextMessage(data)} }

// pinned returns a message of Send for one session.
func pinned(session uint64, data string) *Outgoing {
	return &Outgoing{Message: conn.TextMessage(data), Session: session}
}

// repeatable returns a message of Send that may be sent twice.
func repeatable(data string) *Outgoing {
	return &Outgoing{Message: conn.TextMessage(data), Repeatable: true}
}

// until returns a message of Send that is too late after so long.
func until(after time.Duration, data string) *Outgoing {
	return &Outgoing{Message: conn.TextMessage(data), Deadline: time.Now().Add(after)}
}

// NoteHeard and its like make a world the observer of its links.
func (w *world) NoteHeard()   {}
func (w *world) NoteResumed() {}

func (w *world) NoteWrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote++
}

// gets notes what the connection is given.
func (p *peer) gets(messages ...conn.Message) {
	names := []string{}
	for _, m := range messages {
		names = append(names, string(m.Data[:min(10, len(m.Data))]))
	}
	assert.False(p.world.t, p.link.TryAcquire(), "a write without its turn")
	p.world.note(&p.world.given, fmt.Sprintf("%d < %s", p.link.Session, strings.Join(names, "+")))
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.world.batches = append(p.world.batches, len(messages))
}

// Write refuses "bad".
func (p *peer) Write(m conn.Message) error {
	p.gets(m)
	return p.put(m)
}

func (p *peer) put(m conn.Message) error {
	time.Sleep(p.slow)
	if string(m.Data) == "bad" {
		return conn.ErrBadMessage
	}
	return p.Fake.Write(m)
}

// batching is a peer that takes several messages at once.
type batching struct {
	*peer
	conn.Transport
}

func (b batching) WriteBatch(messages []conn.Message) (n int, err error) {
	b.gets(messages...)
	for n < len(messages) && err == nil {
		if err = b.put(messages[n]); err == nil {
			n++
		}
	}
	return n, err
}
