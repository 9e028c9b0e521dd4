package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Logins is a budget of logins: at most so many in any interval, such as 900 in 24 h for a server that
// resets the token of a client after 1,000. A [Gate] bounds the dials of a second; Logins bounds what a
// connection that is lost again and again costs in a day. Each limit is a [Window], so the hints of Window
// about delays on the way hold: choose N below the server's number.
//
// One Logins is shared by the connections of one account: reconnect.RunOptions takes it. A connection
// waits before its dial while no login is left, and takes a login just before the first message that it
// writes. Two connections may dial for the last login; one of them gets a [*LoginError] from its write, and
// waits again. A program that logs in by its dial, such as with a token in a header, calls [Logins.Take]
// in its dial function.
//
// With a [LoginStore] the logins of a process count for the next process. A login is stored before Take
// returns, so a process that is killed has never made a login that the next one does not know. The times
// in the store are of the wall clock; within a process a clock that is set does no harm. If the clock was
// set back between two processes, a login whose time is still to come counts as made at the start of the
// second process: it holds others back for one interval at most. A clock that was set forward between two
// processes makes logins look older than they are, which nothing here can see.
//
// A Logins is safe for concurrent use, starts no goroutine and needs no closing.
type Logins struct {
	o    LoginsOptions
	per  time.Duration // the longest of the windows
	most int           // the largest number of the windows
	turn chan struct{} // held by the goroutine that takes a login, also while it stores the login

	mu      sync.Mutex  // guards what follows
	windows []Window    // each knows all logins
	taken   []time.Time // the logins that the store needs, the oldest first
	damage  error       // that of the record, until the logins that stand for the lost ones are over
	mended  time.Time   // when that is
}

