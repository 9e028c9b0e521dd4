package ledger

import (
	"net"
	"slices"

	"github.com/redial-go/redial/reconnect"
)

// AckedTo records that the peer has acknowledged every message up to seq. session is the session that brought
// the acknowledgement ([reconnect.Message].Session). After AckedTo has returned, no write of these messages
// begins, but one in progress continues. Numbers that were acknowledged before, and sessions from before the
// peer's current numbers, are ignored. The error is:
//
//   - a [*SeqError] if seq was never sent. The usual reaction is [reconnect.Conn.Redial].
//   - [net.ErrClosed] once the Conn is done.
func (l *Ledger) AckedTo(session, seq uint64) error {
	l.mu.Lock()
	defer l.unlock()
	counts, err := l.ackable(session, seq)
	if counts {
		l.ackedTo(seq)
	}
	return err
}

// Acked is like AckedTo for a peer that acknowledges each message separately.
func (l *Ledger) Acked(session, seq uint64) error {
	l.mu.Lock()
	defer l.unlock()
	counts, err := l.ackable(session, seq)
	if e := l.queue.bySeq(seq); counts && e != nil {
		l.settle(e, OutcomeAcknowledged, nil)
		l.setTimer()
	}
	return err
}

// ackable reports whether an acknowledgement counts, or why it cannot be right. One that came by a
// session with other numbers than the present ones does not count.
func (l *Ledger) ackable(number, seq uint64) (counts bool, err error) {
	resets := func(s *session) bool { return s.number == number && s.resets }
	switch {
	case l.closed:
		return false, net.ErrClosed
	case number < l.epoch || l.reset != nil || slices.ContainsFunc(l.sessions, resets):
		return false, nil
	case seq > l.sentSeq:
		return false, &SeqError{seq: seq, acked: l.state.AckedSeq, sent: l.sentSeq}
	}
	return true, nil
}

func (l *Ledger) ackedTo(seq uint64) {
	l.state.AckedSeq = max(l.state.AckedSeq, seq) // is stored when the messages are deleted
	for e := l.queue.first(); e != nil && e.seq <= seq; e = l.queue.first() {
		l.settle(e, OutcomeAcknowledged, nil)
	}
	l.setTimer()
}

// Resume tells the Ledger in OnSession what the peer knows of our messages. If the peer has a name for its
// current state, call ResumeEpoch instead.
//
// If same is true, the peer knows our numbers, and acknowledges every message up to have. When the session is
// ready, the messages after have are sent again, in order, before any new message. If have is 0, as for a peer
// that cannot say which messages it has, or Resume is not called, all unacknowledged messages are. For a peer
// that has lost everything do not use have = 0 and same = true: it would take the next numbers for a gap.
//
// If same is false, the peer has lost its state, or our session there was over. When this session is ready, new
// numbers begin at have+1, unless Options.OnReset is ResetKeepNumbers. If the change cannot be stored, the
// session is closed, and the next one tries again.
//
// The error is a [*SeqError] if have was never sent, or is not 0 but less than what the peer has acknowledged
// before, including in earlier runs if there is a Store. In the second case the peer has lost messages that the
// Ledger no longer has. If OnSession returns the error, every later session fails too, until the peer finds its
// messages again; to continue without them, call Resume with same = false. It is no error with
// ResetKeepNumbers, nor if the session replaces a live one, whose later acknowledgement may have come first.
func (l *Ledger) Resume(o *reconnect.Opening, have uint64, same bool) error {
	return l.resume(o, session{have: have, forgot: !same})
}

// ResumeEpoch is like Resume for a peer that has a name for its current state: a random string that it makes
// when its memory of us begins, and loses with that memory. The Ledger compares it with the last one in its
// Store, and so notices that the peer has forgotten us even if the program was restarted or its Store was lost.
// An epoch that is empty or longer than 1 KiB is an error.
//
// Use either Resume or ResumeEpoch; but after a [*SeqError] of ResumeEpoch, Resume with same = false begins new
// numbers in the same epoch. ResetKeepNumbers does not need that.
func (l *Ledger) ResumeEpoch(o *reconnect.Opening, epoch string, have uint64) error {
	switch {
	case epoch == "":
		return errNoEpoch
	case len(epoch) > maxEpoch:
		return errLongEpoch
	}
	return l.resume(o, session{have: have, peer: epoch})
}

