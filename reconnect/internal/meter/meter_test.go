package meter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/meter"
	"github.com/redial-go/redial/reconnect/subscription"
)

func TestAwayIsFromTheLossToTheNextReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open("feed", reconnect.Options{})
		time.Sleep(7 * time.Second)
		require.Equal(t, 7*time.Second, s.away("feed"))
		peer := s.accept()
		require.Zero(t, s.away("feed"))
		peer.Fail(io.EOF)
		synctest.Wait()
		time.Sleep(5 * time.Second)
		require.Equal(t, 5*time.Second, s.away("feed"))
		s.refuse(io.EOF)
		require.Equal(t, 11*time.Second, s.away("feed"), "over a dial that failed")
		s.accept()
		require.Zero(t, s.away("feed"))
	})
}

func TestStatesAddUpToTheConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open("", reconnect.Options{})
		s.accept()
		s.open("", reconnect.Options{})
		synctest.Wait()
		require.Equal(t, [4]uint64{1, 0, 1, 0}, s.totals("").States)
		s.refuse(io.EOF)
		require.Equal(t, [4]uint64{0, 0, 1, 1}, s.totals("").States)
		require.Equal(t, 2, s.totals("").Conns)
	})
}

func TestWaitsForALoginAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: time.Hour}}})
		require.NoError(t, err)
		require.NoError(t, l.Take(t.Context()))
		for range 2 {
			s.open("feed", reconnect.Options{Run: reconnect.RunOptions{Logins: l}})
		}
		s.open("feed", reconnect.Options{})
		s.refuse(io.EOF)
		require.Equal(t, uint64(3), s.totals("feed").States[reconnect.StateWaiting])
		require.Equal(t, uint64(2), s.totals("feed").Logins)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, uint64(1), s.totals("feed").Logins, "one of the two dials for it")
	})
}

func TestTheNextProbeOfAGateIsKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1})
		require.NoError(t, err)
		for range 3 {
			s.open("feed", reconnect.Options{Run: reconnect.RunOptions{Host: "host", Gate: g}})
		}
		require.Zero(t, s.totals("feed").Probe, "the host is up")
		s.refuse(io.EOF)
		require.Equal(t, g.Outlook("host").Next, s.totals("feed").Probe)
		require.True(t, s.totals("feed").Probe.After(time.Now()))
		time.Sleep(time.Until(s.totals("feed").Probe))
		synctest.Wait()
		require.Zero(t, s.totals("feed").Probe, "it is under way")
	})
}

func TestQueuesAreThoseOfAllConnectionsOfTheName(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := reconnect.Options{
			WhenDown: reconnect.WhenDownKeep,
			Outbox:   reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}},
		}
		for range 2 {
			c := s.open("feed", o)
			require.NoError(t, c.Send(reconnect.Outgoing{Message: conn.TextMessage("12345")}))
			time.Sleep(3 * time.Second)
		}
		got := s.totals("feed")
		require.Equal(t, uint64(2), got.Queued)
		require.Equal(t, uint64(10), got.QueuedBytes)
		require.Equal(t, 6*time.Second, time.Since(got.Waiting), "the oldest of all")
		s.accept().Deliver(conn.TextMessage("abc"))
		synctest.Wait()
		got = s.totals("feed")
		require.Equal(t, uint64(1), got.Unread)
		require.Equal(t, uint64(3), got.UnreadBytes)
		require.Equal(t, uint64(1), got.Received)
		require.Equal(t, uint64(3), got.ReceivedBytes)
		require.Equal(t, uint64(1), got.Written)
		require.Equal(t, uint64(5), got.WrittenBytes)
	})
}

// What is dropped because the Conn ends counts as well, though its hook End has come before.
func TestTheCountsOfAConnThatHasEndedStay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{
			WhenDown: reconnect.WhenDownKeep,
			Outbox:   reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}},
		})
		s.accept().Fail(io.EOF)
		synctest.Wait()
		require.NoError(t, c.Send(reconnect.Outgoing{Message: conn.TextMessage("12345")}))
		closeAndWait(c)
		for range 2 {
			got := s.totals("feed")
			require.Equal(t, uint64(1), got.Dropped)
			require.Zero(t, got.Conns, "it is in no gauge")
			require.True(t, got.EverConns)
			require.False(t, got.EverSets)
			require.Zero(t, got.States)
			require.Zero(t, got.Away)
		}
	})
}

