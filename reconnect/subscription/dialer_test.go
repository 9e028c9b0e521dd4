package subscription_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// openURL is open with a venue that takes the keys in the URL, up to most of them.
func (s *scene) openURL(most int, keys ...string) {
	s.t.Helper()
	s.dialer.Prepare = func(ctx context.Context, r *dialer.Request) error {
		if keys := subscription.KeysFrom[string](ctx); keys != nil {
			r.URL += "?keys=" + url.QueryEscape(strings.Join(keys, ","))
		}
		return nil
	}
	s.openWith(func(set *subscription.Set[string]) reconnect.Dialer { return set.Dialer(s.dialer, most) }, keys...)
	synctest.Wait()
}

func TestKeysInTheURLNeedNoMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.openURL(0, "a", "b")
		s.synced("a", "b")
		require.Zero(t, s.venue.Stats().Requests)
		s.set.Add("c")
		s.synced("a", "b", "c")
		s.set.Remove("a")
		s.synced("b", "c")
		require.Equal(t, 2, s.venue.Stats().Requests)
		s.lose()
		s.synced("b", "c")
		require.Equal(t, 2, s.venue.Stats().Requests)
	})
}

func TestWhatDoesNotFitIntoTheURLIsAskedForByMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.openURL(2, "a", "b", "c", "d")
		s.synced("a", "b", "c", "d")
		require.Equal(t, 1, s.venue.Stats().Requests)
		require.Equal(t, 2, s.venue.Stats().Peak)
		require.Zero(t, s.venue.Stats().Redundant)
	})
}

// Keys change while a dial is under way that has the old ones in its URL.
func TestAKeyThatIsRemovedDuringTheDialIsRemovedByMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.net.Fault(addr, conntest.Fault{AcceptDelay: time.Second})
		s.openURL(0, "a", "b")
		s.set.Replace("b", "c")
		time.Sleep(time.Second)
		s.synced("b", "c")
		require.Equal(t, 2, s.venue.Stats().Requests)
		require.Zero(t, s.venue.Stats().Redundant)
	})
}

// Two dials race with different keys. The keys of the connection that is opened count.
func TestOfTwoDialsTheKeysOfTheOneThatIsOpenedCount(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.net.Fault(addr, conntest.Fault{AcceptDelay: 20 * time.Second}, conntest.Fault{AcceptDelay: time.Second})
		s.openURL(0, "old")
		s.set.Replace("new")
		s.conn.Kick() // dials beside the first
		time.Sleep(30 * time.Second)
		s.synced("new")
		require.Zero(t, s.venue.Stats().Requests)
		require.Len(t, s.net.Dials(addr), 2)
	})
}

// One bad key in the URL costs one dial, and is found by messages then.
func TestABadKeyInTheURLCostsOneDial(t *testing.T) {
	inBubble(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *scene) {
		s.server.Next(s.venue.Door(s.server.Accept))
		s.so.OnReject = func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop }
		s.openURL(0, "a", "bad", "c")
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		s.holds("a", "c")
		require.Len(t, s.net.Dials(addr), 2)
		before := s.venue.Stats().Requests
		s.lose()
		s.holds("a", "c")
		require.Len(t, s.net.Dials(addr), 3)
		require.Equal(t, before, s.venue.Stats().Requests, "they are in the URL again, without the bad one")
	})
}

// A dial that our own machine failed, or whose name does not exist, says nothing about the keys in the URL.
func TestADialThatNoServerRefusedKeepsItsKeys(t *testing.T) {
	for _, err := range []error{&net.DNSError{Err: "no such host", IsNotFound: true}, os.NewSyscallError("connect", syscall.EACCES)} {
		inBubble(t, nil, func(t *testing.T, s *scene) {
			s.net.Fault(addr, conntest.Fault{Err: err})
			s.openURL(0, "a", "b")
			time.Sleep(time.Minute)
			s.net.Fault(addr)
			require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
			s.synced("a", "b")
			require.Zero(t, s.venue.Stats().Requests)
		})
	}
}

// If the URL is refused for another reason the dials try it ever more seldom.
func TestAURLThatIsAlwaysRefusedIsTriedSeldom(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		refused := 0
		s.openFunc(func(ctx context.Context) (conn.Conn, error) {
			if subscription.KeysFrom[string](ctx) != nil {
				refused++
				return nil, backoff.Slow(errors.New("414 URI Too Long"))
			}
			return s.dialer.Dial(ctx)
		}, "a")
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		for range 199 {
			s.lose()
			s.synced("a")
		}
		require.Equal(t, 9, refused, "before the sessions 1, 2, 4, 8, 16, 32, 64, 128 and 192")
	})
}

