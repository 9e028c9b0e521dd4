package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// login is OnSession.
func (w *world) login(ctx context.Context, o *reconnect.Opening) error {
	w.mu.Lock()
	beside := w.ended["dial start"] - w.ended["dial done"]
	w.check(CutBeforeLogin, beside == 0 || w.turning || w.rotating(), "%d dials are in progress", beside)
	w.of(o.Session).contexts = append(w.of(o.Session).contexts, ctx)
	w.mu.Unlock()
	w.callback("OnSession", ctx)
	r := w.plan.stream(10_000 + o.Session)
	l := w.logsIn()
	err := o.Write(conn.TextMessage(fmt.Sprint("login ", o.Session)))
	if w.loggedIn(l, err); err != nil {
		return err
	}
	m, err := o.Read()
	if err != nil {
		return err
	}
	w.badly(o.Write)
	w.mu.Lock()
	w.readCount++
	w.mu.Unlock()
	w.claim(WholeMessages, string(m.Data) == fmt.Sprint("welcome ", o.Session), "session %d: the answer to the login is %.30q", o.Session, m.Data)
	if w.set.LoginTakes > 0 {
		select {
		case <-time.After(upTo(r, w.set.LoginTakes)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if w.set.LoginFails > 0 && r.IntN(w.set.LoginFails) == 0 && !w.calmed.Load() {
		return errLogin
	}
	if w.set.Resumable && r.IntN(2) == 0 {
		if err := o.Resumed(); err != nil {
			return err
		}
	}
	if w.set.Deliver && r.IntN(2) == 0 {
		w.mu.Lock()
		w.of(o.Session).delivering = true
		w.mu.Unlock()
		if err := o.Deliver(conn.TextMessage(fmt.Sprint("delivered ", o.Session))); err != nil {
			return err
		}
		w.mu.Lock()
		w.of(o.Session).delivered = !o.Planned // what is delivered beside another session is held until this one is ready
		w.mu.Unlock()
	}
	if w.set.Odd {
		for range r.IntN(4) {
			if err := o.Write(conn.TextMessage("alive")); err != nil {
				return err
			}
		}
	}
	if err := w.above.open(o); err != nil {
		return err
	}
	if err := w.prepared(r, o); err != nil {
		return err
	}
	w.mu.Lock()
	w.of(o.Session).opened = true
	if w.rotateNext > 0 && w.conn != nil && !w.calmed.Load() {
		w.rotateNext--
		w.users.Go(func() { w.rotateWhenReady(o.Session) })
	}
	w.mu.Unlock()
	return nil
}

var errLogin = errors.New("the login was refused")

// callback runs what was planned for the next call of a callback, and keeps its context.
func (w *world) callback(name string, ctx context.Context) {
	w.mu.Lock()
	act := w.pending[name]
	delete(w.pending, name)
	if ctx != nil {
		w.contexts[name] = ctx
	}
	if act != nil {
		w.log("%s acts", name)
		w.acted = true
		w.held = w.held || name == "OnMessage"
		w.slowProbe = w.slowProbe || name == "SessionReady" || name == "ProbeStart"
		w.acting++
	}
	w.mu.Unlock()
	if act != nil {
		defer w.actsNoMore()
		w.salt() // what has led to the callback comes first
		act(ctx)
		w.salt() // and what follows from the act, before what follows from the callback
	}
}

func (w *world) onMessage(ctx context.Context, m reconnect.Message) {
	late := w.hasClosed()
	w.mu.Lock()
	w.handedOver(m, late)
	w.check(OneCallback, !w.inMessage, "OnMessage beside another call")
	if s := w.of(m.Session); len(s.contexts) < 3 {
		s.contexts = append(s.contexts, ctx)
	}
	w.inMessage = true
	w.mu.Unlock()
	w.message(m)
	defer w.leave(&w.inMessage)
	if d := w.readerTakes(); d > 0 {
		w.mu.Lock()
		w.held = true
		w.mu.Unlock()
		time.Sleep(d)
	}
	w.callback("OnMessage", ctx)
}

// actsNoMore notes that a callback has done what was planned, also if that has ended its goroutine.
func (w *world) actsNoMore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acting--
}

// leave notes that a callback is over, also if its goroutine ends.
func (w *world) leave(in *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*in = false
}

func (w *world) onSeam(ctx context.Context, s *reconnect.Seam) {
	w.mu.Lock()
	w.check(OneCallback, !w.inMessage, "OnSeam beside another call")
	w.inMessage = true
	w.mu.Unlock()
	w.seam(s)
	defer w.leave(&w.inMessage)
	w.callback("OnSeam", ctx)
}

// read reads until the Conn has ended, in the way of the plan.
func (w *world) read() {
	defer close(w.reader)
	r := w.plan.stream(6)
	if w.set.Reader == readLate {
		for !w.calmed.Load() && !w.ending() {
			time.Sleep(time.Second + upTo(r, time.Millisecond))
		}
	}
	if b, ok := w.above.(*streams); ok {
		b.read(r)
		return
	}
	if w.set.Reader == readMessages {
		w.readMessages(r)
		return
	}
	buf := make([]byte, 512)
	early := w.plan.stream(20) // decides which contexts are done before the Read
	for {
		w.rest()
		limit := time.Duration(1 + r.Int64N(int64(3*time.Second)))
		ctx, cancel := contextFor(context.Background(), limit, limit%2 == 0)
		at, late := w.now(), w.closed.Load()
		over := w.set.ReaderTakes > 0 && early.IntN(8) == 0
		if over {
			limit = 0
			cancel()
		}
		m, err := w.conn.Read(ctx, buf)
		cancel()
		w.readAfterClose(late, err)
		w.readAfterCancel(over, err)
		seam, lost := errors.AsType[*reconnect.Seam](err)
		switch {
		case err == nil:
			w.message(m)
		case lost:
			w.seam(seam)
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			w.claim(ContextOfItsOwn, w.now() == at+limit, "Read has the error of a context after %v of %v", w.now()-at, limit)
		default:
			w.readEnded(err, at, w.now())
			return
		}
	}
}

// contextFor returns a context that ends after a time, by its deadline or because somebody cancels it.
func contextFor(parent context.Context, after time.Duration, cancels bool) (context.Context, context.CancelFunc) {
	if !cancels {
		return context.WithTimeout(parent, after)
	}
	ctx, cancel := context.WithCancel(parent)
	timer := time.AfterFunc(after, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// readMessages ranges over Messages, again and again.
func (w *world) readMessages(r *rand.Rand) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.Int64N(int64(20*time.Second))))
		var last error
		late, over, at, ended := w.closed.Load(), false, w.now(), w.now()
		for m, err := range w.conn.Messages(ctx) {
			ended = w.now()
			w.readAfterClose(late, err)
			w.readAfterCancel(over, err)
			if err == nil {
				w.mu.Lock()
				w.handedOver(m, false)
				w.pauses(w.of(m.Session))
				w.mu.Unlock()
			}
			w.rest()
			last = nil
			if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
				w.seam(seam)
			} else if err != nil {
				last = err
			} else {
				w.message(m)
			}
			if r.IntN(50) == 0 {
				break
			}
			if last == nil {
				late, over, at = w.closed.Load(), ctx.Err() != nil, w.now()
			}
		}
		cancel()
		if last != nil && !errors.Is(last, context.DeadlineExceeded) {
			w.readEnded(last, at, ended)
			return
		}
	}
}

