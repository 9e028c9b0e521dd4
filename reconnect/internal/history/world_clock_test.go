package history

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"time"
	"unsafe"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// withClock gives Liveness a wall clock that can jump. The field is not exported, because only tests set it.
func (w *world) withClock(o *reconnect.Liveness) {
	now := reflect.ValueOf(o).Elem().FieldByName("now")
	*(*func() time.Time)(unsafe.Pointer(now.UnsafeAddr())) = func() time.Time {
		if w.set.Apart {
			time.Sleep(29 * time.Nanosecond) // longer than salt, so that a probe finds a reader that reads again, or one that does not
		}
		return time.Now().Add(time.Duration(w.wall.Load()))
	}
}

// jump sets the wall clock. When it goes forward by more than 2 s the machine seems to have been suspended.
func (w *world) jump(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall.Add(int64(d))
	w.jumps++
	if d < 0 {
		w.setBack = w.now()
	}
}

// sleep suspends the machine: the monotonic clock stands still meanwhile. It may have lost its connections by then.
func (w *world) sleep(r *rand.Rand, _ Event) {
	d := 3*time.Second + upTo(r, 10*time.Hour)
	if r.IntN(4) == 0 {
		w.jump(d)
		return
	}
	pipes := w.oneByOne("sleep", func(p *conntest.Pipe) { p.Stall(conntest.Both) })
	w.jump(d)
	look, within := w.silence()/3, w.silence()/3 // how far apart the looks at the two clocks are, and how long the peer has for its answer
	switch {
	case w.set.Unlimited && w.set.ProbeEvery == 0: // nobody looks
		return
	case w.set.Unlimited:
		look = w.set.ProbeEvery
	case w.anySilent():
		look, within = 8*look, 8*within // they may have grown
	}
	slept := w.now()
	w.watchDeath(SuspendIsNoticed, pipes, look+within, slept-look)
}

// moveAway takes the local address of a connection away, as when a machine goes to another network. Then it calls Check, as
// netwatch does.
func (w *world) moveAway(r *rand.Rand, _ Event) {
	p := w.pipe(r, "address")
	if p == nil {
		return
	}
	p.Stall(conntest.Both)
	w.mu.Lock()
	w.moved[p] = true
	w.mu.Unlock()
	time.Sleep(upTo(r, 2*time.Second) + 1)
	w.mu.Lock()
	session := w.piped(p).session
	ready := w.sessions[session] != nil && w.sessions[session].ready
	w.mu.Unlock()
	if w.conn.Status().Session != session {
		return
	}
	w.mu.Lock()
	// Else Check asks for nothing; or a probe may be under way, which finds the silence; or the connection has ended, and its reader does
	// not know that yet.
	w.asked[p] = ready && w.checked == 0 && p.Live()
	w.mu.Unlock()
	w.callCheck()
	w.watchDeath(GoneAddressIsNoticed, []*conntest.Pipe{p}, 5*time.Second, math.MaxInt64) // a Check may be under way, and looks at no clock
}

// watchDeath requires that the ready sessions among some are given up within a time, unless the wall clock was set back since some moment,
// which hides a suspension.
func (w *world) watchDeath(i Invariant, pipes []*conntest.Pipe, within, since time.Duration) {
	w.mu.Lock()
	var watched []*conntest.Pipe
	for _, p := range pipes {
		if s := w.sessions[w.piped(p).session]; s != nil && s.ready && !s.done && w.reads() {
			watched = append(watched, p)
		}
	}
	w.mu.Unlock()
	if len(watched) == 0 {
		return
	}
	w.pause(within + 10*time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range watched {
		hidden := w.setBack > 0 && w.setBack >= since
		other := len(w.piped(p).faults) > 1 // the end of another stall may have given it back
		if w.closing == 0 && w.reads() && !hidden && !other && !w.slowProbe {
			w.check(i, !p.Live(), "%v is still in use after %v", p, within)
		}
	}
}

// reads reports whether the connection is certainly read. The caller holds w.mu.
func (w *world) reads() bool {
	return !w.rotated && !w.held && w.set.Pace == 0 && w.mayEnd == "" && (w.set.Reader != readLate && w.readPause == 0 || w.set.InboxOverflow == 1 || w.set.InboxOverflow == 3)
}

// silence returns Liveness.Limit; 15 s if that is negative, because 5 s take the place of a third then.
func (w *world) silence() time.Duration {
	switch {
	case w.set.Unlimited:
		return 15 * time.Second
	case w.set.Silence == 0:
		return 30 * time.Second
	}
	return w.set.Silence
}

func (w *world) anySilent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silents > 0
}

// located is a connection whose local address may go.
type located struct {
	net.Conn
	w    *world
	pipe *conntest.Pipe
}

func (c *located) LocalAddr() net.Addr {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.moved[c.pipe] {
		return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1} // of no machine: RFC 5737
	}
	return c.Conn.LocalAddr()
}

// ReadsOn reports whether the reader may read the connection itself. With Apart it may not, because
// the scheduler decides whether the reader or the supervisor gets the turn.
func (c *located) ReadsOn() bool { return c.w.set.Leads && !c.w.set.Apart }

func (c *located) HungUp() bool { return c.Conn.(interface{ HungUp() bool }).HungUp() }

// livePeer checks that a session whose peer was there to the end has not ended as silent. The caller holds w.mu.
func (w *world) livePeer(s *session, e reconnect.SessionDone) {
	rec := w.pipes[s.pipe]
	if s.pipe == nil || rec == nil || len(rec.faults) > 0 || !s.ready || s.probes == 0 || w.late > 0 || w.set.Pace > 0 {
		return
	}
	if trip := 2*w.set.Lag + 10*time.Millisecond; trip < min(w.silence()/3, 5*time.Second) {
		w.check(LivePeerIsKept, !errors.Is(e.Cause, reconnect.ErrSilent) && e.Reason != backoff.ReasonLocal, "session %d ends with %v, after %d jumps of the clock", s.number, e.Cause, w.jumps-s.jumps)
	}
}