// openFunc is open with a dial function behind the Dialer of the Set.
func (s *scene) openFunc(dial reconnect.DialFunc, keys ...string) {
	s.t.Helper()
	s.openWith(func(set *subscription.Set[string]) reconnect.Dialer { return set.Dialer(dial, 0) }, keys...)
}

// A connection that cannot be compared cannot be known again.
func TestAConnectionMustBeComparable(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.openFunc(func(context.Context) (conn.Conn, error) {
			return odd{Conn: conntest.NewFake(nil), list: []int{1}}, nil
		}, "a")
		<-s.conn.Done()
		require.ErrorContains(t, s.conn.Err(), "cannot compare a subscription_test.odd")
	})
}

type odd struct {
	conn.Conn
	list []int
}

// plain is a Dialer without more methods, full one with all.
type plain struct{}

func (plain) Dial(context.Context) (conn.Conn, error) { return nil, errBad }

type full struct{ plain }

func (full) Validate() error                           { return errBad }
func (full) Host() string                              { return "host" }
func (full) DialTimeout(backoff.Attempt) time.Duration { return 7 * time.Second }

func TestTheDialerHasTheMethodsOfTheOneBelow(t *testing.T) {
	set, err := subscription.New(&subscription.Options[string]{Encode: encode, Answer: answer})
	require.NoError(t, err)
	type methods interface {
		Validate() error
		Host() string
		Endpoint() string
		DialTimeout(backoff.Attempt) time.Duration
	}
	d := set.Dialer(full{}, 0).(methods)
	require.Equal(t, errBad, d.Validate())
	require.Equal(t, "host", d.Host())
	require.Equal(t, "host", d.Endpoint(), "it has no Endpoint of its own")
	require.Equal(t, 7*time.Second, d.DialTimeout(backoff.Attempt{}))
	d = set.Dialer(plain{}, 0).(methods)
	require.NoError(t, d.Validate())
	require.Empty(t, d.Host())
	require.Empty(t, d.Endpoint())
	require.Equal(t, "ws://host/", set.Dialer(&dialer.WebSocket{URL: "ws://host/?secret"}, 0).(methods).Endpoint())
	require.Zero(t, d.DialTimeout(backoff.Attempt{}))
	_, err = reconnect.New(set.Dialer(nil, 0), nil)
	require.EqualError(t, err, "subscription: Set.Dialer needs a Dialer")
}

// An answer that was missing once is no refusal.
func TestAKeyThatWasNotAnsweredOnceIsInTheURL(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.openURL(5)
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		s.venue.Next(venueFault{Ignored: true}, venueFault{Ignored: true})
		s.set.Add("a")
		time.Sleep(11 * time.Second) // asked for the second time
		before := s.venue.Stats().Requests
		s.lose()
		s.synced("a")
		require.Equal(t, before, s.venue.Stats().Requests)
	})
}

// Refusals of dials with keys count only in a row.
func TestARefusedURLAfterOneThatWasTakenCostsOneDialAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		refuse := true // the next dial with keys
		var with []bool
		s.openFunc(func(ctx context.Context) (conn.Conn, error) {
			keys := subscription.KeysFrom[string](ctx) != nil
			if with = append(with, keys); keys && refuse {
				refuse = false
				return nil, backoff.Slow(errors.New("414 URI Too Long"))
			}
			return s.dialer.Dial(ctx)
		}, "a")
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		s.lose() // and the keys are taken
		refuse = true
		s.lose()
		s.lose()
		require.Equal(t, []bool{true, false, true, true, false, true}, with)
	})
}

// Nobody knows yet which key of a refused batch is to blame.
func TestTheKeysOfARefusedBatchAreNotInTheURL(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		var last []string
		s.openFunc(func(ctx context.Context) (conn.Conn, error) {
			last = subscription.KeysFrom[string](ctx)
			return s.dialer.Dial(ctx)
		})
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		s.venue.Next(venueFault{Err: "no"}, venueFault{Ignored: true}, venueFault{})
		s.set.Add("a", "b")
		synctest.Wait()
		s.lose()
		require.Equal(t, []string{"b"}, last, "the venue has agreed to it alone")
		s.holds("a") // by a message; this venue reads no URL
	})
}

func TestTheURLHasTheEssentialKeysFirst(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		var first []string
		dial := reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			first = append(first, subscription.KeysFrom[string](ctx)...)
			return s.dialer.Dial(ctx)
		})
		s.so.Essential = func(k string) bool { return k > "b" }
		s.openWith(func(set *subscription.Set[string]) reconnect.Dialer { return set.Dialer(dial, 2) }, "a", "b", "c", "d")
		require.NoError(t, s.conn.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, []string{"c", "d"}, first)
	})
}
