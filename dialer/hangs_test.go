package dialer

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// none avoids no address.
func none(string) bool { return false }

func TestAPlaceIsAvoidedWhileAHandshakeHangsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hangs
		first := h.begin("a", "b")
		time.Sleep(2 * time.Second)
		second := h.begin("a")
		require.False(t, h.at("a"), "it is too early to say")
		time.Sleep(time.Second)
		require.True(t, h.at("a"))
		require.True(t, h.at("b"))
		require.False(t, h.at("c"))
		first(backoff.ErrHung, backoff.ErrHung) // given up
		second(nil, errors.New("reset"))        // an answer, of a kind
		require.False(t, h.at("a"), "it has answered since")
		require.True(t, h.at("b"))
		time.Sleep(10 * time.Minute)
		require.False(t, h.at("b"), "not for ever")
		require.Empty(t, h.places)
	})
}

// The addresses of a host may change every minute, for years.
func TestPlacesThatAreNeverDialedAgainAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hangs
		for i := range 100 {
			h.begin(strconv.Itoa(i))(backoff.ErrHung, backoff.ErrHung)
			time.Sleep(time.Minute)
		}
		require.LessOrEqual(t, len(h.places), 10)
		require.True(t, h.at("99"))
	})
}

func TestOnlyATimeThatRanOutShowsThatAHandshakeHung(t *testing.T) {
	for ended, want := range map[error]bool{
		nil: false, context.Canceled: false, net.ErrClosed: false,
		backoff.ErrHung: true, &limitError{what: "late"}: true,
	} {
		var h hangs
		h.begin("a")(ended, errors.New("failed"))
		require.Equal(t, want, h.at("a"), ended)
	}
}

// halfDead is a name with two addresses on one port: the first accepts and never
// answers, the second is a WebSocket server. It returns the URL.
func halfDead(t *testing.T, dead, alive string) (string, *names) {
	l, err := net.Listen("tcp", net.JoinHostPort(alive, "0"))
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			c.Read(r.Context())
		}
	})}
	go server.Serve(l) // ends with the server
	t.Cleanup(func() { server.Close() })
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	silent, err := net.Listen("tcp", net.JoinHostPort(dead, port)) // its backlog accepts
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { silent.Close() })
	return "ws://feed.test:" + port, &names{addrs: addrs(dead, alive)}
}

// The family that the resolver puts first accepts and never answers: one dial is lost.
func TestAnAddressWhereAHandshakeHungIsTriedLast(t *testing.T) {
	for _, family := range [][2]string{{"::1", "127.0.0.1"}, {"127.0.0.2", "127.0.0.1"}} {
		at, resolver := halfDead(t, family[0], family[1])
		d := &WebSocket{URL: at, Proxy: http.ProxyURL(nil), TCP: TCPOptions{LookupNetIP: resolver.LookupNetIP}, HandshakeTimeout: 300 * time.Millisecond}
		failed := 0
		for range 10 {
			c, err := d.Dial(t.Context())
			if err != nil {
				require.ErrorContains(t, err, "handshake not answered")
				failed++
				continue
			}
			require.NoError(t, c.CloseNow())
		}
		require.LessOrEqual(t, failed, 1)
	}
}

// That a round was interrupted is no reason to go to an endpoint where a handshake has hung since.
func TestARoundThatGoesOnAvoidsAHandshakeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": never, "b": never, "c": never})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.dial(ctx)
		next := r.urls[r.resume[0]]
		r.hangs.begin(endpointPlace(next))(backoff.ErrHung, backoff.ErrHung)
		r.says = says{"a": refuses, "b": refuses, "c": refuses}
		r.dial(t.Context())
		require.Len(t, r.asked, 3)
		require.Equal(t, next.Host, r.asked[2:])
	})
}

// Promise of the supervisor: a second dial beside a handshake that hangs goes elsewhere.
func TestADialBesideAHandshakeThatHangsGoesToAnotherEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &WebSocket{URLs: []string{"ws://a", "ws://b"}}
		e := d.setup()
		require.NoError(t, e.err)
		asked := ""
		dial := func(ctx context.Context, u *url.URL, _ bool) (conn.Conn, *Error) {
			asked += u.Host
			return conntest.NewFake(nil).Conn(), nil
		}
		end := e.hangs.begin(endpointPlace(e.urls[0]))
		time.Sleep(hangAfter)
		for range 10 {
			_, err := e.dial(t.Context(), dial)
			require.NoError(t, err)
		}
		require.Equal(t, "bbbbbbbbbb", asked)
		end(nil, nil)
		for range 10 {
			_, err := e.dial(t.Context(), dial)
			require.NoError(t, err)
		}
		require.Contains(t, asked, "a")
	})
}