// LoginsOptions are the options of [NewLogins].
type LoginsOptions struct {
	// Windows are the limits, all of which hold. At least one is needed, and each needs N and Per.
	// Logins copies them.
	Windows []Window

	// Store keeps the logins over restarts. No two processes may use one record at a time. Default:
	// a process knows nothing of the logins of the process before.
	Store LoginStore

	// Resumes says that a session may go on without a login, by reconnect.Opening.NoLogin. Then a
	// connection dials even while no login is left; only after a [*LoginError] it waits before the
	// next dial. Default: a connection waits before the dial while no login is left.
	Resumes bool

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// LoginStore keeps the record of a [Logins], such as in a [LoginFile]. The methods are called one at a time,
// without a lock.
type LoginStore interface {
	// Load returns the times of the record, in any order, or none if there was never one. If the
	// record, or a part of it, cannot be verified the error is [ErrDamaged], and the times are those
	// that can be. After any other error NewLogins fails.
	Load() ([]time.Time, error)

	// Save replaces the record. When it has returned nil the record must survive a crash of the
	// process and of the machine. A crash during Save must leave the old record or the new one. Save
	// may keep times, which does not change.
	Save(times []time.Time) error
}

// ErrDamaged says that the record of a [LoginStore] cannot be verified.
var ErrDamaged = errors.New("the record of logins is damaged")

// NewLogins returns a Logins that knows the logins in the store. The error names the option that is wrong, or
// is that of the store. A damaged record is no such error: it counts as N logins of the shortest window, made
// now, beside the logins that can be verified. Until these are over [Logins.Damage], and each [LoginError],
// say what is damaged.
func NewLogins(o *LoginsOptions) (*Logins, error) {
	if o == nil || len(o.Windows) == 0 {
		return nil, errors.New("budget: option Windows of Logins is empty")
	}
	l := &Logins{o: *o, turn: make(chan struct{}, 1)}
	if l.o.Now == nil {
		l.o.Now = time.Now
	}
	for i := range o.Windows {
		w := Window{N: o.Windows[i].N, Per: o.Windows[i].Per}
		if err := w.Validate(); err != nil {
			return nil, fmt.Errorf("budget: option Windows[%d] of Logins: %w", i, err)
		}
		if w.N == 0 {
			return nil, fmt.Errorf("budget: option Windows[%d] of Logins has no N", i)
		}
		l.windows = append(l.windows, w)
		l.per, l.most = max(l.per, w.Per), max(l.most, w.N)
	}
	if l.o.Store == nil {
		return l, nil
	}
	return l, l.load()
}

// load reads the record. It stores what it has made of a record that is damaged or from the future, because
// otherwise each restart would begin the same wait again.
func (l *Logins) load() error {
	times, err := l.o.Store.Load()
	damaged := errors.Is(err, ErrDamaged)
	if err != nil && !damaged {
		return fmt.Errorf("budget: load the record of logins: %w", err)
	}
	now, changed := l.o.Now(), damaged
	for i, at := range times {
		age := now.Round(0).Sub(at) // by the wall clock
		changed = changed || age < 0
		times[i] = now.Add(-max(age, 0)) // on the clock of this process
	}
	if damaged {
		shortest := slices.MinFunc(l.windows, func(a, b Window) int { return cmp.Compare(a.Per, b.Per) })
		times = append(times, slices.Repeat([]time.Time{now}, shortest.N)...)
		l.damage, l.mended = err, now.Add(shortest.Per)
	}
	slices.SortStableFunc(times, time.Time.Compare)
	for _, at := range l.recent(times, now) {
		l.note(at)
	}
	if changed {
		if err := l.o.Store.Save(slices.Clone(l.taken)); err != nil {
			return fmt.Errorf("budget: save the record of logins: %w", err)
		}
	}
	return nil
}

// recent returns the times that still count for a window.
func (l *Logins) recent(times []time.Time, now time.Time) []time.Time {
	first, _ := slices.BinarySearchFunc(times, now.Add(-l.per), func(at, from time.Time) int { // which is over
		if at.After(from) {
			return 1
		}
		return -1
	})
	return times[max(first, len(times)-l.most):]
}

// note counts a login. The caller holds mu, or nobody else knows l yet.
func (l *Logins) note(at time.Time) {
	for i := range l.windows {
		l.windows[i].Take(at)
	}
	if l.o.Store != nil {
		l.taken = append(l.recent(l.taken, at), at)
	}
}

// Take takes a login, which the caller makes next. It waits only for other calls and for the store. It
// returns a [*LoginError] if no login is left, or if the store fails; then the caller must not log in. When ctx
// ends before it is this call's turn, Take returns the cause of ctx. A login cannot be given back,
// because the server may have counted it.
func (l *Logins) Take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	now := l.o.Now()
	record, short := l.admit(now)
	if short != nil {
		return short
	}
	if l.o.Store != nil {
		if err := l.o.Store.Save(record); err != nil {
			return &LoginError{Next: now, Err: fmt.Errorf("save the record of logins: %w", err)}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(now)
	return nil
}

// admit returns the record with a login now, or an error if there may be none.
func (l *Logins) admit(now time.Time) ([]time.Time, *LoginError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if short := l.short(now); short != nil {
		return nil, short
	}
	if l.o.Store == nil {
		return nil, nil
	}
	return append(slices.Clone(l.recent(l.taken, now)), now), nil
}

// short returns the error if no login may be made now, else nil. The caller holds mu.
func (l *Logins) short(now time.Time) *LoginError {
	next := now
	for i := range l.windows {
		if at := l.windows[i].At(now); at.After(next) {
			next = at
		}
	}
	if !next.After(now) {
		return nil
	}
	return &LoginError{Next: next, Err: l.damaged(now)}
}

// Free returns how many logins may be made now.
func (l *Logins) Free() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, free := l.o.Now(), l.most
	for i := range l.windows {
		free = min(free, l.windows[i].Free(now))
	}
	return free
}

// Damage returns the error of a record that was damaged, until the logins that stand for the lost ones are
// over: see [NewLogins]. It is [ErrDamaged]. Damage returns nil if there is no such error.
func (l *Logins) Damage() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damaged(l.o.Now())
}

// damaged is Damage. The caller holds mu.
func (l *Logins) damaged(now time.Time) error {
	if now.Before(l.mended) {
		return l.damage
	}
	return nil
}

// BeforeDial returns nil if a connection may dial now, or when it may log in. The supervisor of package
// reconnect asks it. cause is why the last session of the connection ended, or its last dial failed. It becomes
// Err if nothing else is there. BeforeDial of a nil Logins returns nil.
func (l *Logins) BeforeDial(cause error) *LoginError {
	if l == nil {
		return nil
	}
	_, refused := errors.AsType[*LoginError](cause)
	if l.o.Resumes && !refused {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	short := l.short(l.o.Now())
	if short != nil && short.Err == nil && !refused {
		short.Err = cause
	}
	return short
}
