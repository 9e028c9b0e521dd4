package reconnect_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Promise 14: hooks come in order and in pairs.
func TestTraceSeesEachStep(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := withPolicy(every(time.Second))
		o.Run.Trace = recorder(&seen)
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().accept()
		closeAndWait(c)
		require.Equal(t, []string{
			"dial", "dialed lost", "wait", "waited",
			"dial", "dialed ok", "session 1", "ready 1", "session 1 ended", "wait", "waited",
			"dial", "dialed ok", "session 2", "ready 2", "session 2 ended", "end",
		}, seen.all())
	})
}

// Every hook of each trace is called, in the order of the traces. A hook that this test
// cannot reach by name would be missing from JoinTraces.
func TestJoinedTracesAllGetEachEvent(t *testing.T) {
	var seen []string
	noting := func(who string) *reconnect.Trace {
		trace := &reconnect.Trace{}
		for hook, at := range reflect.ValueOf(trace).Elem().Fields() {
			if !hook.IsExported() {
				continue
			}
			at.Set(reflect.MakeFunc(hook.Type, func([]reflect.Value) []reflect.Value {
				seen = append(seen, who+" "+hook.Name)
				return nil
			}))
		}
		return trace
	}
	both := reflect.ValueOf(reconnect.JoinTraces(noting("a"), nil, noting("b"))).Elem()
	for field, hook := range both.Fields() {
		name := field.Name
		if !field.IsExported() {
			continue
		}
		require.False(t, hook.IsNil(), name)
		seen = nil
		hook.Call([]reflect.Value{reflect.Zero(hook.Type().In(0))})
		require.Equal(t, []string{"a " + name, "b " + name}, seen)
	}
}

// What no trace observes costs nothing.
func TestJoinedTracesHaveNoHookThatNoneOfThemHas(t *testing.T) {
	called := 0
	one := &reconnect.Trace{ConnDone: func(reconnect.ConnDone) { called++ }}
	both := reconnect.JoinTraces(one, &reconnect.Trace{}, nil)
	require.Nil(t, both.DialStart)
	both.ConnDone(reconnect.ConnDone{})
	require.Equal(t, 1, called)
	require.Equal(t, &reconnect.Trace{}, reconnect.JoinTraces())
}

// recorder returns a Trace that notes each event.
func recorder(n *notes) *reconnect.Trace {
	number := func(s uint64) string { return string('0' + rune(s)) }
	return &reconnect.Trace{
		DialStart: func(reconnect.DialStart) { n.add("dial") },
		DialDone: func(d reconnect.DialDone) {
			if d.Err == nil {
				n.add("dialed ok")
			} else {
				n.add("dialed " + d.Err.Error())
			}
		},
		SessionStart: func(s *reconnect.Session) { n.add("session " + number(s.Number)) },
		SessionReady: func(s *reconnect.Session) { n.add("ready " + number(s.Number)) },
		SessionDone:  func(e reconnect.SessionDone) { n.add("session " + number(e.Session) + " ended") },
		WaitStart:    func(reconnect.WaitStart) { n.add("wait") },
		WaitDone:     func(reconnect.WaitDone) { n.add("waited") },
		ConnDone:     func(reconnect.ConnDone) { n.add("end") },
	}
}

// Every event carries the name of the connection, and so does the log.
func TestEventsCarryTheNameOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		s.fake = alive
		// Note the name in each event.
		o := withPolicy(every(time.Second))
		o.Run.Name, o.Run.Gate, o.Run.Host = "feed", &gate{}, "h"
		o.Run.Trace = &reconnect.Trace{
			GateStart:    func(e reconnect.GateStart) { n.add(e.Name) },
			GateDone:     func(e reconnect.GateDone) { n.add(e.Name) },
			DialStart:    func(e reconnect.DialStart) { n.add(e.Name) },
			DialDone:     func(e reconnect.DialDone) { n.add(e.Name) },
			SessionStart: func(e *reconnect.Session) { n.add(e.Name) },
			SessionReady: func(e *reconnect.Session) { n.add(e.Name) },
			SessionDone:  func(e reconnect.SessionDone) { n.add(e.Name) },
			WaitStart:    func(e reconnect.WaitStart) { n.add(e.Name) },
			WaitDone:     func(e reconnect.WaitDone) { n.add(e.Name) },
			ProbeStart:   func(e reconnect.ProbeStart) { n.add(e.Name) },
			ProbeDone:    func(e reconnect.ProbeDone) { n.add(e.Name) },
			ConnDone:     func(e reconnect.ConnDone) { n.add(e.Name) },
		}
		// A dial that fails, a session with a probe, a loss, and the end.
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(11 * time.Second)
		peer.Fail(errLost)
		synctest.Wait()
		closeAndWait(c)
		// All have the name.
		require.Equal(t, slices.Repeat([]string{"feed"}, 18), n.all())
	})
}

// Events that come only when something takes long carry the name too.
func TestEventsOfWhatTakesLongCarryTheNameOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		s.fake = alive
		o := withPolicy(hanging{})
		o.Run.Name = "feed"
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
		o.Run.Trace = &reconnect.Trace{
			DialHung:    func(e reconnect.DialHung) { n.add("hung " + e.Name) },
			SlowHandler: func(e reconnect.SlowHandler) { n.add("slow " + e.Name) },
			Overdue:     func(e reconnect.Overdue) { n.add("overdue " + e.Name) },
		}
		c := s.open(&o)
		s.wantDial().connected()
		deliver(s.wantDial().accept(), 1, 1)
		time.Sleep(50 * time.Second)
		closeAndWait(c)
		require.Equal(t, []string{"hung feed", "slow feed", "overdue feed"}, slices.Compact(n.all()))
	})
}
