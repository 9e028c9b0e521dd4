package reconnect_test

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
)

// The advice of a server about where to dial next, and when.

const movedTo = "redial/1 url=wss://b.example/x?token=secret"

// An address serves for one dial, because the server may be wrong about it. So does a hint
// beside it.
func TestOneDialGetsTheAddressInACloseReason(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		s.open(&o)
		s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		d := s.wantDial()
		require.Equal(t, "wss://b.example/x?token=secret", d.try.URL)
		d.try.Followed(nil)
		d.refuse(context.DeadlineExceeded)
		d = s.wantDial()
		require.Empty(t, d.try.URL)
		require.Nil(t, reconnect.HintFrom(d.ctx))
	})
}

// Of the time in a Retry-After and that in an Advice the longer counts.
func TestAnAdviceShortensNoRetryAfter(t *testing.T) {
	for reason, told := range map[string]time.Duration{"redial/1 wait=2s": 20 * time.Second, "redial/1 wait=20s": 2 * time.Second} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			s.open(&o)
			s.wantDial().accept().Fail(backoff.RetryAfter(&conn.CloseError{Code: 1012, Reason: reason}, told))
			s.wantDial().accept()
			require.Equal(t, 21*time.Second, s.now())
		})
	}
}

func TestTheAddressOfARotationReachesItsDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{URL: "wss://b.example"})
		d := s.wantDial()
		require.Equal(t, "wss://b.example", d.try.URL)
		d.try.Followed(nil)
		d.accept()
		time.Sleep(time.Minute) // until the old session has ended
		c.Rotate(2, reconnect.Advice{})
		require.Empty(t, s.wantDial().try.URL)
	})
}

// Nor does one that comes when its session is replaced already, because another is ready.
func TestAdviceToASessionThatWasReplacedIsForNoDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		_, old, next := overlapping(s, &o)
		old.Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		synctest.Wait()
		next.Fail(errLost)
		d := s.wantDial()
		require.Empty(t, d.try.URL)
		require.Nil(t, reconnect.HintFrom(d.ctx))
	})
}

// A hint ends with its URL, however the dial there has failed: OnSession must not expect a
// resumption of which the server knows nothing.
func TestHintEndsWithItsURL(t *testing.T) {
	for name, fail := range map[string]error{"reset": io.EOF, "refused": answered(503), "accepted": nil} {
		inBubble(t, func(t *testing.T, s *scene) {
			var seen notes
			o := rotating(reconnect.OverlapHold)
			o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
				seen.add(fmt.Sprint(o.Session, " ", o.Advised, " ", reconnect.HintFrom(ctx)))
				return nil
			}
			c := s.open(&o)
			s.wantDial().accept()
			c.Rotate(1, reconnect.Advice{URL: "wss://h.example?reconnect_id=abc", Hint: "carried over"})
			d := s.wantDial()
			require.Equal(t, "carried over", reconnect.HintFrom(d.ctx))
			d.try.Followed(nil)
			if fail != nil {
				d.refuse(fail)
				d = s.wantDial()
				require.Nil(t, reconnect.HintFrom(d.ctx), name)
				d.accept()
				require.Equal(t, []string{"1 false <nil>", "2 false <nil>"}, seen.all(), name)
				return
			}
			peer := d.accept()
			require.Equal(t, []string{"1 false <nil>", "2 true carried over"}, seen.all())
			time.Sleep(time.Minute) // until the old session has ended
			peer.Fail(errLost)
			s.wantDial().accept()
			require.Equal(t, "3 false <nil>", seen.all()[2])
		})
	}
}

// Nor does a dial that begins while the one at the URL hangs get the hint, which OnSession sees.
func TestHintIsNotForDialBesideItsURL(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := withPolicy(hanging{})
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
			seen.add(fmt.Sprint(o.Advised, " ", reconnect.HintFrom(ctx)))
			return nil
		}
		s.open(&o)
		s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo + " hint=h"})
		d := s.wantDial()
		require.Equal(t, "h", reconnect.HintFrom(d.ctx))
		d.try.Followed(nil)
		d.connected()
		beside := s.wantDial()
		require.Nil(t, reconnect.HintFrom(beside.ctx))
		beside.accept()
		require.Equal(t, []string{"false <nil>", "false <nil>"}, seen.all())
	})
}

