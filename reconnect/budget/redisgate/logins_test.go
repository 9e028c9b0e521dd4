package redisgate_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// This file tests Logins with a server in memory, in virtual time.

// newLogins returns the logins of one process, and the budget that is given to its connections.
func newLogins(t testing.TB, c redisgate.Client, windows ...budget.Window) (*redisgate.Logins, *budget.Logins) {
	t.Helper()
	shared, err := redisgate.NewLogins(c, &redisgate.LoginsOptions{Key: "account"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shared.Close()) })
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: windows, Shared: shared})
	require.NoError(t, err)
	return shared, l
}

// tookLogin returns a Logins that has taken one login.
func tookLogin(t testing.TB, c redisgate.Client, window budget.Window) *budget.Logins {
	t.Helper()
	_, l := newLogins(t, c, window)
	time.Sleep(pause)
	require.NoError(t, l.Take(t.Context()))
	return l
}

// pause is how long nobody may log in when Redis has forgotten.
const pause = 3 * time.Second

// refused requires that there is no login for so long, with some jitter, and returns the error.
func refused(t testing.TB, l *budget.Logins, wait time.Duration) *budget.LoginError {
	t.Helper()
	err, ok := errors.AsType[*budget.LoginError](l.Take(t.Context()))
	require.True(t, ok)
	require.InDelta(t, wait.Seconds(), time.Until(err.Next).Seconds(), 0.01)
	require.Equal(t, backoff.ReasonLogins, backoff.ReasonOf(err))
	return err
}

func TestTheProcessesShareTheirLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		minute := budget.Window{N: 3, Per: time.Minute}
		_, a := newLogins(t, s, minute)
		_, b := newLogins(t, s, minute, budget.Window{N: 4, Per: time.Hour})
		require.ErrorContains(t, refused(t, a, pause), "have given back what they know", "Redis may have forgotten")
		time.Sleep(pause)
		require.NoError(t, a.Take(t.Context()))
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, b.Free(), "it was asked since")
		require.NoError(t, b.Take(t.Context()))
		require.NoError(t, a.Take(t.Context()))
		refused(t, b, 50*time.Second)
		require.Equal(t, 50*time.Second, time.Until(b.BeforeDial(nil).Next).Round(time.Millisecond))
		time.Sleep(50*time.Second + time.Millisecond)
		require.NoError(t, b.Take(t.Context()))
		time.Sleep(time.Minute + time.Millisecond)
		require.NoError(t, a.Take(t.Context()), "it has the minute only")
		refused(t, b, time.Hour-2*time.Minute+10*time.Second)
		_, c := newLogins(t, s, budget.Window{N: 5, Per: time.Hour})
		require.Zero(t, c.Free(), "a process that starts knows them all")
	})
}

// The processes give back the logins that Redis has forgotten. A new process cannot log in before that.
func TestLoginsThatRedisForgetsAreGivenBack(t *testing.T) {
	windows := []budget.Window{{N: 2, Per: 10 * time.Minute}}
	for name, forget := range map[string]func(s *server){
		"restart":  func(s *server) { s.restart() },
		"FLUSHALL": func(s *server) { s.set((*server).flush) },
		"the newest login is evicted": func(s *server) {
			s.set(func(s *server) {
				set := s.sets["redisgate:{account}:logins"]
				var newest string
				for m := range set {
					if newest == "" || set[m] > set[newest] {
						newest = m
					}
				}
				delete(set, newest)
			})
		},
		"all logins are evicted": func(s *server) {
			s.set(func(s *server) { delete(s.sets, "redisgate:{account}:logins") })
		},
		"the state is evicted": func(s *server) {
			s.set(func(s *server) { delete(s.hashes, "redisgate:{account}:loginstate") })
		},
		"a clock that is set back": func(s *server) {
			s.restart()
			s.set(func(s *server) { s.offset = -30 * time.Minute })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				_, a := newLogins(t, s, windows...)
				time.Sleep(pause)
				for range 2 {
					require.NoError(t, a.Take(t.Context()))
				}
				time.Sleep(8 * time.Minute)
				forget(s)
				_, fresh := newLogins(t, s, windows...)
				for range 100 {
					require.Error(t, fresh.Take(t.Context()))
					require.Error(t, a.Take(t.Context()))
					time.Sleep(100 * time.Millisecond)
				}
				require.Zero(t, fresh.Free())
				require.NoError(t, errors.Join(waitForLogin(t, fresh), waitForLogin(t, a)))
			})
		})
	}
}