// rest keeps the reader from reading while it pauses.
func (w *world) rest() {
	takes := w.readerTakes()
	w.mu.Lock()
	if w.calmed.Load() {
		w.readPause = 0
	}
	if takes > 0 {
		w.readPause = max(w.readPause, w.now()+takes)
	}
	until := w.readPause
	w.mu.Unlock()
	if d := until - w.now(); d > 0 {
		time.Sleep(d)
	}
}

func (w *world) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing > 0
}

func (w *world) readEnded(err error, began, ended time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readEndsAtClose(began, ended)
	w.check(ContextOfItsOwn, errors.Is(err, net.ErrClosed), "the reader ends with %v", err)
	w.secrets(err)
}

// message checks the stream of received messages.
func (w *world) message(m reconnect.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traffic++
	if !strings.HasPrefix(string(m.Data), "delivered ") { // which OnSession has made
		w.readCount++
	}
	if w.set.Reader != readMessages || w.set.Above == aboveBridge { // else the reader may have had it for a while, and has checked that
		w.handedOver(m, false)
		w.pauses(w.of(m.Session))
	}
	w.readLog("message of %d: %d bytes", m.Session, len(m.Data))
	mix := w.mixes()
	w.check(SeamInPlace, m.Session > w.seamAfter || mix && !w.of(m.Session).seam, "a message of session %d after the seam of %d", m.Session, w.seamAfter)
	w.check(SeamInPlace, m.Session >= w.readSession || mix, "a message of session %d after one of %d", m.Session, w.readSession)
	if m.Session > w.readSession && !mix {
		for n, s := range w.sessions {
			w.check(SeamInPlace, n >= m.Session || n <= w.seamAfter || !s.ready, "a message of session %d before the seam of %d", m.Session, n)
		}
	}
	w.readSession = max(m.Session, w.readSession)
	s := w.of(m.Session)
	s.heard = w.now()
	s.read++
	data := string(m.Data)
	if words, ok := unframed(data); ok {
		w.above.hear(m.Session, words)
		return
	}
	if data == "pong" || data == fmt.Sprint("delivered ", m.Session) {
		return
	}
	var number uint64
	var i, n int
	if _, err := fmt.Sscanf(data, "burst %d %d", &number, &i); err == nil {
		w.heardBurst(s, number, i)
		return
	}
	_, err := fmt.Sscanf(data, "%d %d %d", &number, &i, &n)
	whole := err == nil && number == m.Session && i < len(s.sent) && s.sent[i] == n && data == w.text(number, i, n)
	w.check(WholeMessages, whole, "session %d: %.40q of %d bytes", m.Session, data, len(data))
	if !whole {
		return
	}
	if i > s.next {
		w.gaps += i - s.next
	}
	w.check(NothingMissing, i >= s.next && w.gaps <= w.dropped, "session %d: message %d, and %d was expected; seams said %d dropped", m.Session, i, s.next, w.dropped)
	s.next = i + 1
	// What the application has built from the events has no hole.
	if w.set.MarkRefetch && !mix && w.have >= 0 {
		w.check(MarkIsSafe, n <= w.have+1, "event %d after %d", n, w.have)
		w.have = max(w.have, n)
	}
}

