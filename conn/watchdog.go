package conn

import (
	"sync"
	"sync/atomic"
	"time"
)

// watchdog cuts a connection on which a part of something takes longer than limit. It is busy between
// begin and end, and progress begins the next part. If several are busy, they take turns: the time
// also starts again each time that one of them ends.
type watchdog struct {
	limit time.Duration // at most 0: off
	watch atomic.Pointer[watch]
}

// watch is what a watchdog needs once something was busy. begin arms its timer if it is not
// armed, and the timer is not armed again if it finds nothing busy. Under steady traffic
// that is one timer call for each limit, not one for each message.
type watch struct {
	wire *Wire
	dog  *watchdog

	mu     sync.Mutex // guards what follows; never held while waiting
	busy   int
	since  time.Duration // when the part of the one whose turn it is began
	timer  *time.Timer
	armed  bool // the timer will tick, or is ticking
	closed bool

	ticks sync.WaitGroup // one while armed
}

// ensure returns the watch, which the first call makes. Each call gets the same wire, that of d.
func (d *watchdog) ensure(wire *Wire) *watch {
	w := d.watch.Load()
	if w == nil {
		d.watch.CompareAndSwap(nil, &watch{wire: wire, dog: d})
		w = d.watch.Load()
	}
	return w
}

func (d *watchdog) begin(wire *Wire) { d.resume(wire, 0) }

// resume is begin for what has been busy before, for the time that pause has returned.
func (d *watchdog) resume(wire *Wire, before time.Duration) {
	if d.limit <= 0 {
		return
	}
	w, now := d.ensure(wire), clock()
	w.mu.Lock()
	w.busy++
	if w.busy == 1 {
		w.since = now - before
	}
	if !w.armed && !w.closed {
		w.armed = true
		w.ticks.Add(1)
		if w.timer == nil {
			w.timer = time.AfterFunc(d.limit-before, w.tick)
		} else {
			w.timer.Reset(d.limit - before)
		}
	}
	w.mu.Unlock()
}

func (d *watchdog) end() {
	if d.limit <= 0 {
		return
	}
	w := d.watch.Load()
	w.mu.Lock()
	w.busy--
	if w.busy > 0 {
		w.since = clock()
	}
	w.mu.Unlock()
}

// progress starts the time again, for the next part of the only one that is busy, or the one whose turn it is.
func (d *watchdog) progress() {
	if d.limit <= 0 {
		return
	}
	w := d.watch.Load()
	w.mu.Lock()
	w.since = clock()
	w.mu.Unlock()
}

// pause is end for the only one that is busy, which will continue. It returns for how long it was busy, so that
// resume can count that.
func (d *watchdog) pause() (busy time.Duration) {
	if d.limit <= 0 {
		return 0
	}
	w := d.watch.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	return clock() - w.since
}

// once is begin for something rare, of which nothing is kept. The caller calls end.
func (d *watchdog) once(wire *Wire) (end func()) {
	if d.limit <= 0 {
		return func() {}
	}
	return after(d.limit, func() { wire.cutSlow(d) })
}

// after calls f when d has passed, unless the caller has called end. When end returns, f is not
// running.
func after(d time.Duration, f func()) (end func()) {
	late := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		f()
		close(late)
	})
	return func() {
		if !timer.Stop() {
			<-late
		}
	}
}

// stop ends the watch for good. When it returns no tick is running or to come.
func (d *watchdog) stop(wire *Wire) {
	w := d.ensure(wire) // so that a later begin arms nothing
	w.mu.Lock()
	w.closed = true
	if w.armed && w.timer.Stop() {
		w.armed = false
		w.ticks.Done()
	}
	w.mu.Unlock()
	w.ticks.Wait()
}

// tick runs on the timer's goroutine, which stop waits for.
func (w *watch) tick() {
	w.mu.Lock()
	busy, left := w.busy > 0 && !w.closed, w.dog.limit-(clock()-w.since)
	if busy && left > 0 {
		w.timer.Reset(left)
		w.mu.Unlock()
		return
	}
	w.armed = false
	w.closed = w.closed || busy // once is enough
	w.mu.Unlock()
	if busy {
		w.wire.cutSlow(w.dog)
	}
	w.ticks.Done()
}
