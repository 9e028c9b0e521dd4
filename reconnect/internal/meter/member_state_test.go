package meter_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// The gauges of states and of moments: what a Conn is, and since when.

// gauge returns the measurements of a gauge, by the value of its label.
func (s *scene) gauge(instrument, name string) map[string]float64 {
	all := map[string]float64{}
	for _, i := range meter.Instruments() {
		if t := s.totals(name); i.Name == instrument {
			i.Read(&t, func(value float64, v meter.Values) { all[v[0]] = value })
		}
	}
	return all
}

// die makes a Conn that gives up, and does not ask the Meter for anything.
func (s *scene) die(name string) *reconnect.Conn {
	c := s.open(name, reconnect.Options{})
	s.refuse(backoff.Permanent(errors.New("gone")))
	<-c.Done()
	return c
}

// A Conn that has given up before the first Collect is counted until another Conn takes its place.
func TestAConnThatHasGivenUpStaysUntilItsSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.die("feed")
		s.die("other feed")
		for range 2 {
			require.Equal(t, 1.0, s.gauge("connections", "feed")["ended"])
			time.Sleep(24 * time.Hour)
		}
		s.open("feed", reconnect.Options{})
		s.accept()
		require.Equal(t, map[string]float64{
			"connecting": 0, "at_gate": 0, "opening": 0, "ready": 1, "waiting": 0, "ended": 0,
		}, s.gauge("connections", "feed"))
		require.Equal(t, 1.0, s.gauge("connections", "other feed")["ended"])
	})
}

// A successor takes the place of one connection that has ended, not of all with its name.
func TestEachSuccessorTakesOnePlace(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open("feed", reconnect.Options{})
		s.open("feed", reconnect.Options{})
		s.refuse(backoff.Permanent(errors.New("gone")))
		s.refuse(backoff.Permanent(errors.New("gone")))
		require.Equal(t, 2.0, s.gauge("connections", "feed")["ended"])
		s.open("feed", reconnect.Options{})
		require.Equal(t, 1.0, s.gauge("connections", "feed")["ended"])
	})
}

func TestAConnThatTheProgramHasClosedIsNotAmongTheEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		closeAndWait(s.open("feed", reconnect.Options{}))
		require.Empty(t, s.gauge("connections", "feed"))
	})
}

// Each of two Conns with one name is forgotten by its own stop.
func TestStopForgetsOneConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var stops []func()
		for range 2 {
			c := s.unmeasured(reconnect.Options{})
			stops = append(stops, s.m.Watch(c, meter.Source{Name: "feed"}))
		}
		for range 2 {
			s.refuse(backoff.Permanent(errors.New("gone")))
		}
		require.Equal(t, 2.0, s.gauge("connections", "feed")["ended"])
		stops[0]()
		require.Equal(t, 1.0, s.gauge("connections", "feed")["ended"])
	})
}

func TestStopForgetsAConnThatHasGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		stop := s.m.Watch(c, meter.Source{Name: "feed"})
		s.refuse(backoff.Permanent(errors.New("gone")))
		<-c.Done()
		late := s.m.Watch(c, meter.Source{Name: "late"})
		require.Equal(t, 1.0, s.gauge("connections", "feed")["ended"])
		require.Equal(t, 1.0, s.gauge("connections", "late")["ended"], "it had ended before Watch")
		stop()
		late()
		require.Empty(t, s.gauge("connections", "feed"))
		require.Empty(t, s.gauge("connections", "late"))
	})
}

// closed is a gate that lets nobody through.
type closed struct{}

func (closed) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestConnectionsAtAGateAreNotConnecting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for range 3 {
			s.open("feed", reconnect.Options{Run: reconnect.RunOptions{Host: "host", Gate: closed{}}})
		}
		s.open("feed", reconnect.Options{})
		synctest.Wait()
		got := s.gauge("connections", "feed")
		require.Equal(t, 3.0, got["at_gate"])
		require.Equal(t, 1.0, got["connecting"])
	})
}

