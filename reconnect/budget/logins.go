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

// Logins is a budget of logins: at most N in any interval, such as 900 in 24 h for a server that resets a
// client's token after 1,000. Each limit is a [Window]: choose N below the server's number, for the delays
// described there.
//
// The connections of one account share a Logins. A connection waits before its dial while no login is left,
// reserves one for the dial, and takes it just before the first message that it writes. A program that logs in
// by dialing, as with a token in a header, calls [Logins.Take] in its dial function.
//
// With a [LoginStore] logins count across restarts. A login is stored before Take returns, so none is lost when
// a process is killed. Times in the store are of the wall clock; within a process setting the clock does no
// harm. If it was set back between two processes, a login in the future counts as made at the start of the
// second, and delays others by at most one interval. If it was set forward, logins look older than they are,
// which goes undetected. A process with a larger N or Per than the one before does not know all older logins.
//
// No two processes may use one record at a time. If they do, as during an overlapping restart, each Take counts
// the logins that the other has stored, and stores them again; only simultaneous calls of Take miss each other.
// [Logins.Damage] and each LoginError are then [ErrOtherWriter].
//
// With [SharedLogins], such as redisgate.Logins, several processes have one budget, but not each other's
// reservations: one connection of each may dial for the last login. All but one get a [*LoginError] from their
// write, and wait again. While logins cannot be counted none begins: ready connections continue, and lost ones
// wait with a LoginError that says why.
//
// A Logins is safe for concurrent use, and needs no closing.
type Logins struct {
	o    LoginsOptions
	per  time.Duration // the longest of the windows
	most int           // the largest number of the windows
	turn chan struct{} // held by the goroutine that takes a login, also while it stores the login

	// stored are the logins that the record may have, in nanoseconds since 1970, unless another
	// process has added some. Guarded by turn.
	stored []int64

	mu       sync.Mutex    // guards what follows
	taken    []time.Time   // the logins that count for a window, the oldest first; not used if they are shared
	reserved int           // how many connections dial for a login that they have not taken yet
	freed    chan struct{} // closed when a reservation ends; nil: nobody waits for that
	damage   error         // that of the record, until the logins that stand for the lost ones are over
	mended   time.Time     // when that is
	shared   time.Time     // until when logins count that another process has written to the record
}

// LoginsOptions are the options of [NewLogins].
type LoginsOptions struct {
	// Windows are the limits, all of which apply. At least one is required, with N and Per. They are copied.
	Windows []Window

	// Store keeps the logins across restarts: see [LoginFile]. Default: they are forgotten.
	Store LoginStore

	// Shared counts the logins of several processes, instead of a Store.
	Shared SharedLogins

	// Resumes says that a session may resume without a login, by reconnect.Opening.NoLogin. Then a connection
	// waits before its dial only after a [*LoginError].
	Resumes bool

	// Now is the clock. It must not call the Logins. It must be nil with Shared. Default: time.Now.
	Now func() time.Time
}

// LoginStore keeps the record of a [Logins]. Its methods are called one at a time, without a lock.
type LoginStore interface {
	// Load returns the times of the record, in any order, or none if there is no record yet. Each Logins.Take
	// calls it, because another process may have written the record. If any of it cannot be verified the error
	// is [ErrDamaged], and the times are those that can. After any other error NewLogins or Take fails.
	Load() ([]time.Time, error)

	// Save replaces the record. Once it has returned nil the record must survive a crash of the process and of
	// the machine; a crash during Save must leave the old record or the new one. Save may retain times, and
	// round them to seconds. A store that may hang must limit its time.
	Save(times []time.Time) error
}

// SharedLogins counts the logins of several processes, across restarts, as redisgate.Logins does. It must
// be safe for concurrent use.
type SharedLogins interface {
	// Take takes a login atomically among all processes, and reports false if any of the windows is full.
	// After an error the caller must not log in.
	Take(ctx context.Context, windows []Window) (taken bool, err error)

	// Recent returns the known logins of all processes, the oldest first, without blocking. Times are on the
	// clock of this process, and the slice is never modified. While logins cannot be counted it returns an
	// error with the time at which that may change. It must not call the Logins.
	Recent() ([]time.Time, *LoginError)
}

