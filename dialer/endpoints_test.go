package dialer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// rounds is a dialer for endpoints a, b, c..., each of which answers as its
// function says. It notes which were asked.
type rounds struct {
	*endpoints
	says  map[string]func(ctx context.Context) *Error
	asked string
}

func newRounds(t *testing.T, says map[string]func(context.Context) *Error) *rounds {
	d := &WebSocket{Rand: rand.NewPCG(1, 2)}
	for i := range len(says) {
		d.URLs = append(d.URLs, "ws://"+string(rune('a'+i)))
	}
	p := d.setup()
	require.NoError(t, p.err)
	return &rounds{endpoints: p, says: says}
}

func (r *rounds) dial(ctx context.Context) (conn.Conn, *Error) {
	r.asked = ""
	c, err := r.endpoints.dial(ctx, func(ctx context.Context, u *url.URL, _ bool) (conn.Conn, *Error) {
		r.asked += u.Host
		e := r.says[u.Host](ctx)
		if e != nil {
			e.Endpoint = redacted(u)
			return nil, e
		}
		return conntest.NewFake(nil).Conn(), nil
	})
	e, _ := err.(*Error)
	return c, e
}

func refuses(context.Context) *Error { return &Error{Err: syscall.ECONNREFUSED} }
func accepts(context.Context) *Error { return nil }
func never(ctx context.Context) *Error {
	<-ctx.Done()
	return &Error{Err: context.Cause(ctx)}
}

func timesOut(context.Context) *Error {
	time.Sleep(10 * time.Second)
	return &Error{Err: &limitError{what: "too slow"}}
}

func status(code int, wait time.Duration) func(context.Context) *Error {
	return func(context.Context) *Error { return &Error{StatusCode: code, RetryAfter: wait} }
}

type says = map[string]func(context.Context) *Error

func TestARoundCostsTheWaitOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": refuses, "b": status(503, 0), "c": accepts})
		start := time.Now()
		for range 20 {
			_, e := r.dial(t.Context())
			require.Nil(t, e)
			require.True(t, strings.HasSuffix(r.asked, "c"), r.asked)
		}
		require.Zero(t, time.Since(start))
	})
}

func TestTheOrderIsShuffledForEachRound(t *testing.T) {
	r := newRounds(t, says{"a": refuses, "b": refuses, "c": refuses})
	seen := map[string]int{}
	for range 600 {
		r.dial(t.Context())
		seen[r.asked]++
	}
	require.Len(t, seen, 6)
	for order, n := range seen {
		require.InDelta(t, 100, n, 40, order)
	}
}

func TestAnInterruptedRoundGoesOnAfterTheLastEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			d := newRounds(t, says{"a": never, "b": never, "c": accepts})
			d.rand = rand.New(rand.NewPCG(seed, 0))
			asked := ""
			for !strings.HasSuffix(asked, "c") {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				d.dial(ctx)
				cancel()
				asked += d.asked
			}
			require.LessOrEqual(t, len(asked), 3, asked)
		}
	})
}

func TestLimitsAreForEachEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": timesOut, "b": timesOut})
		start := time.Now()
		_, e := r.dial(t.Context())
		require.Equal(t, 20*time.Second, time.Since(start))
		require.Len(t, e.Endpoints, 2)
	})
}

// limited returns the verdict on a response that refuses the caller.
func limited(c backoff.Class, wait time.Duration) backoff.Verdict {
	return backoff.Verdict{Class: c, Caller: true, RetryAfter: wait}
}