// readLog is log for what was read. When the end has begun, the scheduler decides how much of what is
// left a call of Read gets. The caller holds w.mu.
func (w *world) readLog(format string, args ...any) {
	if w.set.Reader == readPush || w.closing == 0 {
		w.log(format, args...)
	}
}

// seam checks a seam or a mark.
func (w *world) seam(seam *reconnect.Seam) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The scheduler decides whether a reader, or OnSeam, gets the mark of a session that is lost as soon as
	// it is ready, and what comes when the end has begun.
	if w.closing == 0 && seam.Lost+seam.Dropped > 0 {
		w.log("seam of %d: lost %d, dropped %d, planned %t, refetch %t: %v", seam.Session, seam.Lost, seam.Dropped, seam.Planned, seam.Refetch, coarse(seam.Reason))
	}
	w.secrets(seam.Cause)
	w.seamIsTrue(seam)
	w.check(DroppedAreCounted, seam.Dropped >= 0 && seam.Lost >= 0 && (seam.Dropped > 0 || seam.Lost > 0 || seam.Refetch), "%+v", seam)
	w.dropped += seam.Dropped
	defer w.above.seam(seam)
	if seam.Lost > 0 {
		w.lost += seam.Lost
		last := seam.Session
		if joined := seam.Dropped > 0; joined && (w.mixes() || w.isLessThanDue(seam)) { // it stands for several, and the session that it names lives on
			last--
		} else {
			s := w.of(seam.Session)
			w.check(OneSeam, !s.seam, "a second seam of session %d", seam.Session)
			w.wordsAreHeard(s, seam)
			s.seam = true
		}
		if !w.mixes() { // there a next session that was lost while it opened has its seam before the old one
			w.check(OneSeam, last > w.seamAfter, "a seam of session %d after one of %d", last, w.seamAfter)
			least, most := w.seamsDue(w.seamAfter, last)
			w.check(OneSeam, w.exited || least <= seam.Lost && seam.Lost <= most, "a seam for %d sessions from %d on to %d, and %d to %d were ready or had delivered something", seam.Lost, w.seamAfter+1, last, least, most)
		}
		w.seamAfter = max(w.seamAfter, last)
		w.have = -1
	}
	if seam.Dropped > 0 {
		w.have = -1
	}
	if !seam.Refetch {
		return
	}
	if seam.Lost == 0 && seam.Dropped == 0 {
		w.marks[seam.Session]++
		w.check(MarkIsHeld, !w.markHeld[seam.Session], "that of session %d", seam.Session)
		w.check(OneMark, w.marks[seam.Session] == 1 && !w.of(seam.Session).seam, "mark %d of session %d, after the seam of %d", w.marks[seam.Session], seam.Session, w.seamAfter)
	}
	w.have = w.happened()
}