// ErrDamaged means that the record of a [LoginStore] cannot be verified.
var ErrDamaged = errors.New("the record of logins is damaged")

// ErrOtherWriter means that another process has written the record of a [LoginStore] in use by this one: see
// [Logins].
var ErrOtherWriter = errors.New("another process has written the record of logins: " +
	"use a record for each process, or count the logins of both by redisgate.Logins")

// NewLogins returns a Logins with the logins in the store. The error names the invalid option, or is that of
// the store. A damaged record is no error: it counts as N logins of the shortest window, made now, in addition
// to those verified.
func NewLogins(o *LoginsOptions) (*Logins, error) {
	switch {
	case o == nil || len(o.Windows) == 0:
		return nil, errors.New("budget: option Windows of Logins is empty")
	case o.Shared != nil && (o.Store != nil || o.Now != nil):
		return nil, errors.New("budget: option Shared of Logins excludes Store and Now")
	}
	l := &Logins{o: *o, turn: make(chan struct{}, 1)}
	l.o.Windows = nil
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
		l.o.Windows = append(l.o.Windows, w)
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
	l.stored = nanoseconds(times)
	for i, at := range times {
		changed = changed || now.Round(0).Before(at)
		times[i] = onClock(at, now)
	}
	if damaged {
		shortest := slices.MinFunc(l.o.Windows, func(a, b Window) int { return cmp.Compare(a.Per, b.Per) })
		times = append(times, slices.Repeat([]time.Time{now}, shortest.N)...)
		l.damage, l.mended = err, now.Add(shortest.Per)
	}
	slices.SortStableFunc(times, time.Time.Compare)
	l.taken = l.recent(times, now)
	if changed {
		l.stored = nanoseconds(l.taken)
		if err := l.o.Store.Save(slices.Clone(l.taken)); err != nil {
			return fmt.Errorf("budget: save the record of logins: %w", err)
		}
	}
	return nil
}

// onClock returns at, a time of the record, on the clock of this process, or now if at is in the
// future by the wall clock.
func onClock(at, now time.Time) time.Time { return now.Add(-max(now.Round(0).Sub(at), 0)) }

func nanoseconds(times []time.Time) []int64 {
	ns := make([]int64, len(times))
	for i, at := range times {
		ns[i] = at.UnixNano()
	}
	return ns
}