// Two endpoints of which one drops packets, and a session is lost every 3 minutes for 4 hours.
func TestDeadEndpointIsTriedOnceInTenMinutes(t *testing.T) {
	for name, dead := range map[string]conntest.Fault{
		"our limit":       {Hang: true},
		"limit of a user": {Delay: 10 * time.Second, Err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := new(conntest.Network)
				defer conntest.NewServer(n, "a.test:80", nil).Close()
				defer conntest.NewServer(n, "b.test:80", nil).Close()
				n.Fault("a.test:80", conntest.Fault{}, dead)
				d := &WebSocket{
					URLs:        []string{"ws://a.test/", "ws://b.test/"},
					DialContext: n.DialContext,
					Rand:        rand.NewPCG(1, 2),
				}
				last, waits := time.Time{}, 0
				for range 80 {
					begun := time.Now()
					c, err := d.Dial(t.Context())
					require.NoError(t, err)
					if time.Since(begun) > 0 {
						require.GreaterOrEqual(t, time.Since(last), forgetHang)
						last, waits = time.Now(), waits+1
					}
					require.NoError(t, c.CloseNow())
					time.Sleep(3 * time.Minute)
				}
				require.Greater(t, waits, 5, "it is tried again")
			})
		})
	}
}

// A server with a full queue takes long to connect, or answers 503. It is dialed as often as the other.
func TestFullEndpointIsNotAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		full := conntest.NewServer(n, "a.test:80", nil)
		defer full.Close()
		defer conntest.NewServer(n, "b.test:80", nil).Close()
		n.Fault("a.test:80", conntest.Fault{}, conntest.Fault{Delay: 15 * time.Second})
		d := &WebSocket{
			URLs:        []string{"ws://a.test/", "ws://b.test/"},
			DialContext: n.DialContext,
			Rand:        rand.NewPCG(1, 2),
		}
		for range 40 {
			full.Next(conntest.Status(503, nil), full.Accept)
			c, err := d.Dial(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.CloseNow())
			require.False(t, d.endpoints.hangs.at("ws://a.test:80"))
			// the end of a caller says nothing of an endpoint
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if c, err := d.Dial(ctx); err == nil {
				require.NoError(t, c.CloseNow())
			}
			cancel()
			require.False(t, d.endpoints.hangs.at("ws://a.test:80"))
		}
		require.InDelta(t, 40, len(n.Dials("a.test:80")), 10)
	})
}

// twoEndpoints is a WebSocket for a.test, which has these faults, and b.test.
type twoEndpoints struct {
	*WebSocket
	network *conntest.Network
	a       *conntest.Server
}

func newTwoEndpoints(t *testing.T, faultsOfA ...conntest.Fault) *twoEndpoints {
	n := new(conntest.Network)
	a, b := conntest.NewServer(n, "a.test:80", nil), conntest.NewServer(n, "b.test:80", nil)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	n.Fault("a.test:80", faultsOfA...)
	return &twoEndpoints{
		WebSocket: &WebSocket{
			URLs:        []string{"ws://a.test/", "ws://b.test/"},
			DialContext: n.DialContext,
			Rand:        rand.NewPCG(1, 2),
		},
		network: n,
		a:       a,
	}
}

// dial dials, and returns how long that took and whether a.test was asked.
func (d *twoEndpoints) dial(t *testing.T) (took time.Duration, asked bool) {
	start, before := time.Now(), len(d.network.Dials("a.test:80"))
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.CloseNow())
	return time.Since(start), len(d.network.Dials("a.test:80")) > before
}

// Two endpoints of which one has always dropped packets, and 40 outages, 5 minutes apart.
func TestDeadEndpointDelaysOtherBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTwoEndpoints(t, conntest.Fault{Hang: true})
		late := 0
		for range 40 {
			took, asked := d.dial(t)
			require.LessOrEqual(t, took, briefConnect)
			if asked {
				require.Equal(t, briefConnect, took)
				late++
			}
			time.Sleep(5 * time.Minute)
		}
		require.Greater(t, late, 5, "it is asked again")
	})
}

// An endpoint dies, and answers again after an hour, from then on slowly.
func TestEndpointThatAnswersAgainHasFullLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTwoEndpoints(t)
		dialUntilAsked := func(want time.Duration) {
			for range 40 {
				if took, asked := d.dial(t); asked {
					require.Equal(t, want, took)
					return
				}
			}
			require.Fail(t, "not asked")
		}
		dialUntilAsked(0)
		d.network.Fault("a.test:80", conntest.Fault{Hang: true})
		for _, want := range []time.Duration{backoff.DefaultConnect, briefConnect, briefConnect} {
			dialUntilAsked(want)
			time.Sleep(forgetHang)
		}
		d.network.Fault("a.test:80", conntest.Fault{})
		dialUntilAsked(0)
		d.network.Fault("a.test:80", conntest.Fault{Delay: 5 * time.Second})
		count := 0
		for range 100 {
			if took, asked := d.dial(t); asked {
				require.Equal(t, 5*time.Second, took)
				count++
			}
		}
		require.InDelta(t, 50, count, 15)
	})
}