// isLessThanDue reports whether a seam stands for fewer sessions than have ended, if the one that it names is counted.
func (w *world) isLessThanDue(seam *reconnect.Seam) bool {
	least, _ := w.seamsDue(w.seamAfter, seam.Session)
	return seam.Lost < least
}

// mixes reports whether messages of two sessions may come in turn.
func (w *world) mixes() bool { return w.set.Overlap == 1 && !w.set.OneConnection }

// seamsDue returns how many seams are due after the sessions that follow one, up to another. A
// session that failed to deliver a message may have one.
func (w *world) seamsDue(after, to uint64) (least, most int) {
	for n, s := range w.sessions {
		if n <= after || n > to {
			continue
		}
		if s.ready || s.delivered {
			least++
		}
		if s.ready || s.delivering {
			most++
		}
	}
	return least, most
}

// write writes a message by Write, or by WriteTo if session is not 0.
func (w *world) write(ctx context.Context, r *rand.Rand, id string, limit time.Duration) error {
	m := w.newMessage(r, id)
	ctx, cancel := contextFor(ctx, limit, m.size%2 == 0)
	defer cancel()
	w.sending.Lock() // so that each message that was given to Send before was accepted
	w.mu.Lock()
	m.after = w.order
	w.mu.Unlock()
	w.sending.Unlock()
	at := w.now()
	err := w.conn.WriteTo(ctx, m.out.Session, m.out.Message)
	took := w.now() - at
	fate := reconnect.FateWritten
	wrong, ok := errors.AsType[*reconnect.WriteError](err)
	if ok {
		fate = wrong.Fate
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(OneFate, err == nil || ok, "Write: %v", err)
	stuck := w.set.WriteTimeout
	if stuck == 0 {
		stuck = 30 * time.Second
	}
	w.check(WriteEndsInTime, took <= limit+stuck+time.Second, "Write took %v of %v", took, limit)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		w.check(ContextOfItsOwn, took >= limit || ctx.Err() != nil, "Write has the error of a context after %v of %v", took, limit)
	}
	w.settled(m, fate, err)
	w.refusedSoon(at, err != nil && fate == reconnect.FateDropped)
	if err == nil && w.closing == 0 {
		w.users.Go(func() { w.lookWritten(m, at+limit) })
	}
	return err
}

// lookWritten calls writtenInTime when a message that was written has arrived.
func (w *world) lookWritten(m *message, until time.Duration) {
	w.pause(time.Second + 4*w.set.Lag)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writtenInTime(m, until)
}

