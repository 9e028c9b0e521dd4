package rotate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The advice of a server about where to dial next, and when.

const movedTo = "redial/1 url=wss://b.example/x?token=secret"

// An address serves for one dial, because the server may be wrong about it. So does a hint
// beside it.
func TestOneDialGetsTheAddressInACloseReason(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		s.Open(&o)
		s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		d := s.WantDial()
		require.Equal(t, "wss://b.example/x?token=secret", d.Try.URL)
		d.Try.Followed(nil)
		d.Refuse(context.DeadlineExceeded)
		d = s.WantDial()
		require.Empty(t, d.Try.URL)
		require.Nil(t, reconnect.HintFrom(d.Ctx))
	})
}

// Of the time in a Retry-After and that in an Advice the longer counts.
func TestAnAdviceShortensNoRetryAfter(t *testing.T) {
	for reason, told := range map[string]time.Duration{"redial/1 wait=2s": 20 * time.Second, "redial/1 wait=20s": 2 * time.Second} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			s.Open(&o)
			s.WantDial().Accept().Fail(backoff.RetryAfter(&conn.CloseError{Code: 1012, Reason: reason}, told))
			s.WantDial().Accept()
			require.Equal(t, 21*time.Second, s.Now())
		})
	}
}

func TestTheAddressOfARotationReachesItsDial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{URL: "wss://b.example"})
		d := s.WantDial()
		require.Equal(t, "wss://b.example", d.Try.URL)
		d.Try.Followed(nil)
		d.Accept()
		time.Sleep(time.Minute) // until the old session has ended
		c.Rotate(2, reconnect.Advice{})
		require.Empty(t, s.WantDial().Try.URL)
	})
}

// Nor does one that comes when its session is replaced already, because another is ready.
func TestAdviceToASessionThatWasReplacedIsForNoDial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		_, old, next := scene.Overlapping(s, &o)
		old.Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		synctest.Wait()
		next.Fail(scene.ErrLost)
		d := s.WantDial()
		require.Empty(t, d.Try.URL)
		require.Nil(t, reconnect.HintFrom(d.Ctx))
	})
}

// A hint ends with its URL, however the dial there has failed: OnSession must not expect a
// resumption of which the server knows nothing.
func TestHintEndsWithItsURL(t *testing.T) {
	for name, fail := range map[string]error{"reset": io.EOF, "refused": scene.Answered(503), "accepted": nil} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var seen scene.Notes
			o := scene.Rotating(reconnect.OverlapHold)
			o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
				seen.Add(fmt.Sprint(o.Session, " ", o.Advised, " ", reconnect.HintFrom(ctx)))
				return nil
			}
			c := s.Open(&o)
			s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{URL: "wss://h.example?reconnect_id=abc", Hint: "carried over"})
			d := s.WantDial()
			require.Equal(t, "carried over", reconnect.HintFrom(d.Ctx))
			d.Try.Followed(nil)
			if fail != nil {
				d.Refuse(fail)
				d = s.WantDial()
				require.Nil(t, reconnect.HintFrom(d.Ctx), name)
				d.Accept()
				require.Equal(t, []string{"1 false <nil>", "2 false <nil>"}, seen.All(), name)
				return
			}
			peer := d.Accept()
			require.Equal(t, []string{"1 false <nil>", "2 true carried over"}, seen.All())
			time.Sleep(time.Minute) // until the old session has ended
			peer.Fail(scene.ErrLost)
			s.WantDial().Accept()
			require.Equal(t, "3 false <nil>", seen.All()[2])
		})
	}
}

