package debug

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

func TestALifeIsShown(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		feed := s.open(reconnect.Options{})
		synctest.Wait() // it dials already
		s.page.Register("feed", feed, &ConnOptions{Subscriptions: func() (int, int) { return 3, 2 }})
		s.refuse(errLost)
		c := s.one()
		require.Equal(t, []any{"away", "waiting", "ws://host/path", "retry"}, []any{c.Condition, c.State, c.Endpoint, c.Verdict})
		require.Equal(t, 10*time.Second, time.Until(c.Next))
		require.Equal(t, &subscriptionsInfo{Wanted: 3, Held: 2}, c.Subscriptions)
		peer := s.accept()
		time.Sleep(65 * time.Second) // between two probes
		peer.Fail(&conn.CloseError{Code: 1012, Reason: "planted-secret"})
		s.accept()
		time.Sleep(time.Second)
		c = s.one()
		require.Equal(t, []any{"ready", "ready", uint64(2)}, []any{c.Condition, c.State, c.Session})
		require.True(t, c.AwaySince.IsZero())
		require.Equal(t, "close_restart", c.Cause.Reason)
		require.Equal(t, []string{
			"dial_failed", "wait", "dial_start", "dial_done", "session_start", "session_ready", "probe_done", "session_done", "wait",
			"dial_start", "dial_done", "session_start", "session_ready",
		}, kindsOf(c.Events))
		require.Len(t, c.Sessions, 2)
		first, second := c.Sessions[0], c.Sessions[1]
		require.Equal(t, []seconds{seconds(10 * time.Second), seconds(65 * time.Second)}, []seconds{first.Away, first.Up})
		require.Equal(t, []any{false, "close_restart", false}, []any{first.Live, first.Reason, first.Planned})
		require.Equal(t, []any{true, seconds(10 * time.Second), seconds(time.Second)}, []any{second.Live, second.Away, second.Up})
	})
}

// The JSON has the oldest first, and the page the newest.
func TestThePageShowsTheNewestFirst(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		s.accept().Fail(errLost)
		s.accept()
		page := get(s.page, "/?conn=1").Body.String()
		for _, pair := range [][2]string{{"session 2 is ready", "session 1 is ready"}, {`<th scope="row">2<`, `<th scope="row">1<`}} {
			require.Contains(t, page, pair[0])
			_, after, _ := strings.Cut(page, pair[0])
			require.Contains(t, after, pair[1])
		}
	})
}

// A session that OnSession still prepares has not been ready for a moment.
func TestASessionThatOpensIsNotUp(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{OnSession: func(ctx context.Context, _ *reconnect.Opening) error {
			time.Sleep(3 * time.Second)
			return nil
		}}), nil)
		s.accept()
		time.Sleep(time.Second)
		require.Equal(t, []any{true, seconds(0)}, []any{s.one().Sessions[0].Live, s.one().Sessions[0].Up})
		require.Contains(t, get(s.page, "/").Body.String(), `<i class="opening"></i>`)
		time.Sleep(3 * time.Second)
		require.Equal(t, seconds(time.Second), s.one().Sessions[0].Up)
	})
}

// closedGate lets nobody through. It says so after a second, so that the Conn is registered by then.
type closedGate struct{}

func (closedGate) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	select {
	case <-time.After(time.Second):
		return nil, errLost
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A dial that has not begun has not failed. Its event says what has happened.
func TestAGateThatRefusesIsNoCause(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{Run: reconnect.RunOptions{Host: "host", Gate: closedGate{}}}), nil)
		time.Sleep(15 * time.Second)
		require.Contains(t, kindsOf(s.one().Events), "gate_failed")
		require.Nil(t, s.one().Cause)
	})
}

