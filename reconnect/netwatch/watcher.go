package netwatch

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Watcher reports changes of the network of this machine to its readers and the attached connections. A program
// needs only one Watcher. It is safe for concurrent use.
type Watcher struct {
	o        Options
	machine  machine
	cancel   context.CancelFunc
	done     chan struct{} // closed when nothing is left
	attached attachments

	// Owned by the goroutine run.
	wall, mono time.Time // the clocks at the last look

	mu      sync.Mutex // guards what follows; never held while waiting
	status  Status
	readers map[chan Change]func() bool // the channels of Changes; the function stops the wait for the reader's context. nil: w has ended
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

	// Ignore reports whether the named interface does not count. An interface with a route to the Internet
	// always counts. Ignore is called by New, and then by the goroutine of the Watcher. Default: [Virtual].
	Ignore func(name string) bool
}

// settle is how long the Watcher waits for further announcements before it looks at the network. If the burst
// does not end, it looks after ten times settle.
const settle = 500 * time.Millisecond

// Status is the state of a [Watcher] at one moment.
type Status struct {
	Network Network   // as of the last successful look
	Looked  time.Time // time of that look
	Err     error     // error of the last look, or nil
	Polling error     // why the system announces no changes, so that the Watcher polls every Interval, or nil
}

// New starts a Watcher, which watches until ctx is done or Close is called. o may be nil. The error names the
// wrong option, or why New cannot look at the network: [errors.ErrUnsupported] on systems that hide it from
// programs, such as js/wasm.
func New(ctx context.Context, o *Options) (*Watcher, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, err
	}
	return start(ctx, o, m)
}

func start(ctx context.Context, o *Options, m machine) (*Watcher, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Watcher{o: options, machine: m, done: make(chan struct{}), readers: map[chan Change]func() bool{}}
	// It listens before it looks, so that it misses no change.
	announcements, err := m.listen()
	w.status.Polling = err
	w.wall, w.mono = m.wall().Round(0), time.Now()
	network, err := m.look(w.o.Ignore)
	if err != nil {
		announcements.close()
		return nil, fmt.Errorf("netwatch: look at the network: %w", err)
	}
	w.status.Network, w.status.Looked = network, w.mono
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx, announcements) // Done says when it has ended
	return w, nil
}

// withDefaults returns a copy of o with the default in the place of each field that is zero.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Interval < 0 {
		return r, fmt.Errorf("netwatch: Options.Interval: %v is negative", r.Interval)
	}
	const forever = 1000 * time.Hour // no sum of such times overflows
	r.Interval = min(cmp.Or(r.Interval, 10*time.Second), forever)
	r.Spread = min(cmp.Or(r.Spread, time.Second), forever)
	if r.Ignore == nil {
		r.Ignore = Virtual
	}
	return r, nil
}

// Close starts the end of the Watcher and returns immediately. It closes the channels of Changes and detaches
// all connections. Close returns nil, and may be called more than once.
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
	ch := make(chan Change, 1) // one: report merges those that are not taken
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == nil {
		close(ch)
		return ch
	}
	w.readers[ch] = context.AfterFunc(ctx, func() { w.forget(ch) })
	return ch
}

// forget closes the channel of a reader whose context has ended.
func (w *Watcher) forget(ch chan Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers[ch] != nil {
		delete(w.readers, ch)
		close(ch)
	}
}

// run is the goroutine of the Watcher. It looks at the network after a burst of announcements
// and every Interval, and calls the attached connections when they are due.
func (w *Watcher) run(ctx context.Context, announcements *announcer) {
	defer w.finish(announcements)
	events := announcements.events
	look := w.mono.Add(w.o.Interval)
	var latest time.Time // of the look after the present burst; zero: there is no burst
	timer := time.NewTimer(w.o.Interval)
	defer timer.Stop()
	for {
		wake := look
		if call, ok := w.attached.next(); ok && call.Before(wake) {
			wake = call
		}
		timer.Reset(time.Until(wake))
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok { // the last announcement may be lost, so this counts as one
				events = nil
				w.edit(func(s *Status) { s.Polling = announcements.err })
			}
			now := time.Now()
			if latest.IsZero() {
				latest = now.Add(10 * settle)
			}
			if look = now.Add(settle); look.After(latest) {
				look = latest
			}
			continue
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(look) {
			w.look(look, now)
			look, latest = now.Add(w.o.Interval), time.Time{}
		}
		w.attached.visit(now, w.Status().Network.Offline())
	}
}

// finish closes everything, and done last.
func (w *Watcher) finish(announcements *announcer) {
	w.cancel()
	announcements.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch, stop := range w.readers {
		stop()
		close(ch)
	}
	w.readers = nil
	close(w.done)
}

// look compares the network with the network of the last look, and reports the change if there
// is one. The look was due at due.
func (w *Watcher) look(due, now time.Time) {
	slept := w.slept(due, now)
	network, err := w.machine.look(w.o.Ignore)
	change := Change{Old: w.Status().Network, New: network, Slept: slept}
	if err != nil { // the next look that succeeds compares with the same network
		change.New = change.Old
	}
	w.edit(func(s *Status) {
		s.Network, s.Err = change.New, err
		if err == nil {
			s.Looked = now
		}
	})
	if slept > 0 || !change.New.equal(change.Old) {
		w.report(change)
		w.attached.changed(now, w.o.Spread)
	}
}

// late is how late a look must be, by the wall clock, so that the machine counts as having
// slept. It is more than the usual correction of a clock.
const late = 5 * time.Second

// slept returns for how long the machine was suspended since the last look. Only the wall
// clock shows that everywhere: while a machine sleeps the monotonic clock goes on on some
// systems and stands still on others.
func (w *Watcher) slept(due, now time.Time) time.Duration {
	wall := w.machine.wall().Round(0) // without the monotonic clock
	by := wall.Sub(w.wall) - due.Sub(w.mono)
	w.wall, w.mono = wall, now
	if by <= late {
		return 0
	}
	return by
}

func (w *Watcher) edit(f func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.status)
}

// report sends the change to each reader. It never waits: report is the only sender, so the channel
// has room once the change that the reader has not taken is out of it.
func (w *Watcher) report(c Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.readers {
		select {
		case missed := <-ch:
			ch <- missed.then(c)
		default:
			ch <- c
		}
	}
}
