package history

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// lateness is how late the answers of a peer come that answers late: Late tenths of the limit.
func (w *world) lateness() time.Duration { return w.silence() / 10 * time.Duration(w.set.Late) }

// answerLate lets the server answer late, and say nothing else, for 60 times the limit. There are no other faults, and
// no rotations, as with RotateAfter: a session that is replaced ends within Drain anyway, and two sessions live at a time, so that
// the second has its limit before the first has ended as silent.
func (w *world) answerLate() {
	w.calm()
	w.calmed.Store(false) // connections that hang are dead by the end of this pause
	w.pause(time.Minute)
	w.mu.Lock()
	clear(w.pending)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), settling+w.patience())
	defer cancel()
	if w.hasEnded() || w.conn.Await(ctx, reconnect.StateReady) != nil {
		return
	}
	w.oneByOne("late", (*conntest.Pipe).Reset)
	w.mu.Lock()
	w.late, w.row, w.rotateNext = w.lateness(), 0, 0
	w.silentUntil = w.now() + 60*w.silence() + time.Second // not at the instant at which this is over
	w.log("answers are %v late", w.late)
	w.mu.Unlock()
	w.pause(60 * w.silence())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(PatientWithLateAnswers, w.row <= 3, "%d sessions in a row", w.row)
	w.late = 0
}

// lateBy returns how long the server waits before its next answer. Without that salt a probe and the answer to the one before
// may come at one instant.
func (w *world) lateBy() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late + time.Duration(uint64(w.now())*0x9e3779b97f4a7c15>>44)
}

// pingReceived is called by the server for each ping. It reports whether the pong is due now.
func (w *world) pingReceived(ctx context.Context, payload []byte) bool {
	w.mu.Lock()
	late := w.late
	w.mu.Unlock()
	p := conntest.PipeOf(ctx)
	w.paced(p, len(payload))
	if late == 0 || p == nil {
		return true
	}
	pong := conntest.Frame{Head: conntest.Fin | 0xA, Payload: append([]byte(nil), payload...)}.Bytes()
	w.users.Go(func() {
		select {
		case <-time.After(w.lateBy()):
			if p.Live() {
				p.Inject(conntest.ToClient, pong)
			}
		case <-w.over:
		}
	})
	return false
}

// acceptOptions are those of the server.
func (w *world) acceptOptions() *websocket.AcceptOptions {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true}
	if w.set.Compression {
		o.CompressionMode, o.CompressionThreshold = websocket.CompressionContextTakeover, 64
	}
	if w.set.Late > 0 || w.set.Pace > 0 {
		o.OnPingReceived = w.pingReceived
	}
	return o
}

// silentEnd notes that a session has ended, as silent or otherwise. The caller holds w.mu.
func (w *world) silentEnd(s *session, silent bool) {
	if !silent {
		if s.ready {
			w.row = 0
		}
		return
	}
	w.silents++
	w.grown++
	if overlaps := s.ready && s.readyAt < w.silentAt; w.late > 0 && !overlaps {
		w.row, w.silentAt = w.row+1, w.now()
		w.check(PatientWithLateAnswers, w.row <= 3, "session %d is number %d in a row that ends as silent; answers come after %v", s.number, w.row, w.late)
	}
}

// quietPeriod is a time in which nothing happens.
type quietPeriod struct {
	from           time.Duration
	probes, alives int
}

// beginQuiet begins to count what timers do.
func (w *world) beginQuiet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = &quietPeriod{from: w.now()}
}

// endQuiet compares that with what is stated.
func (w *world) endQuiet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.quiet
	w.quiet = nil
	took := w.now() - q.from
	most := int(took/(w.silence()/3)) + 2
	if w.set.Unlimited {
		most = 0
	}
	if every := w.set.ProbeEvery; every > 0 {
		most += int(took/every) + 1
		every = max(every, 2*w.set.Lag+time.Millisecond) // the next probe waits for the answer
		w.check(TimersAsStated, q.probes >= int(took/every)-1, "%d probes in %v, every %v", q.probes, took, every)
	}
	w.check(TimersAsStated, q.probes <= most, "%d probes in %v, and %d are stated", q.probes, took, most)
	if every := w.set.KeepAlive; every > 0 {
		w.check(TimersAsStated, q.alives <= int(took/every)+1, "%d messages to keep it alive in %v, every %v", q.alives, took, every)
		if !w.set.ProbeByMessage && w.set.Lag == 0 && w.set.Above == 0 { // what else is written takes the place of one
			w.check(TimersAsStated, q.alives >= int(took/every)-1, "%d messages to keep it alive in %v, every %v", q.alives, took, every)
		}
	}
}
