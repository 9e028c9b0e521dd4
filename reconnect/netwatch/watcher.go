package netwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Watcher reports changes of the network of this machine to its readers and the attached connections. A
// program needs only one Watcher. It is safe for concurrent use.
type Watcher struct {
	o       Options
	machine machine
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing is left

	// Owned by run.
	wall, mono time.Time     // clocks at the last look
	agenda     []*attachment // pending calls, the earliest last

	mu       sync.Mutex // guards what follows; never held while waiting
	status   Status
	readers  map[chan Change]func() bool // each with the stop of its context.AfterFunc; nil once w has ended
	attached []*attachment
	sweepAt  int // length of attached at which those that are not live are removed
}

// Options are the options of [New]. The zero value is ready for use.
type Options struct {
	// Interval is how often the Watcher looks at the network without an announcement. On Linux this only
	// detects sleep of the machine and lost announcements; elsewhere a change is noticed up to Interval late.
	// Default: 10 s. Negative: an error.
	Interval time.Duration

	// Spread is the time after a change within which attached connections are called: see [Watcher.Attach].
	// Default: 1 s. Negative: all connections are called immediately.
	Spread time.Duration

	// Ignore reports whether the named interface does not count. Ignore is called by New, and then by the
	// goroutine of the Watcher. Default: [Virtual].
	Ignore func(name string) bool
}

// settle is how long the Watcher waits for further announcements before it looks at the network. If the burst
// does not end, it looks after ten times settle.
const settle = 500 * time.Millisecond

// Status is the state of a [Watcher] at one moment.
type Status struct {
	Network Network // as of the last successful look
	Err     error   // error of the last look, or nil
	Polling error   // why the system announces no changes, or nil
}

// New starts a Watcher, which watches until ctx is done or Close is called. o may be nil. The error names the
// wrong option, or why New cannot look at the network: [errors.ErrUnsupported] on systems that hide it from
// programs, such as js/wasm.
func New(ctx context.Context, o *Options) (*Watcher, error) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		err := fmt.Errorf("netwatch: the network cannot be seen on %s: %w", runtime.GOOS, errors.ErrUnsupported)
		return nil, err
	}
	return start(ctx, o, machine{look: look, listen: listen, wall: time.Now})
}

func start(ctx context.Context, o *Options, m machine) (*Watcher, error) {
	w := &Watcher{machine: m, done: make(chan struct{}), readers: map[chan Change]func() bool{}}
	if o != nil {
		w.o = *o
	}
	if w.o.Interval < 0 {
		return nil, fmt.Errorf("netwatch: Options.Interval: %v is negative", w.o.Interval)
	}
	w.o.Interval = cmp.Or(w.o.Interval, 10*time.Second)
	w.o.Spread = cmp.Or(w.o.Spread, time.Second)
	if w.o.Ignore == nil {
		w.o.Ignore = Virtual
	}
	events := make(chan error, 1)
	stop, err := m.listen(events) // before the look, so that no change is missed
	w.status.Polling = err
	w.wall, w.mono = m.wall().Round(0), time.Now()
	network, err := m.look(w.o.Ignore)
	if err != nil {
		stop()
		return nil, fmt.Errorf("netwatch: look at the network: %w", err)
	}
	w.status.Network = network
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx, events, stop) // closes done when it ends
	return w, nil
}

// Close starts the end of the Watcher and returns immediately. It returns nil, and may be called more than
// once.
func (w *Watcher) Close() error {
	w.cancel()
	return nil
}

// Done returns a channel that is closed when no goroutine, timer or socket of the Watcher is left.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Status returns the current Status, without looking at the network.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Changes returns a new channel that receives each change from now on. The Watcher never waits for a slow
// reader: pending changes are merged into one, from before the first to after the last. The channel is closed
// when ctx is done or the Watcher ends.
func (w *Watcher) Changes(ctx context.Context) <-chan Change {
	ch := make(chan Change, 1) // one, because look merges pending changes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == nil {
		close(ch)
		return ch
	}
	w.readers[ch] = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.readers[ch] != nil {
			delete(w.readers, ch)
			close(ch)
		}
	})
	return ch
}

// run looks at the network after a burst of announcements and every Interval, and calls the attached
// connections when they are due.
func (w *Watcher) run(ctx context.Context, events <-chan error, stop func()) {
	defer w.finish(stop)
	look := w.mono.Add(w.o.Interval)
	var latest time.Time // limit of look during a burst, or zero
	var call time.Time   // time of the next call, or zero
	for {
		wake := look
		if !call.IsZero() && call.Before(look) {
			wake = call
		}
		select {
		case <-ctx.Done():
			return
		case err := <-events:
			if err != nil { // the last announcement may be lost, so this counts as one
				w.mu.Lock()
				w.status.Polling = fmt.Errorf("netwatch: %w", err)
				w.mu.Unlock()
			}
			now := time.Now()
			if latest.IsZero() {
				latest = now.Add(10 * settle)
			}
			look = now.Add(min(settle, latest.Sub(now)))
			continue
		case <-time.After(time.Until(wake)):
		}
		now := time.Now()
		if !now.Before(look) {
			w.look(look, now)
			look, latest = now.Add(w.o.Interval), time.Time{}
		}
		call = w.visit(now, w.Status().Network.Offline())
	}
}

func (w *Watcher) finish(stop func()) {
	w.cancel()
	stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch, stop := range w.readers {
		stop()
		close(ch)
	}
	w.readers = nil
	close(w.done)
}

// look compares the network with that of the last look, and reports a change to the readers and the
// attached connections. The look was due at due.
func (w *Watcher) look(due, now time.Time) {
	slept := w.slept(due, now)
	network, err := w.machine.look(w.o.Ignore)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Change{Old: w.status.Network, New: network, Slept: slept}
	if w.status.Err = err; err != nil {
		c.New = c.Old // the next look that succeeds compares with the same network
	} else {
		w.status.Network = network
	}
	if slept == 0 && c.New.equal(c.Old) {
		return
	}
	for ch := range w.readers {
		select { // never blocks, because look is the only sender
		case missed := <-ch:
			ch <- Change{Old: missed.Old, New: c.New, Slept: missed.Slept + c.Slept}
		default:
			ch <- c
		}
	}
	w.plan(now)
}

// slept returns for how long the machine was suspended since the last look. Only the wall clock shows that
// everywhere: during sleep the monotonic clock continues on some systems and stops on others.
func (w *Watcher) slept(due, now time.Time) time.Duration {
	wall := w.machine.wall().Round(0) // without the monotonic clock
	late := wall.Sub(w.wall) - due.Sub(w.mono)
	w.wall, w.mono = wall, now
	if late <= 5*time.Second { // the usual correction of a clock
		return 0
	}
	return late
}