// A connection that is lost again and again is flapping. Many connections that are lost once each are not.
func TestAConnectionFlapsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		lose := func() {
			s.accept().Fail(io.EOF)
			time.Sleep(10 * time.Second)
		}
		for range 6 {
			s.open("many", reconnect.Options{})
			lose()
			s.accept()
		}
		require.Equal(t, 0.0, s.gauge("flapping.connections", "many")[""])

		s.open("feed", reconnect.Options{})
		lose()
		first := time.Now().Add(-10 * time.Second) // when it was lost
		for range 3 {
			lose()
		}
		require.Equal(t, 0.0, s.gauge("flapping.connections", "feed")[""])
		lose()
		require.Equal(t, 1.0, s.gauge("flapping.connections", "feed")[""])
		s.accept()
		time.Sleep(time.Until(first.Add(15*time.Minute - 1)))
		require.Equal(t, 1.0, s.gauge("flapping.connections", "feed")[""])
		time.Sleep(time.Nanosecond)
		require.Equal(t, 0.0, s.gauge("flapping.connections", "feed")[""])
	})
}

// A rotation is failing from its third dial that fails on, until it has ended, if the session is ready meanwhile.
func TestRotationFailsAfterThreeDials(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		failing := func() float64 { return s.gauge("failing_rotations", "feed")[""] }
		c := s.open("feed", reconnect.Options{})
		for range 5 {
			s.refuse(io.EOF)
		}
		peer := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		require.True(t, c.Status().Rotating)
		require.Zero(t, failing()) // the dials that have failed were others'
		for range 2 {
			s.refuse(io.EOF)
		}
		require.Zero(t, failing())
		s.refuse(io.EOF)
		require.Equal(t, 1.0, failing())
		peer.Fail(io.EOF) // an outage, which other instruments show
		synctest.Wait()
		require.Zero(t, failing())
		s.refuse(io.EOF)
		require.Zero(t, failing())
		s.accept()
		require.Zero(t, failing())
		c.Rotate(2, reconnect.Advice{})
		for range 4 {
			s.refuse(io.EOF)
		}
		require.Equal(t, 1.0, failing())
		s.accept()
		require.Zero(t, failing())
		time.Sleep(time.Minute) // until session 2 has ended
		c.Rotate(3, reconnect.Advice{})
		for range 3 {
			s.refuse(io.EOF)
		}
		require.Equal(t, 1.0, failing())
		s.refuse(backoff.Permanent(io.EOF)) // which ends the rotation
		require.Zero(t, failing())
		c.Rotate(3, reconnect.Advice{})
		synctest.Wait()
		require.Equal(t, []any{reconnect.StateReady, true}, []any{c.State(), c.Status().Rotating})
		require.Zero(t, failing())
	})
}

func TestARotationIsNoFlapping(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapBreakFirst}})
		s.accept()
		for i := range uint64(6) {
			c.Rotate(i+1, reconnect.Advice{})
			synctest.Wait()
			s.accept()
		}
		require.Equal(t, 6, s.count("feed seams true"))
		require.Equal(t, 0.0, s.gauge("flapping.connections", "feed")[""])
	})
}

// A gauge of a moment is the moment itself, so that it does not move while nothing happens.
func TestMomentsAreSecondsSince1970(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		moment := func(instrument string) float64 { return s.gauge(instrument, "feed")[""] }
		s.fake = conntest.FakeOptions{Pings: true}
		start := float64(time.Now().Unix())
		c := s.open("feed", reconnect.Options{
			WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}},
			OnMessage: func(context.Context, reconnect.Message) {},
		})
		time.Sleep(7 * time.Second)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: conn.TextMessage("x")}))
		for range 2 {
			time.Sleep(3 * time.Second)
			require.Equal(t, start, moment("away.timestamp"))
			require.Equal(t, start+7, moment("queue.oldest.timestamp"))
			require.Zero(t, moment("last_byte.timestamp"))
		}
		peer := s.accept() // 1 s later
		time.Sleep(2 * time.Second)
		peer.Deliver(conn.TextMessage("y"))
		synctest.Wait()
		for range 2 {
			time.Sleep(time.Second / 2)
			require.Zero(t, moment("away.timestamp"))
			require.Zero(t, moment("queue.oldest.timestamp"))
			require.Equal(t, start+16, moment("last_byte.timestamp"))
		}
	})
}