// Conns that wait at the gate of a host that is down do not dial, and their rows say what they wait for.
func TestAConnAtTheGateShowsTheProbe(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: every(4 * time.Second)})
		require.NoError(t, err)
		open := func(name string) {
			s.page.Register(name, s.open(reconnect.Options{Run: reconnect.RunOptions{Name: name, Host: "host", Gate: g}}), nil)
			synctest.Wait()
		}
		open("acct-1")
		answer := <-s.dials
		open("acct-2")
		find := func(name string) connInfo {
			conns := s.snapshot("").Conns
			return conns[slices.IndexFunc(conns, func(c connInfo) bool { return c.Name == name })]
		}
		require.True(t, find("acct-2").AtGate)
		require.Nil(t, find("acct-2").Probe, "it waits for its turn")
		answer <- func() (conn.Conn, error) { return nil, fmt.Errorf("planted-secret: %w", syscall.ECONNREFUSED) }
		synctest.Wait()
		want := &probeInfo{
			Next: time.Now().Add(4 * time.Second).UTC(), By: "acct-2", Waiting: 1, Reason: "refused", Text: "connection refused",
		}
		require.Equal(t, want, find("acct-2").Probe)
		require.Nil(t, find("acct-1").Probe, "it waits for its own next dial")
		row := get(s.page, "/?conn=2").Body.String()
		require.Contains(t, row, `<span class="badge waiting">at the gate</span>`)
		require.Regexp(t, `host down: connection refused · dialed in (4.0|3.9) s by acct-2`, row)
		require.NotContains(t, row, "connecting")
		require.NotContains(t, row, "planted")
		open("acct-3")
		answer = <-s.dials
		require.Equal(t, &probeInfo{By: "acct-2", Waiting: 1, Reason: "refused", Text: "connection refused"}, find("acct-3").Probe)
		page := get(s.page, "/?conn=3").Body.String()
		require.Contains(t, page, "host down: connection refused · dialed now by acct-2")
		answer <- func() (conn.Conn, error) { return nil, errLost }
	})
}

// Whoever registers late sees the session that is there, and how long it was when it ends.
func TestALateRegistrationSeesThePresentSession(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		peer := s.accept()
		time.Sleep(time.Hour)
		s.page.Register("feed", c, nil)
		require.Equal(t, seconds(time.Hour), s.one().Sessions[0].Up)
		peer.Fail(errLost)
		synctest.Wait()
		time.Sleep(time.Second)
		got := s.one()
		require.Equal(t, seconds(time.Hour), got.Sessions[0].Up)
		require.Equal(t, time.Second, time.Since(got.AwaySince))
		s.accept()
		require.Equal(t, seconds(10*time.Second), s.one().Sessions[1].Away)
	})
}

// Whoever registers during an outage sees why there is none.
func TestALateRegistrationSeesTheLastCause(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.refuse(&conn.CloseError{Code: 1012, Reason: "planted-secret"})
		failed := time.Now().UTC()
		time.Sleep(time.Second)
		s.page.Register("feed", c, nil)
		require.Equal(t, &causeInfo{Time: failed, Reason: "close_restart", Text: "closed by the peer: 1012 (service restart)"}, s.one().Cause)
		s.refuse(errLost)
		require.Equal(t, "other", s.one().Cause.Reason)
	})
}

// The answers to probes do not push anything else out.
func TestProbesInARowAreOneEvent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		peer := s.accept()
		peer.PongAfter(3 * time.Millisecond)
		time.Sleep(time.Hour)
		c := s.one()
		last := c.Events[len(c.Events)-1]
		require.Equal(t, "probe_done", last.Kind)
		require.Greater(t, last.Count, 100)
		require.Equal(t, int(c.Stats.Probes), last.Count)
		require.Equal(t, seconds(3*time.Millisecond), c.RoundTrip)
		require.NotZero(t, c.Silence)
		require.LessOrEqual(t, len(c.Events), 6)
		peer.Mute()
		time.Sleep(time.Minute)
		c = s.one()
		require.Equal(t, "silent", c.Cause.Reason)
		require.Contains(t, kindsOf(c.Events), "probe_failed")
	})
}

func TestAProbeThatAnotherOneReplacesIsNoEvent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("feed", c, nil)
		peer := s.accept()
		peer.PongAfter(3 * time.Second)
		for peer.Pings() == 0 {
			time.Sleep(time.Second)
		}
		c.Check() // cancels the probe that waits
		time.Sleep(10 * time.Second)
		kinds := kindsOf(s.one().Events)
		require.Contains(t, kinds, "probe_done")
		require.NotContains(t, kinds, "probe_failed")
	})
}

func TestFlappingIsThreeLossesInFiveMinutes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("feed", c, nil)
		for range 2 {
			s.accept().Fail(errLost)
		}
		s.accept()
		c.Rotate(3, reconnect.Advice{})
		synctest.Wait()
		s.accept()
		time.Sleep(time.Minute)
		require.Equal(t, "ready", s.one().Condition, "what is replaced is no loss")
		c.Redial(4, errLost)
		s.accept()
		require.Equal(t, []any{"flapping", 3}, []any{s.one().Condition, s.one().Lost})
		require.Equal(t, 1, s.snapshot("").Counts.Flapping)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []any{"ready", 0}, []any{s.one().Condition, s.one().Lost})
		require.Equal(t, 1, s.snapshot("").Counts.Ready)
	})
}