func fails(err error) func(context.Context) *Error {
	return func(context.Context) *Error { return &Error{Err: err} }
}

// A refusal is an answer. A reset does not show whether a handshake would be answered.
func TestAnswerEndsShortLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRounds(t, says{"a": accepts})
		tooSlow := &limitError{what: "too slow"}
		for name, step := range map[string]struct {
			answer func(context.Context) *Error
			before bool
			silent bool
		}{
			"accepted":              {accepts, true, false},
			"503":                   {status(503, 0), true, false},
			"reset":                 {refuses, true, true},
			"reset after an answer": {refuses, false, false},
			"too slow":              {timesOut, false, true},
			"proxy too slow":        {fails(&ProxyError{Err: tooSlow}), false, true},
			"Prepare too slow":      {fails(&prepareError{cause{"", tooSlow}}), false, false},
			"limit of a user":       {fails(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), false, true},
		} {
			r.states[0].silent, r.says["a"] = step.before, step.answer
			r.dial(t.Context())
			require.Equal(t, step.silent, r.states[0].silent, name)
		}
	})
}

// The last endpoint that is not avoided has the full limit, and so has a lone one.
func TestLimitIsShortWhileAnotherEndpointIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			urls    []string
			arrange func(e *endpoints)
			want    time.Duration
		}{
			"lone": {[]string{"ws://a"}, func(*endpoints) {}, backoff.DefaultConnect},
			"two":  {[]string{"ws://a", "ws://b"}, func(*endpoints) {}, briefConnect + backoff.DefaultConnect},
			"one is avoided": {
				[]string{"ws://a", "ws://b"},
				func(e *endpoints) { e.hangs.unreachable("ws://a:80") },
				2 * backoff.DefaultConnect,
			},
			"one asked us to wait": {
				[]string{"ws://a", "ws://b"},
				func(e *endpoints) { e.note(0, &Error{RetryAfter: time.Hour}) },
				backoff.DefaultConnect,
			},
		} {
			n := new(conntest.Network)
			n.Fault("a:80", conntest.Fault{Hang: true})
			n.Fault("b:80", conntest.Fault{Hang: true})
			d := &WebSocket{URLs: test.urls, DialContext: n.DialContext}
			test.arrange(d.setup())
			start := time.Now()
			_, err := d.Dial(t.Context())
			require.Error(t, err)
			require.Equal(t, test.want, time.Since(start), name)
		}
	})
}

func TestShortLimitIsNoLongerThanConnectTimeout(t *testing.T) {
	brief := context.WithValue(t.Context(), briefKey{}, true)
	for limit, want := range map[time.Duration]time.Duration{
		0:           briefConnect,
		time.Minute: briefConnect,
		time.Second: time.Second,
	} {
		require.Equal(t, want, (&settings{connectTimeout: limit}).connectLimit(brief))
		ctx := backoff.WithAttempt(brief, backoff.Attempt{Connect: limit})
		require.Equal(t, want, (&settings{}).connectLimit(ctx))
	}
}

// That is what shows that an endpoint is alive, not that it can be connected to.
func TestAnsweredHandshakeEndsTheAvoidance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		defer conntest.NewServer(n, serverAddr, nil).Close()
		n.Fault(serverAddr, conntest.Fault{Hang: true}, conntest.Fault{Err: syscall.ECONNREFUSED}, conntest.Fault{})
		d := &WebSocket{URL: serverURL, DialContext: n.DialContext}
		for _, avoided := range []bool{true, true, false} {
			if c, err := d.Dial(t.Context()); err == nil {
				require.NoError(t, c.CloseNow())
			}
			require.Equal(t, avoided, d.endpoints.hangs.at("ws://server.example:80"))
		}
	})
}

// The supervisor learns when the handshake begins, and its cause for giving up is
// remembered.
func TestADialReportsThatItIsConnected(t *testing.T) {
	at, resolver := halfDead(t, "127.0.0.2", "127.0.0.1")
	resolver.addrs = resolver.addrs[:1]
	d := &WebSocket{URL: at, Proxy: http.ProxyURL(nil), TCP: TCPOptions{LookupNetIP: resolver.LookupNetIP}}
	ctx, cancel := context.WithCancelCause(t.Context())
	connected := make(chan struct{})
	ctx = backoff.WithAttempt(ctx, backoff.Attempt{Connected: func() { close(connected) }})
	failed := make(chan error)
	go func() { _, err := d.Dial(ctx); failed <- err }()
	<-connected
	cancel(backoff.ErrHung)
	require.ErrorIs(t, <-failed, context.DeadlineExceeded)
	require.True(t, d.endpoints.hangs.at(net.JoinHostPort("127.0.0.2", at[len("ws://feed.test:"):])))
}
