package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// A server sends bursts of messages, some of them just before a Shutdown. What it has sent before
// Shutdown is called must be read.

// drawParting draws bursts, and whether the history ends with one, from a stream of its own.
func (p *Plan) drawParting() {
	r, s := p.stream(18), &p.Settings
	s.Bursts, s.Hears, s.Single = r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(8) == 0
	if *s = s.possible(); !s.Bursts {
		return
	}
	for range 1 + r.IntN(6) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), burst.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// burst is an event: the server sends several messages together on each of its connections.
var burst = happening{"burst", 0, func(w *world, r *rand.Rand, e Event) {
	if w.set.Bursts && !w.set.Apart { // with Apart the scheduler would decide how much is read together
		w.burst(r, 1+r.IntN(30))
	}
}}

// burst sends n messages on each connection, one connection after the other. It does not wait for a
// write that is stuck.
func (w *world) burst(r *rand.Rand, n int) {
	for _, p := range w.peersNow() {
		own := rand.New(rand.NewPCG(r.Uint64(), p.session))
		sent := make(chan struct{})
		w.users.Go(func() {
			defer close(sent)
			w.burstOn(p, own, n)
		})
		select {
		case <-sent:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// burstOn sends n messages on a connection, unless its last burst is still in progress.
func (w *world) burstOn(p *peer, r *rand.Rand, n int) {
	if !p.bursting.CompareAndSwap(false, true) {
		return
	}
	defer p.bursting.Store(false)
	for range n {
		if w.sayBurst(p, r.IntN(200)) != nil {
			return
		}
		if r.IntN(3) == 0 {
			time.Sleep(upTo(r, 100*time.Microsecond) + 10*time.Microsecond)
		}
	}
}

// sayBurst sends the next burst message of a connection.
func (w *world) sayBurst(p *peer, size int) error {
	w.mu.Lock()
	s := w.of(p.session)
	i := s.burst.begun
	s.burst.begun++
	w.mu.Unlock()
	err := p.say(fmt.Sprintf("burst %d %d %0*d", s.number, i, size+1, 0))
	if err == nil {
		w.mu.Lock()
		s.burst.written = max(s.burst.written, i+1)
		w.mu.Unlock()
	}
	return err
}

// peersNow returns the connections that are logged in at the server, the oldest session first.
func (w *world) peersNow() (all []*peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return int(a.session) - int(b.session) })
	return all
}

// bursts counts the burst messages of one session.
type bursts struct{ begun, written, read int }

// heardBurst checks burst message i, which the reader got from s and the server sent to session. The
// caller holds w.mu.
func (w *world) heardBurst(s *session, session uint64, i int) {
	w.check(WholeMessages, session == s.number && i < s.burst.begun,
		"session %d: message %d of the bursts of %d", s.number, i, session)
	if i > s.burst.read {
		w.gaps += i - s.burst.read
	}
	w.check(NothingMissing, i >= s.burst.read && w.gaps <= w.dropped,
		"session %d: message %d of its bursts, and %d was expected; seams said %d dropped",
		s.number, i, s.burst.read, w.dropped)
	s.burst.read = i + 1
}

// position is a point in the messages of a session: the number of events and of burst messages before it.
type position struct{ feed, bursts int }

// reaches returns the position after what the server has written. The caller holds w.mu.
func (s *session) reaches() position { return position{s.wrote, s.burst.written} }

// reached reports whether the reader has read everything before p. The caller holds w.mu.
func (s *session) reached(p position) bool { return s.next >= p.feed && s.burst.read >= p.bursts }

// prelude lets the server send bursts before a Shutdown. The first ones have one message each, so that
// the reader has to wait for it and reads the connection itself.
func (w *world) prelude(r *rand.Rand) {
	w.mu.Lock()
	clear(w.pending)
	w.endTakes = 1 + upTo(r, 20*time.Millisecond)
	w.mu.Unlock()
	if w.set.Dues && r.IntN(3) == 0 { // a next session gets ready during the goodbye
		if p := w.pipe(r, "stall"); p != nil {
			p.Stall(conntest.ToClient)
		}
		w.rotate(r)
		time.Sleep(1 + upTo(r, 4*w.set.Lag+time.Millisecond))
		return
	}
	if r.IntN(4) > 0 {
		for range 6 + r.IntN(10) {
			w.burst(r, 1)
			time.Sleep(w.endTakes + upTo(r, 10*time.Millisecond))
		}
	}
	if r.IntN(4) == 0 {
		w.rotate(r)
		time.Sleep(1 + upTo(r, 3*w.set.Lag+time.Millisecond))
	}
	w.burst(r, r.IntN(30))
	limits := []time.Duration{2 * time.Millisecond, 40 * time.Millisecond}
	time.Sleep(1 + upTo(r, limits[r.IntN(2)]))
}

// due returns the session by which messages come and what the server has written to it, or nil if it is
// not certain that the reader will get all of that.
func (w *world) due() (s *session, all position) {
	now := w.conn.Status()
	slow := w.readerTakes() > 20*time.Millisecond // then the inbox may be full, and Shutdown discards what does not fit
	w.mu.Lock()
	defer w.mu.Unlock()
	s = w.of(now.Session)
	ready := now.State == reconnect.StateReady && s.ready && s.pipe != nil
	calm := !now.Rotating && !w.rotating() && w.acting == 0
	blocks := reconnect.InboxOverflow(w.set.InboxOverflow) == reconnect.InboxBlock
	keeps := w.set.Reader == readPush || w.set.Reader != readLate && blocks // each message for the reader
	patient := w.set.CloseTimeout <= 0 || w.set.CloseTimeout > 4*w.set.Lag+time.Second
	paused := w.readPause > w.now()+20*time.Millisecond
	reads := w.set.Above != aboveBridge && w.set.Above != aboveDrain // until the end
	if !ready || !calm || !keeps || !patient || slow || paused || !reads {
		return nil, all
	}
	return s, s.reaches()
}

// heard checks, after a Shutdown that has returned err, that the reader has got what was due.
func (w *world) heard(s *session, all position, err error) {
	if w.reader != nil {
		select {
		case <-w.reader:
		case <-time.After(2 * time.Minute):
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == nil || err != nil || w.exited || w.closedAt > 0 {
		return
	}
	if len(w.piped(s.pipe).faults) > 0 || s.reason != backoff.ReasonShutdown {
		return
	}
	w.check(HeardBeforeShutdown, s.reached(all),
		"session %d: the server had sent %+v, and %d and %d were read",
		s.number, all, s.next, s.burst.read)
}

// halfCloser is a connection that can close its writing direction alone, as TCP can. On any other
// connection Shutdown reads nothing more.
type halfCloser struct{ *located }

func (c *halfCloser) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// HeardBeforeShutdown is the invariant that heard checks.
const HeardBeforeShutdown Invariant = "11: what the server had sent before Shutdown was called is read"