// Nor does a dial that begins while the one at the URL hangs get the hint, which OnSession sees.
func TestHintIsNotForDialBesideItsURL(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.WithPolicy(scene.Hanging{})
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
			seen.Add(fmt.Sprint(o.Advised, " ", reconnect.HintFrom(ctx)))
			return nil
		}
		s.Open(&o)
		s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		d := s.WantDial()
		require.Equal(t, "h", reconnect.HintFrom(d.Ctx))
		d.Try.Followed(nil)
		d.Connected()
		beside := s.WantDial()
		require.Nil(t, reconnect.HintFrom(beside.Ctx))
		beside.Accept()
		require.Equal(t, []string{"false <nil>", "false <nil>"}, seen.All())
	})
}

// A hint without a URL outlives a dial that was lost.
func TestHintWithoutURLOutlivesLostDial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
			seen.Add(fmt.Sprint(o.Advised, " ", reconnect.HintFrom(ctx)))
			return nil
		}
		s.Open(&o)
		s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 hint=h"})
		s.WantDial().Refuse(io.EOF)
		s.WantDial().Accept()
		require.Equal(t, []string{"false <nil>", "false h"}, seen.All())
	})
}

// The dial after the one that had the address is not sent there, even while the first hangs.
func TestADialBesideOneThatHangsGetsNoAddress(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		s.Open(&o)
		s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
		d := s.WantDial()
		require.NotEmpty(t, d.Try.URL)
		d.Connected()
		beside := s.WantDial()
		require.Empty(t, beside.Try.URL)
		beside.Accept()
	})
}

// Nothing is ignored in silence.
func TestAnAddressThatIsIgnoredIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(d *scene.PendingDial)
		want   []string
	}{
		"followed": {func(d *scene.PendingDial) { d.Try.Followed(nil) }, nil},
		"refused": {
			func(d *scene.PendingDial) { d.Try.Followed(errors.New("not there")) },
			[]string{"feed: not there"},
		},
		"unknown": {func(*scene.PendingDial) {}, []string{"feed: the dialer follows no address"}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				var seen scene.Notes
				o := scene.WithPolicy(scene.Every(time.Second))
				o.Run.Name = "feed"
				o.Run.Trace = &reconnect.Trace{AddressIgnored: func(a reconnect.AddressIgnored) {
					seen.Add(a.Name + ": " + a.Err.Error())
				}}
				s.Open(&o)
				s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
				d := s.WantDial()
				test.answer(d)
				d.Accept()
				require.Equal(t, test.want, seen.All())
			})
		})
	}
}

// The whole way, with a real dialer: the path of the same host is followed, another host is not,
// and the log says so without the secret.
func TestAnAddressIsFollowedWithinTheHost(t *testing.T) {
	paths := make(chan string, 10)
	serve := func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		paths <- r.URL.Path
		conntest.Discard(ctx, c, r)
	}
	scene.WithWSServer(t, serve, func(t *testing.T, server *scene.WSServer) {
		var log bytes.Buffer
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = reconnect.Log(scene.Logger(&log))
		server.Ready(t, &o)
		for _, address := range []string{"ws://feed.test/v2", "ws://feed.test:81/v3", "ws://other.test/v4"} {
			server.Disconnect(1012, "redial/1 url="+address)
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		close(paths)
		var got []string
		for p := range paths {
			got = append(got, p)
		}
		require.Equal(t, []string{"/v1", "/v2", "/v1", "/v1"}, got)
		require.Contains(t, log.String(), `level=WARN msg="advised address ignored" cause="advised address: ws://other.test is none of the endpoints"`)
	})
}

// A user can allow a host of another name.
func TestAnAddressIsFollowedElsewhereIfTheUserSaysSo(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		other := conntest.NewServer(server.Network, "other.test:80", nil)
		defer other.Close()
		server.Dialer.FollowHint = func(to *url.URL) bool { return to.Host == "other.test" }
		c := server.Ready(t, nil)
		server.Disconnect(1012, "redial/1 url=ws://other.test/v1")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, other.Conns(), 1)
		scene.CloseAndWait(c)
	})
}

