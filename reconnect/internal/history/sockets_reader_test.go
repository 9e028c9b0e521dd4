package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

func (w *tcpWorld) onReceipt(_ context.Context, got reconnect.Receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := got.Outgoing.Tag.(*tcpMessage)
	m.fates, m.session = append(m.fates, got.Fate), got.Session
}

// reads reads until the end.
func (w *tcpWorld) reads() {
	defer close(w.readAll)
	r := w.plan.stream(3)
	take := func(m reconnect.Message, err error) bool {
		seam, lost := errors.AsType[*reconnect.Seam](err)
		switch {
		case err == nil:
			w.message(m, r)
		case lost:
			w.seam(seam)
		default:
			w.claim(EndIsOne, errors.Is(err, net.ErrClosed), "Read: %v", err)
		}
		return err == nil || lost
	}
	if w.set.Reader == readMessages {
		for m, err := range w.conn.Messages(context.Background()) {
			take(m, err)
		}
		return
	}
	for buf := make([]byte, 512); take(w.conn.Read(context.Background(), buf)); {
	}
}

// message checks a message that the reader got.
func (w *tcpWorld) message(m reconnect.Message, r *rand.Rand) {
	if w.set.ReaderTakes > 0 && r.IntN(2) == 0 {
		time.Sleep(upTo(r, w.set.ReaderTakes))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var number uint64
	var i, event int
	_, err := fmt.Sscanf(string(m.Data), "%d %d %d", &number, &i, &event)
	s := w.sessions[number]
	whole := err == nil && s != nil && number == m.Session && i < len(s.sent) && s.sent[i] == event &&
		string(m.Data) == tcpText(number, i, event)
	w.check(WholeMessages, whole, "session %d: %.40q of %d bytes", m.Session, m.Data, len(m.Data))
	if !whole {
		return
	}
	w.check(NothingMissing, i == s.read, "session %d: message %d, and %d was expected", number, i, s.read)
	s.read = i + 1
	w.check(SeamInPlace, !s.seam, "session %d: message %d after its seam", number, i)
	if !w.mixes() {
		before := w.sessions[w.lastRead]
		w.check(SeamInPlace, number == w.lastRead || before == nil || number > w.lastRead && before.seam,
			"a message of session %d after one of %d, without a seam between", number, w.lastRead)
	}
	w.lastRead = number
}

// mixes reports whether messages of two sessions may come in turn.
func (w *tcpWorld) mixes() bool { return reconnect.Overlap(w.set.Overlap) == reconnect.OverlapMix }

// seam checks a seam.
func (w *tcpWorld) seam(seam *reconnect.Seam) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("seam %+v: %v", *seam, seam.Cause)
	s := w.sessions[seam.Session]
	w.check(DroppedAreCounted, seam.Dropped == 0, "%+v", seam)
	one := s != nil && !s.seam && seam.Lost == 1 && (seam.Session > w.seams || w.mixes())
	w.check(OneSeam, one, "%+v after the seam of %d", seam, w.seams)
	if s == nil {
		return
	}
	s.seam, w.seams = true, max(w.seams, seam.Session)
	if seam.Overlapped && (!w.closing || w.set.Ending == endShutdown) { // else Close discards what is unread
		w.overlapped(s)
	}
	words := s.words
	if words == nil || !words.arrived.Load() || seam.Planned || s.rotates || w.closing {
		return
	}
	w.check(HeardBeforeReset, s.read == words.all,
		"session %d: %d of %d messages were read: %v", s.number, s.read, words.all, seam.Cause)
	if words.reason != "" {
		frame, ok := errors.AsType[*conn.CloseError](seam.Cause)
		named := ok && frame.Code == 1012 && frame.Reason == words.reason
		w.check(GoodbyeIsCause, named, "session %d: %v", s.number, seam.Cause)
	}
}

// overlapped checks that of an overlapped session each event was read from before the next one has logged in. The
// caller holds w.mu.
func (w *tcpWorld) overlapped(s *tcpSession) {
	w.result.Events["(overlapped)"]++
	var next *tcpSession
	for n, other := range w.sessions {
		if n > s.number && (next == nil || n < next.number) {
			next = other
		}
	}
	w.check(OverlapIsTrue, next != nil, "no session came after %d", s.number)
	if next == nil {
		return
	}
	read := s.due
	if s.read > 0 {
		read = s.sent[s.read-1]
	}
	w.check(OverlapIsWhole, read >= next.due,
		"session %d was read until event %d, and %d had logged in after event %d",
		s.number, read, next.number, next.due)
}

// finish checks what can be known when nothing is left.
func (w *tcpWorld) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.messages {
		want := 0
		if m.accepted {
			want = 1
		}
		w.check(OneFate, len(m.fates) == want, "%s: accepted %t, fates %v", id, m.accepted, m.fates)
		if len(m.fates) == 0 || m.fates[0] == reconnect.FateDropped {
			w.check(DroppedNeverArrives, m.arrivals == 0, "%s: %v, %d arrivals", id, m.fates, m.arrivals)
			continue
		}
		if s := w.sessions[m.session]; s != nil && s.goodbye && m.fates[0] == reconnect.FateWritten {
			w.check(LastMessageArrives, m.arrivals == 1, "%s, before the close frame of session %d", id, m.session)
		}
	}
	for _, s := range w.sessions {
		if s.parted {
			w.check(EachHasGoodbye, s.goodbye, "session %d got no close frame", s.number)
			w.check(HeardBeforeShutdown, s.read == len(s.sent) && s.seam,
				"session %d: %d of %d messages, seam %t", s.number, s.read, len(s.sent), s.seam)
		}
	}
}