func TestStopEndsTheMeasuring(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		stop := s.m.Watch(c, meter.Source{Name: "feed"})
		peer := s.accept()
		peer.Deliver(conn.TextMessage("1"))
		synctest.Wait()
		stop()
		stop()
		peer.Deliver(conn.TextMessage("2"))
		peer.Fail(io.EOF)
		synctest.Wait()
		got := s.totals("feed")
		require.Equal(t, uint64(1), got.Received)
		require.Zero(t, got.Conns)
		require.Equal(t, 0, s.count("feed seams false"))
	})
}

// Watch knows a session that was ready before.
func TestWatchSeesTheLossOfAnOlderSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		peer := s.accept()
		defer s.m.Watch(c, meter.Source{Name: "feed"})()
		require.Zero(t, s.away("feed"))
		peer.Fail(io.EOF)
		s.accept()
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, []float64{11}, s.observed("feed outage.duration false"))
	})
}

// A Conn that nobody measured until now has been away since it entered its state.
func TestWatchOfAConnThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		time.Sleep(4 * time.Second)
		defer s.m.Watch(c, meter.Source{Name: "feed"})()
		time.Sleep(time.Second)
		require.Equal(t, 5*time.Second, s.away("feed"))
	})
}

// Beside what is measured, the program gets its own hooks.
func TestTheTraceOfASourceIsCalledToo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		calls := 0
		mine := &reconnect.Trace{SessionStart: func(*reconnect.Session) { calls++ }}
		s.m.Trace(meter.Source{Name: "feed", Trace: func(meter.Key) *reconnect.Trace { return mine }}).SessionStart(nil)
		require.Equal(t, 1, calls)
		require.Equal(t, 1, s.count("feed sessions"))
		require.False(t, s.totals("feed").EverConns, "a Run is no Conn")
	})
}

func TestOneSetIsThereForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		s.m.Watch(c, meter.Source{Name: "feed", Sets: []func() subscription.Stats{func() subscription.Stats { return subscription.Stats{} }}})
		closeAndWait(c)
		require.True(t, s.totals("feed").EverSets)
		s.m.Trace(meter.Source{Name: "feed"}) // without sets
		require.True(t, s.totals("feed").EverSets)
	})
}

func TestNamesAreBounded(t *testing.T) {
	inBubbleWith(t, 2, func(t *testing.T, s *scene) {
		for i := range 4 {
			s.m.Trace(meter.Source{Name: fmt.Sprint("conn", i)}).SessionStart(nil)
		}
		s.m.Trace(meter.Source{Name: "conn1"}).SessionStart(nil)
		require.Equal(t, 1, s.count("conn0 sessions"))
		require.Equal(t, 2, s.count("conn1 sessions"))
		require.Equal(t, 2, s.count("other sessions"))
		require.Len(t, s.m.Collect(), 3)
	})
}

func TestNamesMayHaveNoLimit(t *testing.T) {
	for names, others := range map[int]int{-1: 0, 0: 0, 1: 2} {
		inBubbleWith(t, names, func(t *testing.T, s *scene) {
			for _, name := range []string{"a", "b", "c"} {
				s.m.Trace(meter.Source{Name: name}).SessionStart(nil)
			}
			require.Equal(t, others, s.count("other sessions"), "at most %d names", names)
		})
	}
}

func TestTheServerIsNoPartOfTheKeyUnlessItShallBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(&notes{t: t, counts: map[string]int{}, times: map[string][]float64{}}, meter.Options{})
		m.Trace(meter.Source{Name: "feed", Endpoint: "wss://feed.example/v1"})
		require.Equal(t, meter.Key{Name: "feed"}, m.Collect()[0].Key)
	})
}

// The spans of a connection have its name, however many names there are in the metrics.
func TestTheTraceOfASourceGetsItsOwnName(t *testing.T) {
	inBubbleWith(t, 1, func(t *testing.T, s *scene) {
		var got []string
		trace := func(k meter.Key) *reconnect.Trace { got = append(got, k.Name); return nil }
		for _, name := range []string{"a", "b"} {
			c := s.unmeasured(reconnect.Options{})
			s.m.Watch(c, meter.Source{Name: name, Trace: trace})
			closeAndWait(c)
		}
		require.Equal(t, []string{"a", "b"}, got)
	})
}

func TestANameThatIsNoTextIsMendedAndNoted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.m.Trace(meter.Source{Name: "a\xff"}).SessionStart(nil)
		require.Equal(t, 1, s.count("a? sessions"))
	})
}

