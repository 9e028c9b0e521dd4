package budget_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// memory is a LoginStore whose Save fails while broken is set.
type memory struct {
	times  []time.Time
	saves  int
	broken error
	load   error
	during func() // called by Save, if it is set
}

func (m *memory) Load() ([]time.Time, error) { return slices.Clone(m.times), m.load }

func (m *memory) Save(times []time.Time) error {
	if m.during != nil {
		m.during()
	}
	if m.broken != nil {
		return m.broken
	}
	m.saves++
	m.times = nil
	for _, at := range times {
		m.times = append(m.times, time.Unix(0, at.UnixNano())) // as another process finds them
	}
	return nil
}

func newLogins(t testing.TB, store budget.LoginStore, windows ...budget.Window) *budget.Logins {
	t.Helper()
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: windows, Store: store})
	require.NoError(t, err)
	return l
}

// refusedUntil requires that no login is left for so long, and returns the error.
func refusedUntil(t testing.TB, l *budget.Logins, wait time.Duration) *budget.LoginError {
	t.Helper()
	err, ok := errors.AsType[*budget.LoginError](l.Take(t.Context()))
	require.True(t, ok)
	require.Equal(t, wait, time.Until(err.Next))
	return err
}

func TestEveryWindowOfLoginsHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(t, nil, budget.Window{N: 3, Per: time.Hour}, budget.Window{N: 2, Per: time.Minute})
		require.Equal(t, 2, l.Free())
		require.NoError(t, l.Take(t.Context()))
		time.Sleep(10 * time.Second)
		require.NoError(t, l.Take(t.Context()))
		refusedUntil(t, l, 50*time.Second)
		time.Sleep(50 * time.Second)
		require.Equal(t, 1, l.Free())
		require.NoError(t, l.Take(t.Context()))
		refusedUntil(t, l, 59*time.Minute)
		require.Zero(t, l.Free())
		time.Sleep(59*time.Minute - 1)
		refusedUntil(t, l, 1)
		time.Sleep(time.Nanosecond)
		require.NoError(t, l.Take(t.Context()))
	})
}

func TestALoginErrorJudgesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(t, nil, budget.Window{N: 1, Per: time.Minute})
		require.NoError(t, l.Take(t.Context()))
		err := l.Take(t.Context())
		require.EqualError(t, err, "the budget allows no login before 2000-01-01T00:01:00Z")
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry, Local: true, RetryAfter: time.Minute}, backoff.Classify(err))
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(err))
		time.Sleep(time.Minute)
		require.Zero(t, backoff.Classify(err).RetryAfter)
	})
}

// A simulator sets the clock. The error that a Logins returns goes by it.
func TestTheWaitForALoginGoesByTheClockOfItsLogins(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	store := &memory{}
	l, err := budget.NewLogins(&budget.LoginsOptions{
		Windows: []budget.Window{{N: 1, Per: time.Minute}}, Store: store, Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	require.NoError(t, l.Take(t.Context()))
	now = now.Add(20 * time.Second)
	for _, err := range []error{l.Take(t.Context()), l.BeforeDial(errBreak)} {
		require.Equal(t, 40*time.Second, backoff.Classify(err).RetryAfter)
	}
	now, store.broken = now.Add(time.Hour), errBreak
	require.Zero(t, backoff.Classify(l.Take(t.Context())).RetryAfter)
}

func TestAReservedLoginIsNotLeftForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(t, nil, budget.Window{N: 2, Per: time.Minute}, budget.Window{N: 3, Per: time.Hour})
		require.NoError(t, l.Take(t.Context()))
		time.Sleep(10 * time.Second)
		first, short, _ := l.Reserve(nil)
		require.Nil(t, short)
		require.Equal(t, 1, l.Free(), "it is not made")
		require.Equal(t, 50*time.Second, time.Until(l.BeforeDial(nil).Next), "then the login of before is over")
		_, short, ended := l.Reserve(errBreak)
		require.Equal(t, 50*time.Second, time.Until(short.Next))
		require.ErrorIs(t, short, errBreak)
		requireOpen(t, ended)
		require.NoError(t, l.Take(t.Context()), "a reservation is for dials, and not for Take")
		first()
		<-ended
		first()
		require.Zero(t, l.Free())
		time.Sleep(50 * time.Second)
		for range 2 { // the second call of first has freed nothing
			_, short, ended = l.Reserve(nil)
		}
		require.Equal(t, time.Hour-time.Minute, time.Until(short.Next), "two of the hour are made, and one is reserved")
		requireOpen(t, ended)
	})
}