const (
	maxEpoch = 1 << 10
	maxHave  = 1 << 63 // after a peer's number that is higher there might be no room for ours
)

// resume notes what the peer has said in OnSession: only those fields of said are set.
func (l *Ledger) resume(o *reconnect.Opening, said session) error {
	l.mu.Lock()
	defer l.unlock()
	if l.closed {
		return net.ErrClosed
	}
	s := l.session(o.Session)
	s.have, s.forgot, s.peer, s.resets, s.next = 0, said.forgot, said.peer, false, 0
	wrong := &SeqError{seq: said.have, acked: l.state.AckedSeq, sent: l.sentSeq}
	if l.forgotten(s) || l.reset != nil {
		s.resets = true
		s.fresh = s.peer != "" && l.state.Epoch == "" && !l.written
		if said.have > maxHave || said.have > l.sentSeq && l.o.OnReset == ResetKeepNumbers && !s.fresh {
			return wrong
		}
		s.have = said.have
		l.owed = l.owed || s.forgot
		return nil
	}
	// The other session of a rotation may have brought acknowledgements that are newer than have.
	less := said.have > 0 && said.have < l.state.AckedSeq && !o.Planned && l.o.OnReset != ResetKeepNumbers
	if said.have > l.sentSeq || less {
		return wrong
	}
	s.have = said.have
	l.goOn(s)
	return nil
}

// forgotten reports whether the peer of s has forgotten us, and that has had no consequence yet.
func (l *Ledger) forgotten(s *session) bool {
	if s.peer != "" {
		return s.peer != l.state.Epoch
	}
	return s.forgot || l.owed
}

// goOn lets s go on with the present numbers, from the one after have.
func (l *Ledger) goOn(s *session) {
	s.resets = false
	if s.have == 0 || s.have > l.sentSeq {
		return // all that are unacknowledged are sent
	}
	s.next = max(s.next, s.have+1)
	l.ackedTo(s.have)
}

// resetPlan is what new numbers will change.
type resetPlan struct {
	state   StoreState
	kept    bool     // the old numbers go on
	put     []Record // the messages with their new numbers
	forgets []uint64 // the IDs of those that are not sent again
}

// planReset changes nothing.
func (l *Ledger) planReset(s *session) resetPlan {
	p := resetPlan{state: l.state}
	if s.peer != "" {
		p.state.Epoch = s.peer
	}
	if l.o.OnReset == ResetKeepNumbers && (!s.fresh || s.have == 0) {
		p.kept, p.state.AckedSeq = true, 0
		return p
	}
	p.state.LastSeq, p.state.AckedSeq = s.have, s.have
	for e := range l.queue.all {
		if l.o.OnReset == ResetReport && e.sent && !s.fresh {
			p.forgets = append(p.forgets, e.id)
			continue
		}
		p.state.LastSeq++
		r := e.entry().Record
		r.Seq = p.state.LastSeq
		p.put = append(p.put, r)
	}
	return p
}

// applyReset makes the change. Messages may have been settled since it was planned.
func (l *Ledger) applyReset(s *session, p resetPlan) {
	l.state, l.owed = p.state, false
	l.stats.Resets++
	s.forgot = false
	if p.kept {
		l.goOn(s)
		return
	}
	for _, id := range p.forgets {
		if e := l.queue.byID(id); e != nil {
			l.settle(e, OutcomeForgotten, errForgotten)
		}
	}
	l.queue.compact()
	for _, r := range p.put {
		if e := l.queue.byID(r.ID); e != nil {
			e.seq, e.again = r.Seq, false
		}
	}
	l.sentSeq = s.have
	s.resets, s.next = false, s.have+1
	l.setTimer()
}