func TestTheRingsAreBounded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		for range 100 {
			s.accept().Fail(errLost)
		}
		synctest.Wait()
		c := s.one()
		require.Len(t, c.Sessions, 32)
		require.Len(t, c.Events, 64)
		require.Equal(t, uint64(100), c.Sessions[31].Session)
		require.Equal(t, uint64(69), c.Sessions[0].Session)
		require.Equal(t, "wait", c.Events[63].Kind)
	})
}

// The page keeps 32 sessions. If more were lost, it says "32+".
func TestMoreLossesThanAreKeptAreSaidToBeMore(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c, err := reconnect.New(s, &reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {}, Run: reconnect.RunOptions{Policy: every(time.Second)},
		})
		require.NoError(t, err)
		defer func() { c.Close(); <-c.Done() }()
		s.page.Register("feed", c, nil)
		lose := func(n, lost int, more bool) {
			t.Helper()
			for range n {
				s.accept().Fail(errLost)
			}
			synctest.Wait()
			require.Equal(t, []any{lost, more}, []any{s.one().Lost, s.one().LostMore})
		}
		lose(32, 32, false)
		lose(1, 32, true)
		peer := s.accept()
		require.Equal(t, []any{31, true}, []any{s.one().Lost, s.one().LostMore})
		require.Contains(t, get(s.page, "/").Body.String(), "31+ lost in 5 min")
		time.Sleep(10 * time.Minute)
		peer.Fail(errLost)
		lose(3, 4, false)
	})
}

func TestARotationIsPlanned(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("feed", c, nil)
		s.accept()
		c.Rotate(1, reconnect.Advice{URL: "ws://planted-secret/", Hint: "planted-secret"})
		synctest.Wait()
		require.True(t, s.one().Rotating)
		s.accept()
		time.Sleep(time.Minute)
		got := s.one()
		require.Equal(t, []any{true, "rotated"}, []any{got.Sessions[0].Planned, got.Sessions[0].Reason})
		require.Zero(t, got.Sessions[1].Away)
		require.Subset(t, kindsOf(got.Events), []string{"rotate_start", "rotate_done"})
		require.True(t, got.AwaySince.IsZero())
	})
}

// The page shows a rotation that never succeeds, with the session that is ready, until the
// rotation has ended.
func TestFailingRotationShows(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 2 {
				return errLost
			}
			return nil
		}})
		s.page.Register("feed", c, nil)
		s.refuse(errLost)
		old := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		require.Nil(t, s.one().Rotation) // the failed dial was before the rotation
		s.accept()                       // session 2, which fails
		since := time.Now()
		s.refuse(errLost)
		s.refuse(syscall.ECONNREFUSED)
		got := s.one()
		require.NotNil(t, got.Rotation)
		require.True(t, since.Equal(got.Rotation.Since))
		got.Rotation.Since = time.Time{}
		require.Equal(t, &rotationInfo{Failed: 3, Reason: "refused", Text: "connection refused"}, got.Rotation)
		require.Equal(t, []any{"ready", "ready", true}, []any{got.Condition, got.State, got.Rotating})
		html := get(s.page, "/").Body.String()
		require.Regexp(t, `rotation: 3 dials failed in 20 s, last: connection refused<`, html)
		require.NotContains(t, html, errLost.Error())

		old.Fail(errLost) // an outage, which the page shows in another way
		synctest.Wait()
		require.Nil(t, s.one().Rotation)
		s.refuse(errLost)
		s.accept()
		c.Rotate(3, reconnect.Advice{})
		synctest.Wait()
		require.Nil(t, s.one().Rotation)
		s.refuse(errLost)
		require.Equal(t, 1, s.one().Rotation.Failed)
		require.Contains(t, get(s.page, "/").Body.String(), "rotation: 1 dial failed")
		s.accept()
		time.Sleep(time.Minute)
		require.Nil(t, s.one().Rotation)
		c.Rotate(4, reconnect.Advice{})
		s.refuse(errLost)
		require.Equal(t, 1, s.one().Rotation.Failed)
		s.refuse(backoff.Permanent(errLost)) // which ends the rotation
		require.Nil(t, s.one().Rotation)
		c.Rotate(4, reconnect.Advice{})
		synctest.Wait()
		require.True(t, s.one().Rotating)
		require.Nil(t, s.one().Rotation)
	})
}