// reload counts the logins that another process has added to the record. The caller must hold turn.
func (l *Logins) reload(now time.Time) error {
	times, err := l.o.Store.Load()
	if err != nil && !errors.Is(err, ErrDamaged) { // a part of it that is damaged is in l.taken
		return fmt.Errorf("load the record of logins: %w", err)
	}
	left := slices.Clone(l.stored)
	var others []time.Time
	for _, at := range times {
		i := slices.IndexFunc(left, func(ns int64) bool {
			return time.Duration(at.UnixNano()-ns).Abs() <= time.Second // because the store may have rounded it
		})
		if i < 0 {
			others = append(others, onClock(at, now))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	l.stored = nanoseconds(times)
	if len(others) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := append(slices.Clone(l.taken), others...)
	slices.SortStableFunc(taken, time.Time.Compare)
	l.taken = l.recent(taken, now)
	l.shared = slices.MaxFunc(others, time.Time.Compare).Add(l.per)
	return nil
}

// recent returns the times that still count for a window.
func (l *Logins) recent(times []time.Time, now time.Time) []time.Time {
	times = within(times, l.per, now)
	return times[max(0, len(times)-l.most):]
}

// within returns those of the times that lie in the interval of length per that ends now.
func within(times []time.Time, per time.Duration, now time.Time) []time.Time {
	first, _ := slices.BinarySearchFunc(times, now.Add(-per), func(at, from time.Time) int { // at which one is over
		if at.After(from) {
			return 1
		}
		return -1
	})
	return times[first:]
}

// Take takes a login, possibly a reserved one, which the caller makes next. It waits only for other calls and
// for the store. It returns a [*LoginError] if no login is left or the store fails, and the cause of ctx if
// ctx is done before its turn; then the caller must not log in. If ctx derives from the context of a dial,
// Take ends the reservation of that dial. A login cannot be returned, because the server may have counted it.
func (l *Logins) Take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if l.o.Shared != nil {
		return l.takeShared(ctx)
	}
	now := l.o.Now()
	if l.o.Store != nil {
		if err := l.reload(now); err != nil {
			return &LoginError{Next: now, Err: err, now: l.o.Now, unstored: true}
		}
	}
	record, short := l.admit(now)
	if short != nil {
		return short
	}
	if l.o.Store != nil {
		if err := l.o.Store.Save(record); err != nil {
			l.stored = append(l.stored, now.UnixNano()) // the record may be the old one or the new one
			err = fmt.Errorf("save the record of logins: %w", err)
			return &LoginError{Next: now, Err: err, now: l.o.Now, unstored: true}
		}
		l.stored = nanoseconds(record)
	}
	l.mu.Lock()
	l.taken = append(l.recent(l.taken, now), now)
	l.mu.Unlock()
	l.endReservation(ctx)
	return nil
}

// endReservation ends the reservation of the dial that ctx belongs to, by the function that is its value for l.
func (l *Logins) endReservation(ctx context.Context) {
	if release, ok := ctx.Value(l).(func()); ok {
		release()
	}
}

// admit returns the record with a login now, or an error if there may be none.
func (l *Logins) admit(now time.Time) ([]time.Time, *LoginError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if short := l.short(l.taken, 1, now); short != nil {
		return nil, short
	}
	if l.o.Store == nil {
		return nil, nil
	}
	return append(slices.Clone(l.recent(l.taken, now)), now), nil
}

// takeShared is Take for Shared.
func (l *Logins) takeShared(ctx context.Context) error {
	taken, err := l.o.Shared.Take(ctx, slices.Clone(l.o.Windows))
	if taken && err == nil {
		l.endReservation(ctx)
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, short := l.known()
	if short == nil {
		short = l.short(known, 1, time.Now())
	}
	if short == nil {
		short = &LoginError{Next: time.Now(), now: l.o.Now}
	}
	short.Err = cmp.Or(short.Err, err)
	return short
}

// known returns the logins that are known, or an error while they cannot be counted. The caller holds mu.
func (l *Logins) known() ([]time.Time, *LoginError) {
	if l.o.Shared == nil {
		return l.taken, nil
	}
	times, away := l.o.Shared.Recent()
	if away != nil {
		away = &LoginError{Next: away.Next, Err: away.Err, now: l.o.Now}
	}
	return times, away
}

// short returns the error if n logins may not be made now, else nil. The caller holds mu.
func (l *Logins) short(taken []time.Time, n int, now time.Time) *LoginError {
	next := now
	for i := range l.o.Windows {
		if at := l.o.Windows[i].fits(taken, n, now); at.After(next) {
			next = at
		}
	}
	if !next.After(now) {
		return nil
	}
	return &LoginError{Next: next, Err: l.damaged(now), now: l.o.Now}
}

// fits returns when n events more may happen, after those in taken: now, or when enough of them have left the
// window. If some of the n themselves would have to leave it, the result is a time at which they may have.
func (w *Window) fits(taken []time.Time, n int, now time.Time) time.Time {
	over := len(taken) + n - w.N // so many of taken must have left
	switch {
	case over <= 0:
		return now
	case over > len(taken):
		return now.Add(w.Per)
	}
	return taken[over-1].Add(w.Per)
}

// Free returns how many logins may be made now, including reserved ones.
func (l *Logins) Free() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, away := l.known()
	if away != nil {
		return 0
	}
	now, free := l.o.Now(), l.most
	for _, w := range l.o.Windows {
		free = min(free, w.N-len(within(taken, w.Per, now)))
	}
	return max(0, free)
}

// Damage returns [ErrDamaged] until the logins that stand for those lost expire (see [NewLogins]); otherwise
// [ErrOtherWriter] while logins count that another process has written; otherwise nil.
func (l *Logins) Damage() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damaged(l.o.Now())
}

// damaged is Damage. The caller holds mu.
func (l *Logins) damaged(now time.Time) error {
	switch {
	case now.Before(l.mended):
		return l.damage
	case now.Before(l.shared):
		return ErrOtherWriter
	}
	return nil
}