// Each counter that has no open set of values is there before the first event, with 0.
func TestCountersBeginWithZero(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.m.Trace(meter.Source{Name: "feed"})
		for _, i := range meter.Instruments() {
			for _, v := range i.Zero {
				key := strings.TrimRight(strings.Join([]string{"feed", i.Name, v[0], v[1]}, " "), " ")
				if i.Kind == meter.Histogram {
					require.Contains(t, s.times, key)
				} else {
					require.Contains(t, s.counts, key)
				}
			}
		}
		require.Contains(t, s.counts, "feed seams false")
		require.Contains(t, s.counts, "feed ends failed")
	})
}

// Without a scrape, connections that have ended are not kept for ever.
func TestConnectionsThatHaveEndedAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for range 500 {
			closeAndWait(s.open("feed", reconnect.Options{}))
			require.LessOrEqual(t, s.m.Members(), 64)
		}
		require.Zero(t, s.totals("feed").Conns)
		require.Zero(t, s.m.Members())
		require.Equal(t, 500, s.count("feed ends closed"))
	})
}

// The search for Conns that have ended finds no others.
func TestConnectionsThatLiveAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for range 70 {
			s.open("feed", reconnect.Options{})
		}
		require.Equal(t, 70, s.totals("feed").Conns)
	})
}

// Of several connections that are away, the one that has been away for longest counts.
func TestTheLongestAwayCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for range 8 {
			s.open("feed", reconnect.Options{})
			time.Sleep(time.Second)
		}
		require.Equal(t, 8*time.Second, s.away("feed"))
	})
}

func TestALayerIsForOneConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := &reconnect.Options{Layers: []*reconnect.Layer{s.m.Layer(meter.Source{Name: "feed"})}}
		c, err := reconnect.New(s, o)
		require.NoError(t, err)
		_, err = reconnect.New(s, o)
		require.ErrorContains(t, err, "one Conn")
		closeAndWait(c)
	})
}

// New has failed because of a later layer, so that there is no Conn which could be Done.
func TestAConnThatNeverLivedIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		bad := &reconnect.Layer{Start: func(*reconnect.Conn) error { return errors.New("no") }}
		_, err := reconnect.New(s, &reconnect.Options{Layers: []*reconnect.Layer{s.m.Layer(meter.Source{Name: "feed"}), bad}})
		require.Error(t, err)
		require.Zero(t, s.m.Members())
		require.Zero(t, s.totals("feed").Conns)
	})
}

func TestSubscriptionsAreThereAsLongAsTheConnIs(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		stats := subscription.Stats{Wanted: 5, Held: 3, Refusals: 2, Unanswered: 1}
		c := s.unmeasured(reconnect.Options{})
		set := func() subscription.Stats { return stats }
		s.m.Watch(c, meter.Source{Name: "feed", Sets: []func() subscription.Stats{set, set}})
		got := s.totals("feed")
		require.Equal(t, 2, got.Sets)
		require.Equal(t, uint64(10), got.Wanted)
		require.Equal(t, uint64(6), got.Held)
		require.Equal(t, uint64(4), got.Refusals)
		closeAndWait(c)
		got = s.totals("feed")
		require.Zero(t, got.Sets)
		require.True(t, got.EverSets)
		require.Equal(t, uint64(4), got.Refusals)
		require.Equal(t, uint64(2), got.Unanswered)
	})
}

// A counter never goes down, whatever ends between two scrapes.
func TestCountersNeverGoDown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var last uint64
		grown := func(by uint64) {
			t.Helper()
			got := s.totals("feed").Received
			require.Equal(t, last+by, got)
			last = got
		}
		for i := range 10 {
			c := s.unmeasured(reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}})
			stop := s.m.Watch(c, meter.Source{Name: "feed"})
			peer := s.accept()
			peer.Deliver(conn.TextMessage("1"), conn.TextMessage("2"))
			synctest.Wait()
			if i%2 == 0 {
				grown(2)
			} else {
				last += 2
			}
			if i%3 == 0 {
				stop()
			}
			closeAndWait(c)
			grown(0)
			stop()
			grown(0)
		}
	})
}

// Scrapes, new connections and their ends may come at the same time.
func TestScrapesAndEndsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 50 {
				stop := s.m.Watch(s.unmeasured(reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}}), meter.Source{Name: "feed"})
				peer := s.accept()
				peer.Deliver(conn.TextMessage("1"))
				stop()
			}
		}()
		var last uint64
		for range 200 {
			got := s.totals("feed").Received
			require.GreaterOrEqual(t, got, last)
			last = got
			time.Sleep(time.Second / 3)
		}
		<-done
	})
}
