package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// A peer sends messages and pings and resets the connection. What it had sent before can still be read, but
// nothing can be written: neither the answer to a ping nor what the program writes meanwhile.

// drawResets draws such events, from a stream of its own.
func (p *Plan) drawResets() {
	r := p.stream(26)
	if r.IntN(3) > 0 {
		return
	}
	p.Settings.Resets, p.Settings.Spares = true, r.IntN(2) == 0
	for range 1 + r.IntN(5) {
		at := 1 + upTo(r, p.Length)
		kind := resetKinds[r.IntN(len(resetKinds))]
		p.Events = append(p.Events, Event{len(p.Events), at, kind.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// resetKinds are the events that drawResets draws.
var resetKinds = []happening{
	{"frozen and reset", 0, (*world).freezeAndReset},
	{"reset after a ping", 0, (*world).resetAfterPing},
}

// unspared are the events of the other kinds that happen in a plan with Spares: they end no session.
var unspared = []string{
	"write", "send", "sends", "send and wait", "kick", "check", "watch", "look", "slow reader", "callback",
	"pings", "await", "await session", "bad message", "burst", "any callback", aboveStep.name,
}

// spares reports whether events of a kind do not happen.
func (w *world) spares(kind string) bool {
	resets := slices.ContainsFunc(resetKinds, func(k happening) bool { return k.name == kind })
	return w.set.Spares && !resets && !slices.Contains(unspared, kind)
}

// allWords is what a Conn whose write has failed takes at most for what had come.
const allWords = 30 * time.Second

// lastWords is what a session is to deliver whose peer resets the connection.
type lastWords struct {
	all     position
	closed  bool          // a close frame comes after that
	sentAt  time.Duration // when the peer had sent all
	heardAt time.Duration // when the reader got the last message, or sentAt
	paused  bool          // the reader took a second or more for one message, and the Conn does not wait for that
}

// pauses notes that the reader gets a message of s, or its seam, now. The caller holds w.mu.
func (w *world) pauses(s *session) {
	if words := s.words; words != nil {
		words.paused = words.paused || w.now()-words.heardAt >= time.Second
		words.heardAt = w.now()
	}
}

// restartAdvice is the reason of the close frame before a reset, and restartWait the wait for which it asks.
const (
	restartAdvice = "redial/1 wait=30s"
	restartWait   = 30 * time.Second
)

// freezeAndReset suspends the process of the client for a while, as freeze does. The buffer of its socket
// gets messages among pings and, perhaps, a close frame with advice. Meanwhile the peer resets the
// connection.
func (w *world) freezeAndReset(r *rand.Rand, e Event) {
	p, to := w.resetting(r, "frozen and reset")
	if p == nil {
		return
	}
	holdBack(p)
	for range 1 + r.IntN(6) {
		w.tell(to, r, r.IntN(5))
		for range r.IntN(4) {
			w.inject(p, conntest.Frame{Head: conntest.Fin | ping, Payload: []byte("hi")})
		}
	}
	closes := r.IntN(3) > 0
	w.mu.Lock()
	s := w.of(to.session)
	words := &lastWords{all: s.reaches()}
	w.mu.Unlock()
	if closes {
		code := []byte{1012 >> 8, 1012 & 255}
		words.closed = w.inject(p, conntest.Frame{Head: conntest.Fin | 8, Payload: append(code, restartAdvice...)})
	}
	p.CutReset(conntest.Both, 0)
	time.Sleep(upTo(r, w.silence()/3-1))
	w.jump(0)
	w.expectWords(p, s, words)
	w.thaw(p)
	w.writeMeanwhile(r, e)
}

// resetAfterPing lets a peer send messages, a ping and messages, and reset the connection when the client has written
// n bytes more. These may be a part of the answer to the ping, or what the program writes.
func (w *world) resetAfterPing(r *rand.Rand, e Event) {
	p, to := w.resetting(r, "reset after a ping")
	if p == nil {
		return
	}
	together := r.IntN(2) == 0 // the client finds everything in the buffer of its socket
	if together {
		holdBack(p)
	}
	w.tell(to, r, 1+r.IntN(10))
	size := r.IntN(126)
	w.inject(p, conntest.Frame{Head: conntest.Fin | ping, Payload: make([]byte, size)})
	w.tell(to, r, 1+r.IntN(10))
	w.mu.Lock()
	s := w.of(to.session)
	words := &lastWords{all: s.reaches()}
	w.mu.Unlock()
	p.CutReset(conntest.ToServer, 1+r.Int64N(200))
	w.expectWords(p, s, words)
	if together {
		w.thaw(p)
		p.Window(conntest.ToClient, -1)
	}
	w.writeMeanwhile(r, e)
}

// holdBack lets nothing arrive at the client until it is thawed. All that the server has begun to write is written
// then: otherwise what is put between two writes could be inside a frame.
func holdBack(p *conntest.Pipe) {
	p.Stall(conntest.ToClient)
	p.Window(conntest.ToClient, math.MaxInt)
	time.Sleep(time.Nanosecond)
}

// resetting waits for a session and returns its connection, which the peer is to reset, and the peer, or nil. A
// connection on which a write of the server may be stuck is left out, because what is put between two writes would
// be inside a frame.
func (w *world) resetting(r *rand.Rand, kind string) (*conntest.Pipe, *peer) {
	if w.set.Framing != 0 || w.set.TLS || w.set.Apart || !w.awaitReady(r) {
		return nil, nil
	}
	n := w.conn.Status().Session
	w.mu.Lock()
	to := w.peers[n]
	w.mu.Unlock()
	if to == nil || !to.pipe.Live() || w.had(to.pipe, "window") {
		return nil, nil
	}
	w.note(to.pipe, kind)
	return to.pipe, to
}

// tell sends n burst messages to a peer. It does not wait for a write that is stuck.
func (w *world) tell(to *peer, r *rand.Rand, n int) {
	own := rand.New(rand.NewPCG(r.Uint64(), to.session))
	sent := make(chan struct{})
	w.users.Go(func() {
		defer close(sent)
		w.burstOn(to, own, n)
	})
	select {
	case <-sent:
	case <-time.After(100 * time.Millisecond):
	}
}

// writeMeanwhile lets the program write or probe while it still reads what had come before a reset.
func (w *world) writeMeanwhile(r *rand.Rand, e Event) {
	time.Sleep(upTo(r, 20*time.Millisecond))
	switch r.IntN(4) {
	case 0:
		w.sendSome(r, e, 1+r.IntN(3))
	case 1:
		w.write(context.Background(), r, fmt.Sprint("z", e.Index), 1+upTo(r, time.Second))
	case 2:
		w.callCheck()
	}
}

// expectWords notes what the session s is to deliver, unless it is not certain that the reader gets all of that. A
// connection that is stalled when the faults end stays so.
func (w *world) expectWords(p *conntest.Pipe, s *session, words *lastWords) {
	now := w.conn.Status()
	w.mu.Lock()
	defer w.mu.Unlock()
	blocks := reconnect.InboxOverflow(w.set.InboxOverflow) == reconnect.InboxBlock
	keeps := w.set.Reader == readPush || w.set.Reader != readLate && blocks // each message for the reader
	reads := w.set.Above != aboveBridge && w.set.Above != aboveDrain
	ready := s.ready && s.lostAt < 0 && now.State == reconnect.StateReady && now.Session == s.number
	only := len(w.piped(p).faults) == 1 && w.set.Stall == 0
	if keeps && reads && ready && only && !w.calmed.Load() && !now.Rotating && !w.rotating() {
		words.sentAt, words.heardAt = w.now(), w.now()
		s.words = words
	}
}

// wordsAreHeard checks, at the seam of a session whose peer has reset the connection, that the reader has got
// all that had come before. The caller holds w.mu.
func (w *world) wordsAreHeard(s *session, seam *reconnect.Seam) {
	if s.words == nil || seam.Planned || w.closing > 0 || w.exited || w.meddled[s.number] {
		return
	}
	if w.pauses(s); s.words.paused || len(w.piped(s.pipe).faults) > 1 {
		return
	}
	if w.now()-s.words.sentAt >= allWords {
		return
	}
	w.check(HeardBeforeReset, s.reached(s.words.all),
		"session %d: the server had sent %+v, and %d and %d were read: %v",
		s.number, s.words.all, s.next, s.burst.read, seam.Cause)
	if seam.Lost == 1 && s.words.closed {
		frame, ok := errors.AsType[*conn.CloseError](seam.Cause)
		w.check(GoodbyeIsCause, ok && frame.Code == 1012 && frame.Reason == restartAdvice,
			"session %d had got a close frame, and ends with %v", s.number, seam.Cause)
	}
}

// waitsAsAdvised notes that no dial may begin soon, because s has ended and its peer had sent a close frame with
// advice before it reset the connection. The caller holds w.mu.
func (w *world) waitsAsAdvised(s *session) {
	if s.words == nil || !s.words.closed || w.meddled[s.number] || w.closing > 0 || w.rotating() {
		return
	}
	if len(w.piped(s.pipe).faults) > 1 || w.acted || w.blocked || w.now()-s.words.heardAt >= time.Second {
		return
	}
	if w.now()-s.words.sentAt >= allWords {
		return
	}
	w.restartAt = w.now() + restartWait
}

// The invariants that are checked here.
const (
	HeardBeforeReset Invariant = "9: what a peer had sent before it reset the connection is read"
	GoodbyeIsCause   Invariant = "9: a write that fails hides no close frame that has come"
	GoodbyeIsObeyed  Invariant = "9: the wait of a close frame is kept although a write has failed before it was read"
)