// newMessage draws a message.
func (w *world) newMessage(r *rand.Rand, id string) *message {
	m := &message{id: id, size: r.IntN(300)}
	if r.IntN(15) == 0 && id != "last" {
		m.size = 100_000 // more than a window
		if w.set.Prefix == prefix2 && r.IntN(2) == 0 {
			m.size = mostPrefix2 - len(id) - 1
		}
	}
	m.out.Message = conn.TextMessage(id + " " + strings.Repeat("x", m.size))
	if id != "last" && r.IntN(8) == 0 {
		m.out.Session = w.conn.Status().Session
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages[id] = m
	return m
}

// send gives a message to Send, or to SendWait.
func (w *world) send(r *rand.Rand, id string, wait time.Duration) {
	w.sendMessage(r, w.newMessage(r, id), wait)
}

// sendMessage gives m to Send, or to SendWait if wait is not 0.
func (w *world) sendMessage(r *rand.Rand, m *message, wait time.Duration) {
	m.out.Tag = m
	m.out.Repeatable = r.IntN(4) == 0
	if r.IntN(4) == 0 {
		m.due = w.now() + upTo(r, 10*time.Second)
		m.out.Deadline = w.start.Add(m.due)
	}
	if r.IntN(3) == 0 {
		m.out.Key = string(rune('a' + r.IntN(3)))
	}
	if wait > 0 {
		ctx, cancel := contextFor(context.Background(), wait, m.size%2 == 0)
		defer cancel()
		m.order = -1 // not known
		at := w.now()
		err := w.conn.SendWait(ctx, m.out)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusedSoon(at, err != nil)
		w.tookIn(m, err)
		return
	}
	w.sending.Lock() // for a moment: Send does not wait
	defer w.sending.Unlock()
	w.mu.Lock()
	w.order++
	m.order = w.order
	m.late = m.out.Session != 0 && w.of(m.out.Session).done
	w.mu.Unlock()
	m.sentAt = max(w.now(), 1)
	err := w.conn.Send(m.out)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tookIn(m, err)
}

// tookIn records whether a message was accepted. The caller holds w.mu.
func (w *world) tookIn(m *message, err error) {
	m.accepted, m.refused, m.err = err == nil, err != nil, err
	w.log("send %s: %v", m.id, kind(err))
	if m.late {
		w.check(EndedIsRefused, err != nil, "%s was accepted for session %d", m.id, m.out.Session)
	}
	if err != nil {
		w.refusedAsBad(m, err)
		wrong, ok := errors.AsType[*reconnect.WriteError](err)
		w.check(OneFate, ok && wrong.Fate == reconnect.FateDropped, "Send: %v", err)
		w.secrets(err)
		return
	}
	limit := w.set.OutboxMessages
	if limit == 0 {
		limit = 1024
	}
	waiting := 0
	for _, o := range w.messages {
		if o.accepted && len(o.fates) == 0 {
			waiting++
		}
	}
	// Those that wait, those under way, and the receipts that wait.
	bounded := waiting <= 3*limit+64 || w.set.NoReceipts
	w.check(OutboxBounded, bounded, "%d messages have no receipt, of %d", waiting, limit)
}

// settled records the fate of a message. The caller holds w.mu.
func (w *world) settled(m *message, fate reconnect.Fate, err error) {
	m.fates, m.err = append(m.fates, fate), err
	w.refusedAsBad(m, err)
	w.log("fate of %s: %v, %v", m.id, fate, kind(err))
	w.check(OneFate, len(m.fates) == 1, "%s: %v", m.id, m.fates)
	w.check(OneFate, (err == nil) == (fate == reconnect.FateWritten), "%s: %v, %v", m.id, fate, err)
	w.secrets(err)
}

func (w *world) onReceipt(ctx context.Context, got reconnect.Receipt) {
	w.mu.Lock()
	w.check(OneCallback, !w.inReceipt, "OnReceipt beside another call")
	w.inReceipt = true
	m := got.Outgoing.Tag.(*message)
	w.settled(m, got.Fate, got.Err)
	w.writtenInOrder(m, got)
	w.expiresInTime(m, got)
	began := got.Began.Sub(w.start)
	if m.due > 0 && !got.Began.IsZero() {
		w.check(DeadlineKept, began < m.due, "the write of %s began at %v, and was due at %v", m.id, began, m.due)
	}
	if age := w.set.OutboxAge; age > 0 && errors.Is(got.Err, reconnect.ErrExpired) && m.due == 0 {
		w.check(DeadlineKept, true, "")
	}
	w.mu.Unlock()
	defer w.leave(&w.inReceipt)
	w.callback("OnReceipt", ctx)
}

func (w *world) keep(ctx context.Context, o reconnect.Outgoing, _ error) bool {
	w.kept(o)
	w.callback("Keep", ctx)
	w.kept(o)
	return w.calmed.Load() || len(o.Data)%3 > 0
}

// kept checks that a message that Keep gets has no fate yet.
func (w *world) kept(o reconnect.Outgoing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := o.Tag.(*message); ok {
		w.check(KeptIsOurs, len(m.fates) == 0, "%s: %v", m.id, m.fates)
	}
}

// layerLost and layerEnd are those of a Layer.
func (w *world) layerLost(session uint64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended["lost"]++
	w.secrets(cause)
	s := w.of(session)
	s.lostAt = w.now()
	w.mirror.ends(session)
	w.opening(s)
	w.waitsAsAdvised(s)
}

func (w *world) layerEnd(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended["layer end"]++
}

// secrets looks for a secret in an error. The caller holds w.mu.
func (w *world) secrets(err error) {
	if err != nil {
		w.check(NoSecrets, !strings.Contains(err.Error(), secret) && !strings.Contains(err.Error(), token), "%v", err)
	}
}