// A hint without a URL outlives a dial that was lost.
func TestHintWithoutURLOutlivesLostDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := withPolicy(every(time.Second))
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
			seen.add(fmt.Sprint(o.Advised, " ", reconnect.HintFrom(ctx)))
			return nil
		}
		s.open(&o)
		s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 hint=h"})
		s.wantDial().refuse(io.EOF)
		s.wantDial().accept()
		require.Equal(t, []string{"false <nil>", "false h"}, seen.all())
	})
}

// The dial after the one that had the address is not sent there, even while the first hangs.
func TestADialBesideOneThatHangsGetsNoAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		s.open(&o)
		s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
		d := s.wantDial()
		require.NotEmpty(t, d.try.URL)
		d.connected()
		beside := s.wantDial()
		require.Empty(t, beside.try.URL)
		beside.accept()
	})
}

// Nothing is ignored in silence.
func TestAnAddressThatIsIgnoredIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(d *pendingDial)
		want   []string
	}{
		"followed": {func(d *pendingDial) { d.try.Followed(nil) }, nil},
		"refused":  {func(d *pendingDial) { d.try.Followed(errors.New("not there")) }, []string{"feed: not there"}},
		"unknown":  {func(*pendingDial) {}, []string{"feed: the dialer follows no address"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				var seen notes
				o := withPolicy(every(time.Second))
				o.Run.Name = "feed"
				o.Run.Trace = &reconnect.Trace{AddressIgnored: func(a reconnect.AddressIgnored) { seen.add(a.Name + ": " + a.Err.Error()) }}
				s.open(&o)
				s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
				d := s.wantDial()
				test.answer(d)
				d.accept()
				require.Equal(t, test.want, seen.all())
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
	withWSServer(t, serve, func(t *testing.T, server *wsServer) {
		var log bytes.Buffer
		o := withPolicy(every(time.Second))
		o.Run.Trace = reconnect.Log(logger(&log))
		server.ready(t, &o)
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
	withWSServer(t, nil, func(t *testing.T, server *wsServer) {
		other := conntest.NewServer(server.network, "other.test:80", nil)
		defer other.Close()
		server.dialer.FollowHint = func(to *url.URL) bool { return to.Host == "other.test" }
		c := server.ready(t, nil)
		server.Disconnect(1012, "redial/1 url=ws://other.test/v1")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, other.Conns(), 1)
		closeAndWait(c)
	})
}

// A server, or an attacker in its place, can write any number.
func TestTheLongestWaitsInACloseReasonAreAnHour(t *testing.T) {
	for _, reason := range []string{"wait=2562047h spread=2562047h", "wait=2562047h", "wait=1h spread=2562047h"} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			s.open(&o)
			s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 " + reason})
			require.Equal(t, time.Hour+time.Second, s.wantDial().at) // and the policy's second
		})
	}
}

// Nor does a Rotate of the program wait longer.
func TestWaitAndSpreadOfARotationAreAnHourTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Wait: time.Hour, Spread: time.Hour})
		require.Equal(t, time.Hour, s.wantDial().at)
	})
}

// A server may say both, and wants the next dial after its restart.
func TestARotationWaitsThoughItsSessionEndsBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Wait: 10 * time.Second, By: time.Now().Add(time.Second)})
		require.Equal(t, 10*time.Second, s.wantDial().at)
	})
}

// Those of a spread that is longer than an hour are spread over the hour.
func TestClientsDoNotComeBackTogetherAfterTheLongestWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for range 20 {
			o := withPolicy(every(time.Second))
			s.open(&o)
			s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 spread=10h"})
		}
		soon := 0
		for range 20 {
			d := s.wantDial()
			if d.at < 50*time.Minute {
				soon++
			}
			d.accept()
		}
		require.Greater(t, soon, 5)
	})
}