// A server, or an attacker in its place, can write any number.
func TestTheLongestWaitsInACloseReasonAreAnHour(t *testing.T) {
	for _, reason := range []string{"wait=2562047h spread=2562047h", "wait=2562047h", "wait=1h spread=2562047h"} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			s.Open(&o)
			s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 " + reason})
			require.Equal(t, time.Hour+time.Second, s.WantDial().At) // and the policy's second
		})
	}
}

// Nor does a Rotate of the program wait longer.
func TestWaitAndSpreadOfARotationAreAnHourTogether(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Wait: time.Hour, Spread: time.Hour})
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// A server may say both, and wants the next dial after its restart.
func TestARotationWaitsThoughItsSessionEndsBefore(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Wait: 10 * time.Second, By: time.Now().Add(time.Second)})
		require.Equal(t, 10*time.Second, s.WantDial().At)
	})
}

// Those of a spread that is longer than an hour are spread over the hour.
func TestClientsDoNotComeBackTogetherAfterTheLongestWait(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		for range 20 {
			o := scene.WithPolicy(scene.Every(time.Second))
			s.Open(&o)
			s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 spread=10h"})
		}
		soon := 0
		for range 20 {
			d := s.WantDial()
			if d.At < 50*time.Minute {
				soon++
			}
			d.Accept()
		}
		require.Greater(t, soon, 5)
	})
}

// Otherwise one wrong address could end a client for good, or keep it away for minutes.
func TestAWrongAddressCostsOneDial(t *testing.T) {
	gone := errors.New("gone")
	for _, err := range []error{backoff.Permanent(gone), backoff.Slow(gone), backoff.Refresh(gone)} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			c := s.Open(&o)
			s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
			d := s.WantDial()
			d.Try.Followed(nil)
			d.Refuse(err)
			require.ErrorIs(t, c.Status().Err, gone)
			d = s.WantDial()
			require.Empty(t, d.Try.URL)
			require.False(t, d.Try.Refresh)
			require.Equal(t, 2*time.Second, d.At)
			d.Refuse(backoff.Permanent(gone)) // at the usual address it counts
			<-c.Done()
		})
	}
}

// What the server says of the future reaches the next dial and its OnSession, and is dropped
// when a session is ready.
func TestTheHintReachesTheDialAndOnSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var hints []any
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
			hints = append(hints, reconnect.HintFrom(ctx))
			return nil
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Hint: "wss://b.example"})
		d := s.WantDial()
		require.Equal(t, "wss://b.example", reconnect.HintFrom(d.Ctx))
		next := d.Accept()
		time.Sleep(time.Minute)
		next.Fail(scene.ErrLost)
		d = s.WantDial()
		require.Nil(t, reconnect.HintFrom(d.Ctx))
		d.Accept()
		require.Equal(t, []any{nil, "wss://b.example", nil}, hints)
	})
}

// A handle that the server has forgotten is tried once. One that never reached the server is
// tried again.
func TestAHintThatWasRefusedIsDropped(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Hint: "handle"})
		s.WantDial().Refuse(context.DeadlineExceeded)
		d := s.WantDial()
		require.Equal(t, "handle", reconnect.HintFrom(d.Ctx))
		d.Refuse(errors.New("no such handle"))
		require.Nil(t, reconnect.HintFrom(s.WantDial().Ctx))
	})
}

// The peer closes the session whose next one is being dialed, and has another handle.
func TestAHintThatIsNewerThanTheDialOutlivesIt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Hint: "first"})
		d := s.WantDial()
		old.Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 hint=second"})
		synctest.Wait()
		d.Refuse(errors.New("no such handle"))
		require.Equal(t, "second", reconnect.HintFrom(s.WantDial().Ctx))
	})
}

func TestARotateThatDoesNothingLeavesNoHint(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Wait: time.Minute, Hint: "first"})
		c.Rotate(1, reconnect.Advice{Hint: "second"})
		require.Equal(t, "first", reconnect.HintFrom(s.WantDial().Ctx))
	})
}