// If all logins are reserved the next one is free when the first of these is over, at the latest.
func TestWhenAllLoginsAreReservedTheWaitIsAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(t, nil, budget.Window{N: 1, Per: time.Minute})
		release, short, _ := l.Reserve(nil)
		require.Nil(t, short)
		time.Sleep(10 * time.Second)
		require.Equal(t, time.Minute, time.Until(l.BeforeDial(nil).Next))
		release()
		require.Nil(t, l.BeforeDial(nil))
		var none *budget.Logins
		release, short, _ = none.Reserve(nil)
		require.Nil(t, short)
		release()
	})
}

func requireOpen(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		require.Fail(t, "it is closed")
	default:
	}
}

// others are SharedLogins that other processes have taken. None is left for this process.
type others []time.Time

func (o *others) Take(context.Context, []budget.Window) (bool, error) { return false, nil }
func (o *others) Recent() ([]time.Time, *budget.LoginError)           { return *o, nil }

func TestARefusedTakeDoesNotWaitForItsOwnReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared others
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Minute}}, Shared: &shared})
		require.NoError(t, err)
		release, short, _ := l.Reserve(nil)
		require.Nil(t, short)
		defer release()
		shared = others{time.Now()}
		time.Sleep(30 * time.Second)
		refusedUntil(t, l, 30*time.Second)
	})
}

// lagging are SharedLogins whose Recent lets another goroutine run before it returns.
type lagging struct {
	taken  []time.Time
	during func()
}

func (g *lagging) Take(context.Context, []budget.Window) (bool, error) {
	g.taken = append(g.taken, time.Now())
	return true, nil
}

func (g *lagging) Recent() ([]time.Time, *budget.LoginError) {
	before := slices.Clone(g.taken)
	if g.during != nil {
		go g.during()
		for range 1000 {
			runtime.Gosched()
		}
	}
	return before, nil
}

// The last login is taken, and its reservation ended, while another connection asks for one.
func TestALoginThatIsTakenMeanwhileIsNotReservedAgain(t *testing.T) {
	var shared lagging
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Minute}}, Shared: &shared})
	require.NoError(t, err)
	release, short, _ := l.Reserve(nil)
	require.Nil(t, short)
	ended := make(chan struct{})
	shared.during = func() {
		assert.NoError(t, l.Take(t.Context()))
		release()
		close(ended)
	}
	_, short, _ = l.Reserve(nil)
	<-ended
	require.NotNil(t, short)
}

// A Take with the context of a dial ends the reservation of that dial, also where several processes share the logins.
func TestASharedLoginEndsTheReservationOfItsDial(t *testing.T) {
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 2, Per: time.Minute}}, Shared: &lagging{}})
	require.NoError(t, err)
	release, short, _ := l.Reserve(nil)
	require.Nil(t, short)
	require.NoError(t, l.Take(context.WithValue(t.Context(), l, release)))
	_, short, _ = l.Reserve(nil)
	require.Nil(t, short, "one of two is left, and none is reserved")
}

func TestALoginIsStoredBeforeItMayBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		l := newLogins(t, store, budget.Window{N: 2, Per: time.Hour})
		store.during = func() { require.Equal(t, 2, l.Free(), "no lock is held") }
		require.NoError(t, l.Take(t.Context()))
		require.Len(t, store.times, 1)
		store.during, store.broken = nil, errors.New("disk full")
		err := l.Take(t.Context())
		require.ErrorIs(t, err, store.broken)
		require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(err))
		require.Equal(t, 1, l.Free(), "it was not made")
		store.broken = nil
		require.NoError(t, l.Take(t.Context()))
		require.Len(t, store.times, 2)
	})
}

func TestTheLoginsOfAProcessCountForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, day := budget.LoginFile(filepath.Join(t.TempDir(), "logins")), budget.Window{N: 3, Per: 24 * time.Hour}
		for range 3 { // a login in each process
			require.NoError(t, newLogins(t, file, day).Take(t.Context()))
			time.Sleep(time.Hour)
		}
		l := newLogins(t, file, day)
		refusedUntil(t, l, 21*time.Hour)
		require.NoError(t, l.Damage())
		time.Sleep(21 * time.Hour)
		require.NoError(t, l.Take(t.Context()))
		times, err := file.Load()
		require.NoError(t, err)
		require.Len(t, times, 3, "the file does not grow")
	})
}