// The rule of WebSocket.Dial for the error that decides.
func TestTheMostHopefulEndpointDecides(t *testing.T) {
	for name, c := range map[string]struct {
		says says
		want backoff.Verdict
	}{
		"gone and refused":      {says{"a": status(410, 0), "b": refuses}, backoff.Verdict{Class: backoff.ClassRetry, Refused: true}},
		"gone and not found":    {says{"a": status(410, 0), "b": status(404, 0)}, backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}},
		"all gone":              {says{"a": status(410, 0), "b": status(410, 0)}, backoff.Verdict{Class: backoff.ClassStop}},
		"overload and refused":  {says{"a": status(503, time.Minute), "b": refuses}, backoff.Verdict{Class: backoff.ClassOverload}},
		"401 and refused":       {says{"a": status(401, 0), "b": refuses}, backoff.Verdict{Class: backoff.ClassRetry, Refused: true}},
		"all with retry-after":  {says{"a": status(503, time.Minute), "b": status(504, time.Second)}, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Second}},
		"limited and not found": {says{"a": status(429, time.Minute), "b": status(404, 0)}, limited(backoff.ClassOverload, 0)},
		"limited and a 500":     {says{"a": status(403, time.Minute), "b": status(500, time.Minute)}, backoff.Verdict{Class: backoff.ClassRetry, RetryAfter: time.Minute}},
		"all limited":           {says{"a": status(403, time.Minute), "b": status(403, time.Second)}, limited(backoff.ClassSlow, time.Second)},
		"gone with retry-after": {says{"a": status(410, time.Minute), "b": status(410, time.Minute)}, backoff.Verdict{Class: backoff.ClassStop}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, e := newRounds(t, c.says).dial(t.Context())
				require.Equal(t, c.want, backoff.Classify(e))
			})
		})
	}
}

func TestARoundHasTheErrorOfEachEndpoint(t *testing.T) {
	r := newRounds(t, says{"a": status(503, 7*time.Second), "b": refuses})
	_, e := r.dial(t.Context())
	require.Len(t, e.Endpoints, 2)
	require.Equal(t, "ws://a", e.Endpoint)
	want := "dial 2 endpoints: ws://a: 503 Service Unavailable (retry after 7s); ws://b: connection refused"
	if r.asked == "ba" {
		want = "dial 2 endpoints: ws://b: connection refused; ws://a: 503 Service Unavailable (retry after 7s)"
	}
	require.EqualError(t, e, want)
}

func TestRetryAfterKeepsOneEndpointOutOfTheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": status(503, time.Minute), "b": refuses})
		r.dial(t.Context())
		time.Sleep(59 * time.Second)
		_, e := r.dial(t.Context())
		require.Equal(t, "b", r.asked)
		require.Contains(t, e.Error(), "ws://a: 503 Service Unavailable (retry after 1s)")
		time.Sleep(time.Second)
		r.dial(t.Context())
		require.Len(t, r.asked, 2)
	})
}

func TestEndpointsThatAllAskedToWaitAreDialedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": status(503, time.Minute), "b": status(503, time.Hour)})
		r.dial(t.Context())
		r.dial(t.Context())
		require.Len(t, r.asked, 2)
	})
}

func TestAnEndpointIsForgivenWhenItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": status(503, time.Minute)})
		r.dial(t.Context())
		r.says["a"] = accepts
		_, e := r.dial(t.Context())
		require.Nil(t, e)
		require.Zero(t, r.states[0])
	})
}

// For one 401 credentials are made anew once, whatever comes after it; but a dial that
// was cancelled, before it began or on its way, is no answer.
func TestARefusalAsksForNewCredentialsOnce(t *testing.T) {
	for name, answer := range map[string]*Error{"refused": {Err: syscall.ECONNREFUSED}, "403": {StatusCode: 403}, "accepted": nil} {
		e := (&WebSocket{URL: "ws://a"}).setup()
		require.NoError(t, e.err)
		says := &Error{StatusCode: 401, refused: true}
		var refresh []bool
		dial := func(ctx context.Context, _ *url.URL, r bool) (conn.Conn, *Error) {
			refresh = append(refresh, r)
			if says == nil {
				return conntest.NewFake(nil).Conn(), nil
			}
			return nil, says
		}
		e.dial(t.Context(), dial)
		over, cancel := context.WithCancel(t.Context())
		e.dial(over, func(_ context.Context, _ *url.URL, r bool) (conn.Conn, *Error) {
			require.True(t, r)
			cancel()
			return nil, &Error{Err: over.Err()}
		})
		e.dial(over, dial)
		says = answer
		e.dial(t.Context(), dial)
		e.dial(t.Context(), dial)
		require.Equal(t, []bool{false, true, false}, refresh, name)
	}
}

func TestPrepareThatFailsEndsTheRound(t *testing.T) {
	calls := 0
	d := &WebSocket{URLs: []string{"ws://127.0.0.1:1", "ws://127.0.0.1:2"}, Prepare: func(context.Context, *Request) error {
		calls++
		return backoff.Permanent(fmt.Errorf("no account"))
	}}
	_, err := d.Dial(t.Context())
	require.ErrorContains(t, err, "prepare: no account")
	require.Equal(t, backoff.ClassStop, backoff.Classify(err).Class)
	require.Equal(t, 1, calls)
}