// What happens to a rotation, which has fields and events of its own, does not hide why the last session was lost.
func TestRotationKeepsLastCause(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 3 {
				return errLost
			}
			return nil
		}})
		s.page.Register("feed", c, nil)
		s.accept().Fail(&conn.CloseError{Code: 1012})
		s.accept()
		lost := s.one().Cause
		require.Equal(t, "close_restart", lost.Reason)
		time.Sleep(time.Minute)
		c.Rotate(2, reconnect.Advice{})
		s.refuse(syscall.ECONNREFUSED)
		require.Equal(t, lost, s.one().Cause, "a dial has failed")
		require.Equal(t, "refused", s.one().Rotation.Reason)
		_, key := s.page.conns[1].rank(reconnect.StateReady, time.Now())
		require.Equal(t, -s.one().Rotation.Since.UnixNano(), key, "it ranks by its last failure")
		s.accept()
		require.Equal(t, lost, s.one().Cause, "the next session was not ready")
		s.accept()
		time.Sleep(time.Minute)
		got := s.one()
		require.Equal(t, []any{"rotated", "close_restart"}, []any{got.Sessions[1].Reason, got.Cause.Reason})

		c.Rotate(4, reconnect.Advice{})
		synctest.Wait()
		s.accept().Fail(errLost)
		synctest.Wait()
		require.Equal(t, "other", s.one().Cause.Reason, "the replacement was lost")
		s.refuse(syscall.ECONNREFUSED)
		require.Equal(t, "refused", s.one().Cause.Reason, "without a session")
	})
}

// A rotation that closes the session first is the cause until the next session is ready.
func TestBreakFirstIsCauseUntilReady(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapBreakFirst}})
		s.page.Register("feed", c, nil)
		s.accept().Fail(errLost)
		for n := range uint64(2) {
			s.accept()
			require.Equal(t, "other", s.one().Cause.Reason)
			time.Sleep(time.Minute)
			c.Rotate(n+2, reconnect.Advice{})
			synctest.Wait()
			require.Equal(t, []any{"away", "rotated"}, []any{s.one().Condition, s.one().Cause.Reason})
		}
		s.refuse(syscall.ECONNREFUSED)
		s.accept()
		require.Equal(t, "refused", s.one().Cause.Reason)
	})
}

// Redial is for a session that is broken. It is a loss, as Seam.Planned says.
func TestARedialIsALoss(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("feed", c, nil)
		s.accept()
		c.Redial(1, errLost)
		s.accept()
		got := s.one()
		require.Equal(t, []any{"redial", false, 1}, []any{got.Sessions[0].Reason, got.Sessions[0].Planned, got.Lost})
	})
}

// The server ends the old session when the next one is ready, which is no loss, whatever it said.
func TestASessionThatDiesAfterItWasReplacedIsPlanned(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("feed", c, nil)
		old := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.accept()
		old.Fail(errLost)
		synctest.Wait()
		got := s.one()
		require.Equal(t, []any{"other", true, 0}, []any{got.Sessions[0].Reason, got.Sessions[0].Planned, got.Lost})
		require.True(t, got.AwaySince.IsZero())
	})
}

// Nor does a slow function of the program make a loss planned, if the next session is ready before
// the loss is reported.
func TestALossIsALossThoughTheNextSessionIsReadyBeforeItIsReported(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {},
			OnSeam:    func(context.Context, *reconnect.Seam) { time.Sleep(10 * time.Second) },
		})
		s.page.Register("feed", c, nil)
		old := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		old.Fail(errLost)
		time.Sleep(time.Second)
		s.accept()
		time.Sleep(time.Minute)
		require.Equal(t, []any{1, "other"}, []any{s.one().Lost, s.one().Cause.Reason})
	})
}

// A session is found at its end, however many have failed to replace it, and those are no losses.
func TestASessionOutlivesThoseThatFailToReplaceIt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 1 {
				return nil
			}
			return errLost
		}})
		s.page.Register("feed", c, nil)
		peer := s.accept()
		c.Rotate(1, reconnect.Advice{})
		for range 5 {
			s.accept()
		}
		got := s.one()
		require.Equal(t, []any{"ready", 0, uint64(1)}, []any{got.Condition, got.Lost, got.Session})
		peer.Fail(errLost)
		synctest.Wait()
		got = s.one()
		require.Equal(t, 1, got.Lost)
		require.Len(t, got.Sessions, 6)
		for i, x := range got.Sessions {
			require.Equal(t, []any{uint64(i + 1), false}, []any{x.Session, x.Live})
		}
	})
}

