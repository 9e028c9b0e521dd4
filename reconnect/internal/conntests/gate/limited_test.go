package gate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of a server that rejects some of the accounts of a process, whose connections share a Gate.

// dialed is one dial as the server sees it.
type dialed struct {
	account int
	at      time.Duration // since the accounts were opened
	number  int           // of the dial, from 1
}

// rejection is the response to a dial, or zero if the server accepts it.
type rejection struct {
	status int
	wait   int // Retry-After, in seconds
}

// accounts are 100 Conns with an account each, and what has become of their dials.
type accounts struct {
	mu       sync.Mutex // guards what follows
	dials    int
	rejected int
	ready    [100]time.Duration // when each was ready first, or 0
}

// openAccounts opens the Conns together, and returns them when a time has passed. reject is not called by two
// goroutines at the same time. At drop, if that is not zero, the server closes all connections.
func openAccounts(t *testing.T, watch, drop time.Duration, reject func(dialed) rejection) *accounts {
	a := new(accounts)
	network := new(conntest.Network)
	began := time.Now()
	serve := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		if left := drop - time.Since(began); left > 0 {
			limited, cancel := context.WithTimeout(ctx, left)
			defer cancel()
			ctx = limited
		}
		conntest.Discard(ctx, c, nil)
	}
	server := conntest.NewServer(network, "host.test:80", serve)
	defer server.Close()
	server.Next(func(w http.ResponseWriter, r *http.Request) {
		if no := a.dial(r.URL.Query().Get("account"), time.Since(began), reject); no.status > 0 {
			conntest.Status(no.status, conntest.RetryAfter(strconv.Itoa(no.wait)))(w, r)
			return
		}
		server.Accept(w, r)
	})
	gate, err := budget.NewGate(&budget.GateOptions{Rand: rand.NewPCG(1, 0)})
	require.NoError(t, err)
	for i := range a.ready {
		d := &dialer.WebSocket{
			URL: fmt.Sprintf("ws://host.test/?account=%d", i),
			DialContext: func(ctx context.Context, net, addr string) (net.Conn, error) {
				time.Sleep(20 * time.Millisecond) // a round trip
				return network.DialContext(ctx, net, addr)
			},
		}
		c, err := reconnect.New(d, &reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {},
			Liveness:  reconnect.Liveness{Limit: -1},
			Run: reconnect.RunOptions{
				Gate:  gate,
				Rand:  rand.NewPCG(2, uint64(i)),
				Trace: &reconnect.Trace{SessionReady: func(*reconnect.Session) { a.readyAt(i, time.Since(began)) }},
			},
		})
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		synctest.Wait() // so that they come to the Gate in order
	}
	time.Sleep(watch)
	return a
}

// dial counts a dial, and returns the response to it.
func (a *accounts) dial(account string, at time.Duration, reject func(dialed) rejection) rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dials++
	i, _ := strconv.Atoi(account)
	no := reject(dialed{i, at, a.dials})
	if no.status > 0 {
		a.rejected++
	}
	return no
}

func (a *accounts) readyAt(i int, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready[i] == 0 {
		a.ready[i] = at
	}
}

// times returns when the accounts were ready first, in order, except those that never were.
func (a *accounts) times() (list []time.Duration) {
	for _, at := range a.ready {
		if at > 0 {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// While more than a burst of rejected accounts come first, each costs the others 5 s.
func TestLimitedAccountsLeaveOthersAlone(t *testing.T) {
	for name, test := range map[string]struct {
		limited func(account int) bool
		within  time.Duration
	}{
		"one":               {func(i int) bool { return i == 0 }, time.Second},
		"ten":               {func(i int) bool { return i%10 == 0 }, time.Second},
		"ten, first":        {func(i int) bool { return i < 10 }, time.Second},
		"more than a burst": {func(i int) bool { return i < 50 }, 101 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := openAccounts(t, 20*time.Minute, 0, func(d dialed) rejection {
					if test.limited(d.account) {
						return rejection{429, 60}
					}
					return rejection{}
				})
				for i, at := range a.ready {
					if !test.limited(i) {
						require.NotZero(t, at, "account %d", i)
						require.Less(t, at, test.within, "account %d", i)
					}
				}
				times := a.times()
				t.Logf("the last of %d after %v, %d dials rejected", len(times), times[len(times)-1], a.rejected)
			})
		})
	}
}