// A process that ends slowly overlaps with the next one.
func TestLoginsOfOtherWriterCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := budget.LoginFile(filepath.Join(t.TempDir(), "logins"))
		day := budget.Window{N: 10, Per: 24 * time.Hour}
		total := 0
		take := func(l *budget.Logins, n int) {
			for range n {
				time.Sleep(time.Minute)
				if l.Take(t.Context()) == nil {
					total++
				}
			}
		}
		old := newLogins(t, file, day)
		take(old, 5)
		next := newLogins(t, file, day)
		take(next, 4)
		require.NoError(t, next.Damage())
		require.NoError(t, old.Damage(), "it has not looked since")
		take(old, 1)
		require.ErrorIs(t, old.Damage(), budget.ErrOtherWriter)
		take(next, 5)
		require.ErrorIs(t, next.Damage(), budget.ErrOtherWriter)
		require.ErrorIs(t, next.Take(t.Context()), budget.ErrOtherWriter)
		require.Equal(t, 10, total)
		take(newLogins(t, file, day), 5)
		require.Equal(t, 10, total)
		time.Sleep(24 * time.Hour)
		require.NoError(t, old.Damage())
		require.NoError(t, next.Damage())
		require.NoError(t, next.Take(t.Context()))
		require.NoError(t, next.Damage(), "the logins that are over are its own")
	})
}

// No other process has written, whatever happens to the record of this one.
func TestSingleWriterIsNotOtherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		l := newLogins(t, store, budget.Window{N: 3, Per: time.Hour})
		for i := range 12 {
			store.broken = nil
			if i%3 == 1 {
				store.broken = errBreak
			}
			_ = l.Take(t.Context()) // fails if the store does
			if store.broken != nil {
				store.times = append(store.times, time.Now()) // Save has failed after it had saved the record
			}
			if i == 7 {
				store.times = nil // the record was deleted
			}
			require.NoError(t, l.Damage())
			time.Sleep(25 * time.Minute)
		}
		store.load = errBreak
		require.ErrorIs(t, l.Take(t.Context()), errBreak)
	})
}

func TestErrorOfLoginThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		l := newLogins(t, store, budget.Window{N: 2, Per: time.Hour})
		store.broken = errors.New("no space left on device")
		require.EqualError(t, l.Take(t.Context()),
			"login not allowed, because it cannot be stored: save the record of logins: no space left on device")
		store.load = errors.New("no such device")
		require.EqualError(t, l.Take(t.Context()),
			"login not allowed, because it cannot be stored: load the record of logins: no such device")
	})
}

func TestAClockThatWasSetBackHoldsLoginsForOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		store := &memory{times: []time.Time{now.Add(100 * 24 * time.Hour), now.Add(-30 * time.Minute)}}
		l := newLogins(t, store, budget.Window{N: 2, Per: time.Hour})
		refusedUntil(t, l, 30*time.Minute)
		time.Sleep(40 * time.Minute)
		l = newLogins(t, store, budget.Window{N: 1, Per: time.Hour})
		refusedUntil(t, l, 20*time.Minute) // another restart does not begin the interval again
		require.Equal(t, 1, store.saves)
	})
}

func TestADamagedRecordIsFullForTheShortestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damage := errors.Join(budget.ErrDamaged, errors.New("line 3"))
		store := &memory{load: damage, times: []time.Time{time.Now().Add(-time.Hour)}}
		windows := []budget.Window{{N: 4, Per: 24 * time.Hour}, {N: 2, Per: 5 * time.Minute}}
		l := newLogins(t, store, windows...)
		require.ErrorIs(t, l.Damage(), damage)
		require.ErrorIs(t, refusedUntil(t, l, 5*time.Minute), damage)
		require.ErrorIs(t, l.BeforeDial(nil), damage)
		time.Sleep(2 * time.Minute)
		store.load = nil
		first := l
		l = newLogins(t, store, windows...)
		refusedUntil(t, l, 3*time.Minute) // another restart does not begin the wait again
		time.Sleep(3 * time.Minute)
		require.NoError(t, first.Damage())
		require.NoError(t, l.Damage())
		require.NoError(t, l.Take(t.Context()))
		refusedUntil(t, l, 23*time.Hour-5*time.Minute) // the login that was verified counts for the day
	})
}

func TestTakesOfManyGoroutinesAreNeverTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{during: func() { time.Sleep(time.Second) }}
		l := newLogins(t, store, budget.Window{N: 5, Per: time.Hour})
		var wg sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for range 20 {
			wg.Go(func() {
				if l.Take(t.Context()) == nil {
					mu.Lock()
					defer mu.Unlock()
					passed++
				}
			})
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second/2, errBreak)
		defer cancel()
		synctest.Wait()
		require.ErrorIs(t, l.Take(ctx), errBreak)
		wg.Wait()
		require.Equal(t, 5, passed)
		require.Equal(t, 5, len(store.times))
	})
}

var errBreak = errors.New("enough")

func TestADialWaitsForALoginUnlessTheSessionMayGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *budget.Logins
		require.Nil(t, none.BeforeDial(errBreak))
		for _, resumes := range []bool{false, true} {
			l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Minute}}, Resumes: resumes})
			require.NoError(t, err)
			require.Nil(t, l.BeforeDial(errBreak))
			require.NoError(t, l.Take(t.Context()))
			refused := l.Take(t.Context())
			require.Equal(t, time.Minute, time.Until(l.BeforeDial(refused).Next), "the login was refused")
			require.NoError(t, l.BeforeDial(refused).Err)
			if resumes {
				require.Nil(t, l.BeforeDial(errBreak))
			} else {
				require.ErrorIs(t, l.BeforeDial(errBreak), errBreak)
			}
		}
	})
}

// The caller may use its options again.
func TestLoginsCopiesItsWindows(t *testing.T) {
	windows := []budget.Window{{N: 2, Per: time.Hour}, {}}
	l := newLogins(t, nil, windows[:1]...)
	require.Zero(t, windows[1])
	windows[0].N = 1
	require.NoError(t, l.Take(t.Context()))
	require.NoError(t, l.Take(t.Context()))
	require.Error(t, l.Take(t.Context()))
}

// BeforeDial reserves no login. Release does nothing for a connection that got no reservation.
func TestOnlyAReservationIsReleased(t *testing.T) {
	l := newLogins(t, nil, budget.Window{N: 1, Per: time.Hour})
	require.Nil(t, l.BeforeDial(nil))
	require.Nil(t, l.BeforeDial(nil))
	release, short, _ := l.Reserve(nil)
	require.Nil(t, short)
	var ended [2]<-chan struct{}
	for i := range ended {
		var refused func()
		refused, short, ended[i] = l.Reserve(nil)
		require.NotNil(t, short)
		refused()
		requireOpen(t, ended[i])
	}
	require.NotNil(t, l.BeforeDial(nil), "the login is still reserved")
	release()
	for _, c := range ended {
		<-c
	}
	release, short, _ = l.Reserve(nil)
	require.Nil(t, short)
	require.NoError(t, l.Take(context.WithValue(t.Context(), l, release)))
	release()
	require.NotNil(t, l.BeforeDial(nil))

	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Hour}}, Resumes: true})
	require.NoError(t, err)
	release, short, _ = l.Reserve(nil)
	require.Nil(t, short)
	release() // nothing: the session may go on without a login
	require.NoError(t, l.Take(t.Context()))
	require.NotNil(t, l.BeforeDial(l.Take(t.Context())))
}

// A Take with the context of a dial ends the reservation of that dial.
func TestALoginEndsTheReservationOfItsDial(t *testing.T) {
	l := newLogins(t, nil, budget.Window{N: 2, Per: time.Minute})
	release, _, _ := l.Reserve(nil)
	require.NoError(t, l.Take(context.WithValue(t.Context(), l, release)))
	_, short, _ := l.Reserve(nil)
	require.Nil(t, short, "one of two is left, and none is reserved")
}

// shared is a SharedLogins with fixed answers.
type shared struct {
	taken bool
	err   error
	times []time.Time
	away  *budget.LoginError
}

func (s *shared) Take(context.Context, []budget.Window) (bool, error) { return s.taken, s.err }
func (s *shared) Recent() ([]time.Time, *budget.LoginError)           { return s.times, s.away }

// over is a context that ends while the logins are counted: it does not end a wait before that.
type over struct{ context.Context }

func (over) Done() <-chan struct{} { return nil }
func (over) Err() error            { return errBreak }