// A close reason can tell the client when to come back.
func TestTheWaitInACloseReasonIsObeyed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		s.Open(&o)
		s.WantDial().Accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 wait=12s hint=b later=x"})
		d := s.WantDial()
		require.Equal(t, 13*time.Second, d.At) // and the policy's second
		require.Equal(t, "b", reconnect.HintFrom(d.Ctx))
	})
}

func TestAdviceInACloseReason(t *testing.T) {
	for reason, want := range map[string]reconnect.Advice{
		"redial/1":                              {},
		"redial/1 wait=12s spread=1m30s":        {Wait: 12 * time.Second, Spread: 90 * time.Second},
		"redial/1  hint=wss://b.example/x?a=b ": {Hint: "wss://b.example/x?a=b"},
		"redial/1 wait=-5s spread=soon":         {},
		"redial/1 url=wss://b.example/x?a=b":    {URL: "wss://b.example/x?a=b"},
	} {
		got, ok := reconnect.ReadAdvice(reason)
		require.True(t, ok, reason)
		require.Equal(t, want, got, reason)
	}
	for _, reason := range []string{"", "redial", "redial/2 wait=1s", "going away", "wait=12s redial/1"} {
		_, ok := reconnect.ReadAdvice(reason)
		require.False(t, ok, reason)
	}
}

// The clients of one server that is to be restarted come at times of their own, all before it
// goes.
func TestClientsThatAreToldAtOneMomentSpreadThemselves(t *testing.T) {
	for by, latest := range map[time.Duration]time.Duration{
		time.Minute: time.Minute, 10 * time.Hour: backoff.MaxRetryAfter,
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var at []time.Duration
			for range 50 {
				o := scene.Rotating(reconnect.OverlapHold)
				c := s.Open(&o)
				s.WantDial().Accept()
				c.Rotate(1, reconnect.Advice{By: time.Now().Add(by)})
			}
			for range 50 {
				d := s.WantDial()
				at = append(at, d.At)
				d.Accept()
			}
			require.Less(t, at[0], latest/3)
			require.Greater(t, at[49], latest/3*2)
			require.Less(t, at[49], latest)
		})
	}
}

// The server goes 60 s after it has told its clients, and to open takes them 40 s.
func TestARotationBeginsEarlyEnoughToOpen(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.OpenTimeout = time.Minute
		o.OnSession = func(context.Context, *reconnect.Opening) error { time.Sleep(40 * time.Second); return nil }
		var conns []*reconnect.Conn
		for range 20 {
			conns = append(conns, s.Open(&o))
			s.WantDial().Accept()
		}
		time.Sleep(time.Minute)
		told := s.Now()
		for _, c := range conns {
			c.Rotate(1, reconnect.Advice{By: time.Now().Add(time.Minute)})
		}
		for range conns {
			d := s.WantDial()
			require.LessOrEqual(t, d.At, told+20*time.Second)
			d.Accept()
		}
	})
}

// Whatever a peer writes, nothing is below 0, and each field is as one that can be written.
func FuzzReadAdvice(f *testing.F) {
	f.Add("redial/1 wait=12s spread=30s url=wss://b.example/ws hint=x")
	f.Add("redial/1 wait=9223372036s spread=-9223372036s url=wss://%zz hint==")
	f.Fuzz(func(t *testing.T, text string) {
		a, ok := reconnect.ReadAdvice(text)
		if !ok {
			require.Zero(t, a)
			return
		}
		require.GreaterOrEqual(t, a.Wait, time.Duration(0))
		require.GreaterOrEqual(t, a.Spread, time.Duration(0))
		hint, _ := a.Hint.(string)
		again, ok := reconnect.ReadAdvice(fmt.Sprintf("redial/1 wait=%v spread=%v url=%s hint=%s", a.Wait, a.Spread, a.URL, hint))
		require.True(t, ok)
		require.Equal(t, []any{a.Wait, a.Spread, a.URL}, []any{again.Wait, again.Spread, again.URL})
	})
}