// waitForLogin takes a login as soon as the Logins says so.
func waitForLogin(t *testing.T, l *budget.Logins) error {
	for range 10 {
		short := l.BeforeDial(nil)
		if short == nil {
			return l.Take(t.Context())
		}
		time.Sleep(time.Until(short.Next))
	}
	return errors.New("the time never comes")
}

// Redis begins again with the data of a moment ago, without the two newest logins.
func TestNobodyLogsInAfterRedisCameBackWithOlderData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, a := newLogins(t, s, budget.Window{N: 2, Per: time.Hour})
		_, b := newLogins(t, s, budget.Window{N: 2, Per: time.Hour})
		time.Sleep(pause + 5*time.Second) // b knows what is saved here
		state, logins := "redisgate:{account}:loginstate", "redisgate:{account}:logins"
		var saved map[string]string
		s.set(func(s *server) { saved = maps.Clone(s.hashes[state]) })
		require.NoError(t, a.Take(t.Context()))
		require.NoError(t, a.Take(t.Context()))
		s.set(func(s *server) {
			s.hashes[state], s.run = saved, s.run+"+"
			delete(s.sets, logins)
		})
		refused(t, b, pause)
		time.Sleep(10 * time.Second)
		s.set(func(s *server) { require.Len(t, s.sets[logins], 2, "they were given back") })
		require.Error(t, b.Take(t.Context()))
	})
}

func TestNobodyDialsForALoginThatAServerWithAnEarlierClockRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := tookLogin(t, s, budget.Window{N: 1, Per: time.Minute})
		s.set(func(s *server) { s.offset = -time.Hour })
		time.Sleep(58 * time.Second)
		require.Error(t, l.Take(t.Context()))
		require.NotNil(t, l.BeforeDial(nil))
	})
}

// The clock of the server was wrong by a century when the login was made. The login counts for one
// window after the clock was set, also for a connection that waits meanwhile.
func TestLoginInFarFutureCountsForOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		minute := budget.Window{N: 2, Per: time.Minute}
		s.set(func(s *server) { s.offset = 100 * 365 * 24 * time.Hour })
		_, a := newLogins(t, s, minute)
		_, b := newLogins(t, s, minute)
		time.Sleep(pause)
		require.NoError(t, a.Take(t.Context()))
		s.set(func(s *server) { s.offset = 0 })
		time.Sleep(5 * time.Second)
		require.NoError(t, b.Take(t.Context()))
		require.Error(t, b.Take(t.Context()))
		time.Sleep(2 * time.Second) // until a asks again
		short := a.BeforeDial(nil)
		require.NotNil(t, short)
		require.LessOrEqual(t, time.Until(short.Next), time.Minute)
		time.Sleep(48 * time.Second)
		require.Error(t, b.Take(t.Context()))
		time.Sleep(12 * time.Second)
		require.NoError(t, waitForLogin(t, a))
		require.NoError(t, waitForLogin(t, b))
		s.set(func(s *server) {
			require.Len(t, s.sets["redisgate:{account}:logins"], 2, "the one of the future was removed")
		})
	})
}