// Otherwise one wrong address could end a client for good, or keep it away for minutes.
func TestAWrongAddressCostsOneDial(t *testing.T) {
	gone := errors.New("gone")
	for _, err := range []error{backoff.Permanent(gone), backoff.Slow(gone), backoff.Refresh(gone)} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			c := s.open(&o)
			s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: movedTo})
			d := s.wantDial()
			d.try.Followed(nil)
			d.refuse(err)
			require.ErrorIs(t, c.Status().Err, gone)
			d = s.wantDial()
			require.Empty(t, d.try.URL)
			require.False(t, d.try.Refresh)
			require.Equal(t, 2*time.Second, d.at)
			d.refuse(backoff.Permanent(gone)) // at the usual address it counts
			<-c.Done()
		})
	}
}

// What the server says of the future reaches the next dial and its OnSession, and is dropped
// when a session is ready.
func TestTheHintReachesTheDialAndOnSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var hints []any
		o := rotating(reconnect.OverlapHold)
		o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
			hints = append(hints, reconnect.HintFrom(ctx))
			return nil
		}
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Hint: "wss://b.example"})
		d := s.wantDial()
		require.Equal(t, "wss://b.example", reconnect.HintFrom(d.ctx))
		next := d.accept()
		time.Sleep(time.Minute)
		next.Fail(errLost)
		d = s.wantDial()
		require.Nil(t, reconnect.HintFrom(d.ctx))
		d.accept()
		require.Equal(t, []any{nil, "wss://b.example", nil}, hints)
	})
}

// A handle that the server has forgotten is tried once. One that never reached the server is
// tried again.
func TestAHintThatWasRefusedIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Hint: "handle"})
		s.wantDial().refuse(context.DeadlineExceeded)
		d := s.wantDial()
		require.Equal(t, "handle", reconnect.HintFrom(d.ctx))
		d.refuse(errors.New("no such handle"))
		require.Nil(t, reconnect.HintFrom(s.wantDial().ctx))
	})
}

// The peer closes the session whose next one is being dialed, and has another handle.
func TestAHintThatIsNewerThanTheDialOutlivesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Hint: "first"})
		d := s.wantDial()
		old.Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 hint=second"})
		synctest.Wait()
		d.refuse(errors.New("no such handle"))
		require.Equal(t, "second", reconnect.HintFrom(s.wantDial().ctx))
	})
}

func TestARotateThatDoesNothingLeavesNoHint(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{Wait: time.Minute, Hint: "first"})
		c.Rotate(1, reconnect.Advice{Hint: "second"})
		require.Equal(t, "first", reconnect.HintFrom(s.wantDial().ctx))
	})
}

// A close reason can tell the client when to come back.
func TestTheWaitInACloseReasonIsObeyed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		s.open(&o)
		s.wantDial().accept().Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 wait=12s hint=b later=x"})
		d := s.wantDial()
		require.Equal(t, 13*time.Second, d.at) // and the policy's second
		require.Equal(t, "b", reconnect.HintFrom(d.ctx))
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
		inBubble(t, func(t *testing.T, s *scene) {
			var at []time.Duration
			for range 50 {
				o := rotating(reconnect.OverlapHold)
				c := s.open(&o)
				s.wantDial().accept()
				c.Rotate(1, reconnect.Advice{By: time.Now().Add(by)})
			}
			for range 50 {
				d := s.wantDial()
				at = append(at, d.at)
				d.accept()
			}
			require.Less(t, at[0], latest/3)
			require.Greater(t, at[49], latest/3*2)
			require.Less(t, at[49], latest)
		})
	}
}

// The server goes 60 s after it has told its clients, and to open takes them 40 s.
func TestARotationBeginsEarlyEnoughToOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.OpenTimeout = time.Minute
		o.OnSession = func(context.Context, *reconnect.Opening) error { time.Sleep(40 * time.Second); return nil }
		var conns []*reconnect.Conn
		for range 20 {
			conns = append(conns, s.open(&o))
			s.wantDial().accept()
		}
		time.Sleep(time.Minute)
		told := s.now()
		for _, c := range conns {
			c.Rotate(1, reconnect.Advice{By: time.Now().Add(time.Minute)})
		}
		for range conns {
			d := s.wantDial()
			require.LessOrEqual(t, d.at, told+20*time.Second)
			d.accept()
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