// The server limits the address of the process. Without a Gate it rejects 635 dials, and 627 if rejected callers never
// hold the others.
func TestLimitedAddressIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		period, dials := time.Duration(-1), 0
		a := openAccounts(t, 20*time.Minute, 0, func(d dialed) rejection {
			if p := d.at / (10 * time.Second); p != period {
				period, dials = p, 0
			}
			if dials++; dials > 5 {
				return rejection{429, 10}
			}
			return rejection{}
		})
		times := a.times()
		require.Len(t, times, 100)
		t.Logf("the last after %v, %d dials rejected", times[99], a.rejected)
		require.Less(t, times[99], 4*time.Minute, "200 s are possible")
		require.Less(t, a.rejected, 240)
	})
}

// A host that lets others through is not down, although it has asked one dial to wait for an hour.
func TestLongRetryAfterOfOneHoldsOthersShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openAccounts(t, 20*time.Minute, 0, func(d dialed) rejection {
			if d.account == 5 {
				return rejection{503, 3600}
			}
			return rejection{}
		})
		times := a.times()
		require.Len(t, times, 99)
		t.Logf("the last after %v, %d dials rejected", times[98], a.rejected)
		require.Less(t, times[98], 12*time.Second)
		require.Equal(t, 1, a.rejected)
	})
}

// Of two servers behind one address one is down.
func TestLongRetryAfterOfEverySecondDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openAccounts(t, 50*time.Minute, 0, func(d dialed) rejection {
			if d.number%2 == 0 {
				return rejection{503, 3600}
			}
			return rejection{}
		})
		times := a.times()
		require.GreaterOrEqual(t, len(times), 50, "each of the others waits for its own hour")
		t.Logf("half of the accounts after %v, %d dials rejected", times[49], a.rejected)
		require.Less(t, times[49], 10*time.Minute)
	})
}

func TestAnnouncedMaintenanceIsSeldomProbed(t *testing.T) {
	const until = 2 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		a := openAccounts(t, 6*time.Hour, time.Minute, func(d dialed) rejection {
			if d.at >= time.Minute && d.at < until {
				return rejection{503, 3600}
			}
			return rejection{}
		})
		require.Len(t, a.times(), 100)
		require.Equal(t, 200, a.dials-a.rejected, "all are back")
		t.Logf("%d dials rejected", a.rejected)
		require.LessOrEqual(t, a.rejected, 10)
	})
}

// A login that is limited, as by an HTTP request in OnSession, is about its account.
func TestLimitedLoginIsRefusalOfCaller(t *testing.T) {
	forbidden := backoff.RetryAfter(scene.Answered(403), time.Hour)
	for name, test := range map[string]struct {
		open, peer error
		want       backoff.Verdict
	}{
		"429":                   {scene.Answered(429), nil, backoff.Verdict{Class: backoff.ClassOverload, Caller: true}},
		"403 and a Retry-After": {forbidden, nil, backoff.Verdict{Caller: true}},
		"a lost connection":     {nil, forbidden, backoff.Verdict{Class: backoff.ClassRetry}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				v := &scene.VerdictGate{}
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					if op.Session != s.Session {
						return nil
					}
					if test.open != nil {
						return test.open
					}
					_, err := op.Read()
					return err
				}
				o.Run.Gate, o.Run.Host = v, "h"
				_, d := s.Down(&o)
				v.List = nil
				peer := d.Accept()
				if test.peer != nil {
					peer.Fail(test.peer)
				}
				synctest.Wait()
				require.Equal(t, []backoff.Verdict{test.want}, v.List)
			})
		})
	}
}
