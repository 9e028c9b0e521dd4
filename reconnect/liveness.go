package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrSilent is the cause of the end of a session whose peer was silent for [Liveness.Limit].
var ErrSilent = errors.New("peer is silent")

// errHungUp is the cause of the end of a session that the peer has ended while nobody read.
var errHungUp = fmt.Errorf("the peer hung up, and nobody has read what came before: %w", io.EOF)

// liveness finds out that the peer of one link is dead. It is a timer, and the goroutine of
// its callback while that runs. A third of the limit after the last byte it probes, after two
// thirds again, and at the limit it cuts the link. At most one callback probes at a time.
type liveness struct {
	life *lifetime
	link *link

	last  atomic.Int64 // when the last message came, if notes is set
	notes bool         // the connection is no conn.Idler
	asks  bool         // there is a way to probe it

	timer xsync.Timer // calls tick

	mu     sync.Mutex         // guards what follows
	cancel context.CancelFunc // of the probe under way

	// Owned by the callback.
	from     instant // silence counts from here at the earliest
	heardAt  instant // when something was last heard, by the last tick
	probes   int     // since then
	deadline instant // when to cut the link at the latest; 0: only the limit counts
	mono     instant // the clocks at the last tick
	wall     int64   // in ns
	seen     uint64  // turn at the last tick
	since    instant // the tick since which nobody has read
	reported instant // how long that was when it was last reported; 0: it was not
}

// start begins to watch l, if there is a way to probe it.
func (w *liveness) start(life *lifetime, l *link) {
	w.life, w.link = life, l
	_, pings := l.conn.(conn.Pinger)
	w.asks = pings || life.o.Liveness.Probe != nil
	if life.o.Liveness.Limit < 0 || !w.asks {
		return
	}
	if _, ok := l.conn.(conn.Idler); !ok {
		w.notes = true
		w.heard()
	}
	w.mono = now()
	w.from, w.heardAt = w.mono, w.mono
	w.wall = life.o.Liveness.now().UnixNano()
	w.timer.Set(w.third(), w.tick)
}

// blocked begins to watch the reader of a full inbox, if the link is not watched anyway.
func (w *liveness) blocked() {
	if w.life != nil && w.life.o.Liveness.Limit > 0 && !w.asks {
		w.timer.Set(w.third(), w.tick)
	}
}

// stop ends the watch and waits for its callback. The link is cut already.
func (w *liveness) stop() {
	w.timer.Stop()
	w.mu.Lock()
	probing := w.cancel != nil
	if probing {
		w.cancel()
	}
	w.mu.Unlock()
	if probing {
		done := xsync.Go(w.timer.Wait)
		w.life.waitFor(done.Done(), "Probe")
	}
	w.timer.Wait()
}

// heard notes a message, for a connection that does not note bytes itself.
func (w *liveness) heard() {
	if w.notes {
		w.last.Store(int64(now()))
	}
}

func (w *liveness) third() time.Duration { return max(w.life.o.Liveness.Limit/3, 1) }

// silence returns how long the peer has sent nothing while the link was read. If something
// has come since the last tick, it resets the count of probes.
func (w *liveness) silence() time.Duration {
	at := now()
	idle := at - instant(w.last.Load())
	if !w.notes {
		idle = w.link.conn.(conn.Idler).Idle()
	}
	silence := min(idle, at-w.from)
	if heard := at - silence; heard-w.heardAt > time.Millisecond { // more than the time between two looks at the clock
		w.heardAt, w.probes, w.deadline = heard, 0, 0
	}
	return silence
}

// tick is the timer's callback: it looks, probes, cuts the link or sets the timer again.
func (w *liveness) tick() {
	if w.life.leaving.Load() { // Shutdown has a limit of its own
		return
	}
	third, suspended, paused := w.third(), w.suspended(), w.paused()
	if paused {
		w.from, w.deadline = w.mono, 0
		w.timer.Set(third, w.tick)
		return
	}
	if !w.asks {
		return
	}
	silence := w.silence()
	switch {
	case silence >= third*3 && w.probes >= 2, w.deadline != 0 && w.mono >= w.deadline:
		w.link.cut(ErrSilent)
		return
	case suspended || silence >= third*time.Duration(w.probes+1):
		w.probes++
		if suspended {
			w.deadline = w.mono + third
		}
		if err := w.probe(silence, third); err != nil && !w.life.leaving.Load() {
			w.link.cut(err)
			return
		}
		silence = w.silence()
	}
	next := third*time.Duration(w.probes+1) - silence
	if w.deadline != 0 {
		next = min(next, w.deadline-now())
	}
	w.timer.Set(max(next, 0), w.tick)
}

// paused reports whether nobody reads, and calls the hooks for that.
func (w *liveness) paused() bool {
	turn := w.link.turn.Load()
	if turn&turnMask == reading || turn != w.seen {
		w.seen, w.since, w.reported = turn, w.mono, 0
		return turn&turnMask != reading
	}
	since, trace := w.mono-w.since, w.life.trace()
	switch {
	case turn&turnMask == handling:
		if w.reported == 0 {
			w.reported = since
			call(trace.SlowHandler, SlowHandler{Name: w.life.o.Name, Session: w.link.session, Since: since})
		}
	case since >= w.life.o.Liveness.Limit:
		if since >= 2*w.reported {
			w.reported = since
			call(trace.Overdue, Overdue{Name: w.life.o.Name, What: "reader", Since: since})
		}
		if h, ok := w.link.conn.(conn.HangupDetector); ok && h.HungUp() {
			w.link.cut(errHungUp)
		}
	}
	return true
}

// suspended reports whether the machine was suspended since the last tick: then the wall
// clock has gone further than the monotonic one, which stands still on most systems.
func (w *liveness) suspended() bool {
	wall, mono := w.life.o.Liveness.now().UnixNano(), now()
	ahead := time.Duration(wall-w.wall) - (mono - w.mono)
	w.wall, w.mono = wall, mono
	return ahead > 2*time.Second
}

// probe asks the peer for a sign of life, for at most limit. An error means that the
// connection must end; it is nil if only no answer came.
func (w *liveness) probe(silence, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(w.link, limit)
	defer cancel()
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	if w.timer.Stopped() { // perhaps before stop could cancel the probe
		return nil
	}
	start, trace, name := time.Now(), w.life.trace(), w.life.o.Name
	w.life.counts.probes.Add(1)
	call(trace.ProbeStart, ProbeStart{Name: name, Session: w.link.session, Silence: silence})
	err := w.ask(ctx)
	w.mu.Lock()
	w.cancel = nil
	w.mu.Unlock()
	call(trace.ProbeDone, ProbeDone{Name: name, Session: w.link.session, Took: time.Since(start), Err: err})
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// ask probes the peer, by Probe or else by a ping.
func (w *liveness) ask(ctx context.Context) (err error) {
	ask := w.life.o.Liveness.Probe
	if ask == nil {
		if err = w.link.conn.(conn.Pinger).Ping(ctx); err == nil {
			w.heard()
		}
		return err
	}
	write := func(m conn.Message) error { return w.link.writeFirst(ctx, w.life, m) }
	xsync.Guard(func() { err = ask(ctx, write) }, func() { w.link.cut(fmt.Errorf("Liveness.Probe: %w", errNotReturned)) })
	return err
}