// A server keeps the logins while its clock is far behind, such as after a start until it is set.
func TestLoginsSurviveClockFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := tookLogin(t, s, budget.Window{N: 1, Per: time.Hour})
		s.set(func(s *server) { s.offset = -20 * 365 * 24 * time.Hour })
		time.Sleep(30 * time.Minute)
		require.Error(t, l.Take(t.Context()))
		s.set(func(s *server) { s.offset = 0 })
		time.Sleep(29*time.Minute + 50*time.Second)
		require.Error(t, l.Take(t.Context()))
		time.Sleep(20 * time.Second)
		require.NoError(t, l.Take(t.Context()))
	})
}

// The clock of the server was an hour early only while the second process began.
func TestAClockThatIsRightAgainHoldsNoProcessBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, a := newLogins(t, s, budget.Window{N: 1, Per: time.Minute})
		time.Sleep(pause)
		require.NoError(t, a.Take(t.Context()))
		s.set(func(s *server) { s.offset = -time.Hour })
		_, b := newLogins(t, s, budget.Window{N: 1, Per: time.Minute})
		time.Sleep(10 * time.Second)
		s.set(func(s *server) { s.offset = 0 })
		time.Sleep(2 * time.Minute)
		require.Nil(t, a.BeforeDial(nil))
		require.Nil(t, b.BeforeDial(nil))
		require.NoError(t, b.Take(t.Context()))
	})
}

func TestCloseOfLoginsWaitsForATake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		shared, l := newLogins(t, s, budget.Window{N: 2, Per: time.Hour})
		time.Sleep(pause + 100*time.Millisecond) // no other question is under way
		s.set(func(s *server) { s.delay = 200 * time.Millisecond })
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			_ = l.Take(t.Context())
		}()
		synctest.Wait()
		require.NoError(t, shared.Close())
		synctest.Wait()
		select {
		case <-returned:
		default:
			require.Fail(t, "Take still uses the client")
		}
	})
}

// The client may repeat a question whose answer was lost. That takes one login only.
func TestAQuestionThatIsAskedTwiceTakesOneLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, l := newLogins(t, twice{s}, budget.Window{N: 5, Per: time.Hour})
		time.Sleep(pause)
		for range 5 {
			require.NoError(t, l.Take(t.Context()))
		}
		require.Error(t, l.Take(t.Context()))
	})
}

// twice asks each question twice.
type twice struct{ *server }

func (c twice) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	c.server.EvalSha(ctx, sha, keys, args...)
	return c.server.EvalSha(ctx, sha, keys, args...)
}

func TestWithoutRedisNobodyLogsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var mu sync.Mutex
		var told []error
		shared, err := redisgate.NewLogins(s, &redisgate.LoginsOptions{Key: "account", Away: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		}})
		require.NoError(t, err)
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 5, Per: time.Hour}}, Shared: shared})
		require.NoError(t, err)
		time.Sleep(pause)
		dials := 0
		conn := func(ctx context.Context) error {
			return reconnect.Run(ctx, func(context.Context) (net.Conn, error) {
				dials++
				a, b := net.Pipe()
				return a, b.Close()
			}, func(ctx context.Context, _ net.Conn, s *reconnect.Session) error {
				if err := s.Login(ctx); err != nil {
					return err
				}
				return io.EOF
			}, &reconnect.RunOptions{Logins: l, Trace: &reconnect.Trace{WaitStart: func(e reconnect.WaitStart) {
				if s.err != nil {
					require.ErrorContains(t, e.Cause, "the budget allows no login before")
					require.ErrorContains(t, e.Cause, "redisgate: the logins cannot be counted: no route")
				}
			}}})
		}
		s.set(func(s *server) { s.err = errors.New("no route") })
		require.ErrorIs(t, l.Take(t.Context()), s.err)
		require.Zero(t, l.Free())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.ErrorIs(t, conn(ctx), context.DeadlineExceeded)
		require.Zero(t, dials)
		s.set(func(s *server) { s.err = nil })
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.ErrorIs(t, conn(ctx), context.DeadlineExceeded)
		require.Equal(t, 5, dials)
		require.NoError(t, shared.Close())
		require.ErrorIs(t, l.Take(t.Context()), net.ErrClosed)
		require.ErrorIs(t, l.BeforeDial(nil), net.ErrClosed)
		require.Len(t, told, 2)
		require.ErrorContains(t, told[0], "no route")
		require.NoError(t, told[1])
	})
}

func TestAQuestionAboutLoginsThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, l := newLogins(t, s, budget.Window{N: 5, Per: time.Hour})
		time.Sleep(pause)
		hang := make(chan struct{})
		s.set(func(s *server) { s.hang = hang })
		require.ErrorContains(t, l.Take(t.Context()), "no answer in time")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(io.ErrClosedPipe)
		require.ErrorIs(t, l.Take(ctx), io.ErrClosedPipe)
		s.set(func(s *server) { s.hang = nil })
		close(hang)
		require.NoError(t, waitForLogin(t, l))
	})
}

// Three processes flap while Redis is restarted, emptied and away. The time is virtual, and what is counted is what
// reaches the server.
func TestAtMostSoManyLoginsWhateverRedisForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, per, long = 30, 10 * time.Minute, 40 * time.Minute
		s := newServer()
		var mu sync.Mutex
		var at []time.Time
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		var running sync.WaitGroup
		defer running.Wait()
		for range 3 {
			_, l := newLogins(t, s, budget.Window{N: n, Per: per})
			for range 3 {
				running.Go(func() {
					_ = reconnect.Run(ctx, func(context.Context) (net.Conn, error) {
						a, b := net.Pipe()
						return a, b.Close()
					}, func(ctx context.Context, _ net.Conn, s *reconnect.Session) error {
						if err := s.Login(ctx); err != nil {
							return err
						}
						mu.Lock()
						at = append(at, time.Now())
						mu.Unlock()
						s.Ready()
						time.Sleep(5 * time.Second)
						return io.EOF
					}, &reconnect.RunOptions{Logins: l})
				})
			}
		}
		for _, minutes := range []time.Duration{3, 7, 12, 13, 26} {
			running.Go(func() {
				time.Sleep(minutes * time.Minute)
				s.set(func(s *server) { s.err = errors.New("killed") })
				time.Sleep(minutes * time.Second)
				s.restart()
				time.Sleep(20 * time.Second)
				s.set((*server).flush)
			})
		}
		running.Wait()
		t.Logf("%d logins, most in %v: %d", len(at), per, mostIn(at, per))
		require.LessOrEqual(t, mostIn(at, per), n)
		require.Greater(t, len(at), 3*n, "forgetting costs little")
		require.True(t, slices.IsSortedFunc(at, time.Time.Compare))
	})
}

func TestBadOptionsOfLoginsAreNamed(t *testing.T) {
	for want, o := range map[string]*redisgate.LoginsOptions{
		"LoginsOptions.Key is empty":                             nil,
		`LoginsOptions.Key: "a}" contains a brace`:               {Key: "a}"},
		"LoginsOptions.Key is longer than 200 bytes: 201":        {Key: strings.Repeat("k", 201)},
		"LoginsOptions.Timeout: 1m0s is not between 1ms and 10s": {Key: "k", Timeout: time.Minute},
		"LoginsOptions.Timeout: -1ns is not between 1ms and 10s": {Key: "k", Timeout: -1},
	} {
		_, err := redisgate.NewLogins(newServer(), o)
		require.EqualError(t, err, "redisgate: "+want)
	}
	_, err := redisgate.NewLogins(nil, &redisgate.LoginsOptions{Key: "k"})
	require.EqualError(t, err, "redisgate: the client is nil")
	shared, _ := newLogins(t, newServer(), budget.Window{N: 1, Per: 1})
	_, err = budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: 1}}, Shared: shared, Now: time.Now})
	require.ErrorContains(t, err, "Shared of Logins excludes Store and Now")
}
