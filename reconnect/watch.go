package reconnect

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
)

// ErrSilent is why a connection was cut when nothing was heard of its peer for
// [Liveness.Limit].
var ErrSilent = errors.New("peer is silent")

// watch is the liveness of one link: a timer, and the goroutine of its callback
// while that runs. A third of the limit after the last byte it probes, after two
// thirds again, and then it judges. At most one callback probes at a time.
type watch struct {
	c *Conn
	l *link

	last    atomic.Int64 // when the last message came, if notes is set
	notes   bool         // the connection is no conn.Idler
	blocked atomic.Bool  // the inbox is full, and nobody reads

	pulse   pulse    // calls tick
	standIn *standIn // set before the turn is yielded

	mu     sync.Mutex         // guards what follows
	cancel context.CancelFunc // of the probe under way

	// Owned by the callback.
	from   instant // silence counts from here at the earliest
	mono   instant // the clocks at the last tick
	wall   int64   // in ns
	life   instant // when something was last heard, by the last tick
	probes int     // since then
	seen   uint64  // turn at the last tick
}

// standIn is who reads in place of a supervisor whose handler is slow.
type standIn struct {
	done chan struct{} // closed when it reads no more
	err  error         // why; to be read after done
}

// instant is a time by the monotonic clock, a third of the size of a [time.Time].
type instant = time.Duration

var epoch = time.Now()

func now() instant { return time.Since(epoch) }

// start begins to watch l, unless there is no way to probe it.
func (w *watch) start(c *Conn, l *link) {
	w.c, w.l = c, l
	_, pings := l.conn.(conn.Pinger)
	if c.o.Liveness.Limit < 0 || !pings && c.o.Liveness.Probe == nil {
		return
	}
	if _, ok := l.conn.(conn.Idler); !ok {
		w.notes = true
		w.heard()
	}
	w.mono = now()
	w.from, w.life = w.mono, w.mono
	w.wall = c.o.Liveness.Now().UnixNano()
	w.pulse.arm(w.third(), w.tick)
}

// stop ends the watch and waits for its callbacks. The link is cut already.
func (w *watch) stop() {
	w.pulse.halt()
	w.mu.Lock()
	probing := w.cancel != nil
	if probing {
		w.cancel()
	}
	w.mu.Unlock()
	if probing {
		w.c.trace().waitForAll(&w.pulse.running, "Probe", w.c)
	}
	w.pulse.running.Wait()
}

// heard notes a message, for a connection that does not note bytes itself.
func (w *watch) heard() {
	if w.notes {
		w.last.Store(int64(now()))
	}
}

func (w *watch) third() time.Duration { return max(w.c.o.Liveness.Limit/3, 1) }

// silence is how long nothing has been heard while somebody listened. News of the
// peer are the end of the probes before.
func (w *watch) silence() time.Duration {
	at := now()
	idle := at - instant(w.last.Load())
	if !w.notes {
		idle = w.l.conn.(conn.Idler).Idle()
	}
	silence := min(idle, at-w.from)
	if life := at - silence; life-w.life > time.Millisecond { // more than the time between two looks at the clock
		w.life, w.probes = life, 0
	}
	return silence
}

// tick looks, probes, judges, and sets the timer for the next look.
func (w *watch) tick() {
	defer w.pulse.running.Done()
	if w.c.leaving.Load() { // Shutdown has a limit of its own
		return
	}
	third, suspended := w.third(), w.suspended()
	turn, busy := w.l.turn.Load(), w.busy()
	if suspended || busy {
		w.from = w.mono
	}
	silence := w.silence()
	switch {
	case busy:
		taken := turn == w.seen && turn&turnMask == handling && w.takeTurn(turn)
		w.seen = turn
		w.pulse.arm(third, w.tick)
		if taken {
			w.read()
		}
		return
	case silence >= third*3 && w.probes >= 2:
		w.c.sever(w.l, ErrSilent)
		return
	case suspended || silence >= third*time.Duration(w.probes+1):
		w.probes++
		if err := w.probe(silence, third); err != nil && !w.c.leaving.Load() {
			w.c.sever(w.l, err)
			return
		}
		silence = w.silence()
	}
	w.pulse.arm(max(third*time.Duration(w.probes+1)-silence, 0), w.tick)
}

// busy reports that the application does not read.
func (w *watch) busy() bool {
	return w.l.turn.Load()&turnMask == handling || w.blocked.Load()
}

// suspended reports whether the machine was: the wall clock has gone further than
// the monotonic one, which stands still meanwhile on most systems.
func (w *watch) suspended() bool {
	wall, mono := w.c.o.Liveness.Now().UnixNano(), now()
	ahead := time.Duration(wall-w.wall) - (mono - w.mono)
	w.wall, w.mono = wall, mono
	return ahead > 2*time.Second
}

// probe asks the peer for a sign of life, for at most limit. An error is the end
// of the connection; that no answer came is none.
func (w *watch) probe(silence, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(&w.c.life, limit)
	defer cancel()
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	if w.pulse.halted() { // perhaps before stop could cancel it
		return nil
	}
	w.c.callers.enter()
	defer w.c.callers.leave()
	start, trace := time.Now(), w.c.trace()
	w.c.counts.probes.Add(1)
	trace.probeStart(ProbeStart{Session: w.l.n, Silence: silence})
	var err error
	if ask := w.c.o.Liveness.Probe; ask != nil {
		err = ask(ctx, func(m conn.Message) error { return w.c.writeOn(ctx, w.l, m) })
	} else if err = w.l.conn.(conn.Pinger).Ping(ctx); err == nil {
		w.heard()
	}
	w.mu.Lock()
	w.cancel = nil
	w.mu.Unlock()
	trace.probeDone(ProbeDone{Session: w.l.n, Took: time.Since(start), Err: err})
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// takeTurn takes the reading end from the supervisor for the rest of the session,
// if its handler is still at the message of that turn.
func (w *watch) takeTurn(turn uint64) bool {
	w.standIn = &standIn{done: make(chan struct{})}
	if w.c.inbox == nil {
		w.c.inbox = newInbox(w.c.o.Inbox)
	}
	return w.l.turn.CompareAndSwap(turn, turn&^turnMask|yielded)
}

// read is the stand-in.
func (w *watch) read() {
	s := w.standIn
	s.err = w.l.why(w.c.fill(&w.c.life, w.l))
	w.c.sever(w.l, s.err)
	close(s.done)
}
