package ledger

import (
	"net"
	"slices"

	"github.com/redial-go/redial/reconnect"
)

// AckedTo says that the peer has acknowledged every message up to the number seq, by the session
// with that number ([reconnect.Message].Session). No write of one of them begins after it has
// returned; at most one that has just begun goes on. Numbers that were acknowledged before, and
// the acknowledgements of a session that is older than the peer's present numbers, do nothing.
// The error is a *[SeqError] if seq was never sent: the peer is broken, and [reconnect.Conn.Redial]
// is the usual answer. After the end of the Conn it is [net.ErrClosed].
func (l *Ledger) AckedTo(session, seq uint64) error {
	l.mu.Lock()
	counts, err := l.ackable(session, seq)
	if counts {
		l.ackedTo(seq)
	}
	l.unlock()
	return err
}

// Acked is AckedTo for one message, for a peer that acknowledges each by itself.
func (l *Ledger) Acked(session, seq uint64) error {
	l.mu.Lock()
	counts, err := l.ackable(session, seq)
	if counts {
		if e := l.queue.bySeq(seq); e != nil {
			l.settle(e, OutcomeAcknowledged, nil)
			l.setTimer()
		}
	}
	l.unlock()
	return err
}

// ackable reports whether an acknowledgement counts, or why it cannot be right. One that came by a
// session with other numbers than the present ones does not count.
func (l *Ledger) ackable(session, seq uint64) (counts bool, err error) {
	switch {
	case l.closed:
		return false, net.ErrClosed
	case session < l.epoch || l.reset != nil || l.resets(session):
		return false, nil
	case seq > l.sentSeq:
		return false, &SeqError{Seq: seq, Acked: l.state.AckedSeq, Sent: l.sentSeq}
	}
	return true, nil
}

// resets reports whether new numbers may begin with this session, and have not yet.
func (l *Ledger) resets(number uint64) bool {
	return slices.ContainsFunc(l.sessions, func(s *session) bool { return s.number == number && s.resets })
}

func (l *Ledger) ackedTo(seq uint64) {
	l.state.AckedSeq = max(l.state.AckedSeq, seq) // is stored when the messages are deleted
	for e := l.queue.first(); e != nil && e.seq <= seq; e = l.queue.first() {
		l.settle(e, OutcomeAcknowledged, nil)
	}
	l.setTimer()
}

// Resume says in OnSession what the peer knows of us. If same is true, it knows our numbers, and has
// every message up to the number have, which is an acknowledgement of them. When the session is
// ready, the others are sent again, in order, before anything new. have = 0 says nothing: all that
// are unacknowledged are sent again. So it is in a session without Resume. That is for peers which
// cannot say what they have, and it means that a peer which has lost everything, and says so by
// have = 0 and same = true, is not noticed: it gets what follows, and takes it for a gap. If your
// peer can lose everything, call Resume with same = false then, or use ResumeEpoch.
//
// If same is false, the peer has forgotten us: it has lost its state, or our session there was over.
// When this session is ready new numbers begin, from have+1, which is 1 for most peers.
// Options.OnReset says what happens to the messages that are unacknowledged, and whether new
// numbers begin at all: not with [ResetKeepNumbers]. If the change cannot be stored, the session is
// ended, and the next one tries again.
//
// The error is a *[SeqError] if have was never sent, or if it is less than what the peer has
// acknowledged before, and not 0. With a Store, what it acknowledged in earlier runs of the program
// counts too. In the second case the peer has lost messages that the Ledger does not have any more,
// such as the end of its log. If OnSession returns that error, the session fails, and so does every
// later one, for ever, unless the peer finds its messages again. To go on, use ResetKeepNumbers, with
// which it is no error; or call Resume with same = false. It is no error if the session replaces
// another one that lives, because then the acknowledgement may have come by that one after the peer
// had counted.
//
// A peer that has a name for its present state had better be told by ResumeEpoch.
func (l *Ledger) Resume(o *reconnect.Opening, have uint64, same bool) error {
	return l.resume(o, session{have: have, forgot: !same})
}

// ResumeEpoch is Resume for a peer that has a name for its present state, such as a random string
// which it makes when its memory of us begins, and loses with it. The Ledger compares the epoch with
// the one before, which it keeps in its Store. So it sees that the peer has forgotten us even if the
// program was restarted, or its Store lost. Use either Resume or ResumeEpoch; only after a
// *[SeqError] of ResumeEpoch, Resume with same = false begins new numbers in the same epoch. With
// [ResetKeepNumbers] there is no need for that. An epoch that is empty, or longer than 1 KiB, is an error.
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
	err := l.resumeLocked(l.session(o.Session), said, o.Planned)
	l.unlock()
	return err
}

func (l *Ledger) resumeLocked(s *session, said session, planned bool) error {
	if l.closed {
		return net.ErrClosed
	}
	s.have, s.forgot, s.peer, s.resets, s.next = 0, said.forgot, said.peer, false, 0
	wrong := &SeqError{Seq: said.have, Acked: l.state.AckedSeq, Sent: l.sentSeq}
	if l.forgotten(s) || l.reset != nil {
		s.resets = true
		s.fresh = s.peer != "" && l.state.Epoch == "" && l.stats.Written == 0
		if said.have > maxHave || said.have > l.sentSeq && l.o.OnReset == ResetKeepNumbers && !s.fresh {
			return wrong
		}
		s.have = said.have
		l.owed = l.owed || s.forgot
		return nil
	}
	// The other session of a rotation may have brought acknowledgements that are newer than have.
	less := said.have > 0 && said.have < l.state.AckedSeq && !planned && l.o.OnReset != ResetKeepNumbers
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

// startReset begins new numbers with s, which is ready.
func (l *Ledger) startReset(s *session) {
	if l.o.Store != nil {
		l.reset = s
		return
	}
	l.applyReset(s, l.planReset(s))
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