// Each answer of a SharedLogins, to a Take whose context goes on, and to one whose context has ended.
func TestATakeOfSharedLoginsSaysWhenTheNextMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, down, away := time.Now(), errors.New("down"), errors.New("away")
		soon := &budget.LoginError{Next: now.Add(5 * time.Second), Err: away}
		for name, c := range map[string]struct {
			shared
			wait time.Duration
			err  error // of the LoginError
			free int
		}{
			"taken":                       {shared{taken: true}, -1, nil, 1},
			"full":                        {shared{times: []time.Time{now.Add(-20 * time.Second)}}, 40 * time.Second, nil, 0},
			"full by another clock":       {shared{}, 0, nil, 1},
			"an error":                    {shared{err: down}, 0, down, 1},
			"an error after a login":      {shared{err: down, taken: true}, 0, down, 1},
			"an error, and full":          {shared{err: down, times: []time.Time{now}}, time.Minute, down, 0},
			"not to be counted":           {shared{away: soon}, 5 * time.Second, away, 0},
			"not to be counted, by whom?": {shared{err: down, away: &budget.LoginError{Next: soon.Next}}, 5 * time.Second, down, 0},
			"an error, and not counted":   {shared{err: down, away: soon}, 5 * time.Second, away, 0},
		} {
			l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Minute}}, Shared: &c.shared})
			require.NoError(t, err)
			require.Equal(t, c.free, l.Free(), name)
			ended := over{t.Context()}
			for _, ctx := range []context.Context{t.Context(), ended} {
				err := l.Take(ctx)
				refused, ok := errors.AsType[*budget.LoginError](err)
				switch {
				case c.wait < 0:
					require.NoError(t, err, name)
				case ctx == ended && c.shared.err != nil:
					require.Equal(t, errBreak, err, name)
				default:
					require.True(t, ok, name)
					require.Equal(t, c.wait, refused.Next.Sub(now), name)
					require.Equal(t, c.err, refused.Err, name)
					wait, _ := refused.RetryAfter()
					require.Equal(t, c.wait, wait, name)
				}
			}
			require.True(t, c.away == nil || c.away == soon || c.away.Err == nil, "the error of the SharedLogins is its own")
			if short := l.BeforeDial(nil); c.free == 0 {
				require.Equal(t, c.wait, short.Next.Sub(now), name)
			} else {
				require.Nil(t, short, name)
			}
		}
	})
}

func TestTheOptionsOfLoginsAreChecked(t *testing.T) {
	broken := errors.New("no permission")
	for text, o := range map[string]*budget.LoginsOptions{
		"option Windows of Logins is empty": {},
		"option Windows[1] of Logins":       {Windows: []budget.Window{{N: 1, Per: 1}, {N: -1, Per: 1}}},
		"option Windows[0] of Logins has":   {Windows: []budget.Window{{}}},
		"option Shared of Logins excludes":  {Windows: []budget.Window{{N: 1, Per: 1}}, Shared: &others{}, Now: time.Now},
		"Shared of Logins excludes Store":   {Windows: []budget.Window{{N: 1, Per: 1}}, Shared: &others{}, Store: &memory{}},
		"load the record of logins: no":     {Windows: []budget.Window{{N: 1, Per: 1}}, Store: &memory{load: broken}},
		"save the record of logins: no":     {Windows: []budget.Window{{N: 1, Per: 1}}, Store: &memory{load: budget.ErrDamaged, broken: broken}},
	} {
		_, err := budget.NewLogins(o)
		require.ErrorContains(t, err, text)
	}
	_, err := budget.NewLogins(nil)
	require.Error(t, err)
}

// roundingStore keeps seconds, as a column of a database may.
type roundingStore struct{ times []time.Time }

func (s *roundingStore) Load() ([]time.Time, error) { return slices.Clone(s.times), nil }

func (s *roundingStore) Save(times []time.Time) error {
	s.times = nil
	for _, at := range times {
		s.times = append(s.times, at.Round(time.Second))
	}
	return nil
}

// A login that the store has rounded is not one of another process.
func TestRoundedLoginsAreOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(t, new(roundingStore), budget.Window{N: 100, Per: 24 * time.Hour})
		for range 12 {
			time.Sleep(777 * time.Millisecond)
			require.NoError(t, l.Take(t.Context()))
		}
		require.Equal(t, 88, l.Free())
		require.NoError(t, l.Damage())
	})
}
