package conn

import (
	"sync"
	"time"
)

// watchdog cuts a connection on which something takes longer than limit. What it
// watches is busy between begin and end. Where several are busy they take turns:
// the time runs anew each time that one of them ends.
//
// Its timer is made by the first begin. It is armed by a begin that finds it
// resting, and rests when it finds nobody busy: under steady traffic that is one
// timer call in a limit, not one in a message.
type watchdog struct {
	wire  *Wire
	limit time.Duration // at most 0: off

	mu     sync.Mutex // guards what follows; never held while waiting
	busy   int
	since  time.Duration // when the turn of the one that is busy began
	timer  *time.Timer
	armed  bool // the timer will tick, or is ticking
	closed bool

	ticks sync.WaitGroup // one while armed
}

func (d *watchdog) begin() {
	if d.limit <= 0 {
		return
	}
	now := clock()
	d.mu.Lock()
	d.busy++
	if d.busy == 1 {
		d.since = now
	}
	if !d.armed && !d.closed {
		d.arm()
	}
	d.mu.Unlock()
}

// arm is called with the lock held.
func (d *watchdog) arm() {
	d.armed = true
	d.ticks.Add(1)
	if d.timer == nil {
		d.timer = time.AfterFunc(d.limit, d.tick)
	} else {
		d.timer.Reset(d.limit)
	}
}

func (d *watchdog) end() {
	if d.limit <= 0 {
		return
	}
	d.mu.Lock()
	d.busy--
	if d.busy > 0 {
		d.since = clock()
	}
	d.mu.Unlock()
}

// stop ends the watch for good. When it returns no tick is running or to come.
func (d *watchdog) stop() {
	d.mu.Lock()
	d.closed = true
	if d.armed && d.timer.Stop() {
		d.armed = false
		d.ticks.Done()
	}
	d.mu.Unlock()
	d.ticks.Wait()
}

// tick runs on the timer's goroutine, which stop waits for.
func (d *watchdog) tick() {
	late, again := d.judge()
	if again {
		return
	}
	if late {
		d.wire.stuck(d)
	}
	d.ticks.Done()
}

func (d *watchdog) judge() (late, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if busy := d.busy > 0; busy && !d.closed {
		left := d.limit - (clock() - d.since)
		if left > 0 {
			d.timer.Reset(left)
			return false, true
		}
		d.closed, late = true, true // once is enough
	}
	d.armed = false
	return late, false
}