// A dialer may be shared, and one caller's answer is not another's.
func TestConcurrentDialsThatGetRetryAfter(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Status(429, conntest.RetryAfter("7")))
		var dials sync.WaitGroup
		for range 200 {
			dials.Go(func() { v.dialer.Dial(t.Context()) })
		}
		dials.Wait()
		require.Len(t, v.network.Dials(serverAddr), 200)
	})
}

// numbers returns each numeric field of options, those of the structs inside included.
func numbers(options reflect.Value, name string) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	for i := range options.NumField() {
		field := options.Type().Field(i)
		if !field.IsExported() || field.Type.PkgPath() == "net/netip" {
			continue
		}
		switch v := options.Field(i); {
		case v.CanInt() || v.CanUint() || v.CanFloat():
			found[name+field.Name] = v
		case v.Kind() == reflect.Struct:
			for inner, w := range numbers(v, name+field.Name+".") {
				found[inner] = w
			}
		}
	}
	return found
}

// Every number is taken, or refused by name; and a dial with it ends.
func TestEveryNumericOptionIsTakenOrRefusedByName(t *testing.T) {
	for name, options := range map[string]func(*conntest.Network) any{
		"WebSocket": func(n *conntest.Network) any {
			return &WebSocket{URL: "ws://" + serverAddr, DialContext: n.DialContext}
		},
		"Framed": func(n *conntest.Network) any {
			return &Framed{Address: serverAddr, Framer: conn.Lines{}, DialContext: n.DialContext}
		},
		"Dialer": func(n *conntest.Network) any {
			return &Dialer{DialOnce: n.DialContext, Policy: backoff.Limit(nil, 1, 0)}
		},
	} {
		fields := numbers(reflect.ValueOf(options(nil)).Elem(), "")
		require.GreaterOrEqual(t, len(fields), 6, name)
		for field, v := range fields {
			for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
				if v.CanUint() && v.OverflowUint(uint64(n)) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					network := new(conntest.Network)
					defer conntest.NewServer(network, serverAddr, nil).Close()
					o := options(network)
					v := numbers(reflect.ValueOf(o).Elem(), "")[field]
					if v.CanUint() {
						v.SetUint(uint64(n))
					} else {
						v.SetInt(n)
					}
					if err := o.(interface{ Validate() error }).Validate(); err != nil {
						require.NotZero(t, n, "the default of %s is refused", field)
						require.Regexp(t, lastName(field)+"( is|:)", err.Error())
						return
					}
					for _, fault := range []conntest.Fault{{}, {Hang: true}} {
						network.Fault(serverAddr, fault)
						dialForADay(t, o)
					}
				})
			}
		}
	}
}

// dialForADay dials under a context that ends after a day.
func dialForADay(t *testing.T, o any) {
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	start := time.Now()
	switch d := o.(type) {
	case *Dialer:
		if c, err := d.DialContext(ctx, "tcp", serverAddr); err == nil {
			c.Close()
		}
	case dials:
		if c, err := d.Dial(ctx); err == nil {
			c.CloseNow()
		}
		timeout := o.(interface {
			DialTimeout(backoff.Attempt) time.Duration
		}).DialTimeout
		for _, n := range []time.Duration{0, 1, -1, math.MaxInt64, math.MinInt64} {
			require.Positive(t, timeout(backoff.Attempt{Connect: n, Handshake: n}))
		}
	}
	require.LessOrEqual(t, time.Since(start), 24*time.Hour)
}

func lastName(field string) string {
	for i := len(field) - 1; i >= 0; i-- {
		if field[i] == '.' {
			return field[i+1:]
		}
	}
	return field
}

func TestLimitsTogetherDoNotOverflow(t *testing.T) {
	most := backoff.Attempt{Connect: math.MaxInt64, Handshake: math.MaxInt64}
	require.Equal(t, time.Duration(math.MaxInt64), (&WebSocket{}).DialTimeout(most))
	require.Equal(t, time.Duration(math.MaxInt64), (&Framed{TLS: tlsDefaults(nil), HandshakeTimeout: 1}).DialTimeout(most))
	require.Equal(t, 46*time.Second, (&WebSocket{}).DialTimeout(backoff.Attempt{Connect: -1, Handshake: math.MinInt64}))
}