// A Conn that has ended by itself is the worst, and says why.
func TestAnEndByItselfIsTheWorst(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("ready", s.open(reconnect.Options{}), nil)
		s.accept()
		s.page.Register("away", s.open(reconnect.Options{}), nil)
		s.refuse(errLost)
		gone := s.open(reconnect.Options{})
		s.page.Register("gone", gone, nil)
		s.refuse(backoff.Permanent(&conn.CloseError{Code: 4000}))
		<-gone.Done()
		ended := s.open(reconnect.Options{})
		ended.Close()
		<-ended.Done()
		s.page.Register("closed", ended, nil)
		got := s.snapshot("")
		require.Equal(t, countsInfo{All: 4, Ended: 1, Away: 1, Ready: 1, Closed: 1}, got.Counts)
		var names, conditions []string
		for _, c := range got.Conns {
			names, conditions = append(names, c.Name), append(conditions, c.Condition)
		}
		require.Equal(t, []string{"gone", "away", "ready", "closed"}, names)
		require.Equal(t, []string{"ended", "away", "ready", "closed"}, conditions)
		require.Equal(t, "close_other", got.Conns[0].Cause.Reason)
		require.Equal(t, "shutdown", got.Conns[3].Cause.Reason)
	})
}

// A Conn that was registered after its end is shown as one that was registered before.
func TestAnEndBeforeTheRegistrationIsShown(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.page.Register("early", c, nil)
		s.refuse(backoff.Permanent(&conn.CloseError{Code: 4000}))
		<-c.Done()
		s.page.Register("late", c, nil)
		got := s.snapshot("")
		require.Equal(t, countsInfo{All: 2, Ended: 2}, got.Counts)
		require.Equal(t, got.Conns[0].Cause, got.Conns[1].Cause)
		require.Equal(t, got.Conns[0].AwaySince, got.Conns[1].AwaySince)
	})
}

// No hook waits for whoever looks.
func TestALookHoldsUpNoConnection(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		release := make(chan struct{})
		s.page.Register("feed", s.open(reconnect.Options{}), &ConnOptions{Subscriptions: func() (int, int) { <-release; return 0, 0 }})
		s.page.RegisterValues("mine", func() []Value { <-release; return nil })
		done := make(chan int, 1)
		go func() { done <- get(s.page, "/").Code }()
		synctest.Wait()
		for range 5 {
			s.accept().Fail(errLost)
		}
		s.accept()
		close(release)
		require.Equal(t, http.StatusOK, <-done)
		require.Equal(t, uint64(6), s.one().Session)
	})
}

func TestSlowFunctionsAreEvents(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }}), nil)
		s.accept().Deliver(conn.TextMessage("planted-secret"))
		time.Sleep(2 * time.Minute)
		require.Contains(t, kindsOf(s.one().Events), "slow_handler")
	})
}

// A wait for a login has its own event and cause, in which no text of the peer is shown.
func TestAWaitForALoginIsShown(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Hour}}})
		require.NoError(t, err)
		s.page.Register("feed", s.open(reconnect.Options{
			Run:       reconnect.RunOptions{Logins: l},
			OnSession: func(_ context.Context, o *reconnect.Opening) error { return o.Write(conn.TextMessage("login")) },
		}), nil)
		peer := s.accept()
		time.Sleep(10 * time.Minute)
		peer.Fail(errLost)
		synctest.Wait()
		const text = "the budget of logins allows no login now: the next is at 2000-01-01T01:00:00Z"
		require.Equal(t, "logins", s.one().Cause.Reason)
		require.Equal(t, text, s.one().Cause.Text)
		events := s.one().Events
		require.Equal(t, "waits for 50 min before try 1: "+text+" (verdict: retry)", events[len(events)-1].Text)
	})
}

func TestADamagedRecordOfLoginsIsNamed(t *testing.T) {
	err := &budget.LoginError{Next: time.Unix(0, 0), Err: fmt.Errorf("%w: /secret/path", budget.ErrDamaged)}
	require.Equal(t, "the budget of logins allows no login now: the next is at 1970-01-01T00:00:00Z, because the record of logins is damaged",
		causeOf(err, time.Time{}).Text)
}
