package run_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 14: hooks come in order and in pairs.
func TestTraceSeesEachStep(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = scene.Recorder(&seen)
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept().Fail(scene.ErrLost)
		s.WantDial().Accept()
		scene.CloseAndWait(c)
		require.Equal(t, []string{
			"dial", "dialed lost", "wait", "waited",
			"dial", "dialed ok", "session 1", "ready 1", "session 1 ended", "wait", "waited",
			"dial", "dialed ok", "session 2", "ready 2", "session 2 ended", "end",
		}, seen.All())
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

// Every event carries the name of the connection, and so does the log.
func TestEventsCarryTheNameOfTheConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		s.Fake = scene.Alive
		// Note the name in each event.
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Name, o.Run.Gate, o.Run.Host = "feed", &scene.Gate{}, "h"
		o.Run.Trace = &reconnect.Trace{
			GateStart:    func(e reconnect.GateStart) { n.Add(e.Name) },
			GateDone:     func(e reconnect.GateDone) { n.Add(e.Name) },
			DialStart:    func(e reconnect.DialStart) { n.Add(e.Name) },
			DialDone:     func(e reconnect.DialDone) { n.Add(e.Name) },
			SessionStart: func(e *reconnect.Session) { n.Add(e.Name) },
			SessionReady: func(e *reconnect.Session) { n.Add(e.Name) },
			SessionDone:  func(e reconnect.SessionDone) { n.Add(e.Name) },
			WaitStart:    func(e reconnect.WaitStart) { n.Add(e.Name) },
			WaitDone:     func(e reconnect.WaitDone) { n.Add(e.Name) },
			ProbeStart:   func(e reconnect.ProbeStart) { n.Add(e.Name) },
			ProbeDone:    func(e reconnect.ProbeDone) { n.Add(e.Name) },
			ConnDone:     func(e reconnect.ConnDone) { n.Add(e.Name) },
		}
		// A dial that fails, a session with a probe, a loss, and the end.
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		peer := s.WantDial().Accept()
		time.Sleep(11 * time.Second)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		scene.CloseAndWait(c)
		// All have the name.
		require.Equal(t, slices.Repeat([]string{"feed"}, 18), n.All())
	})
}

// Events that come only when something takes long carry the name too.
func TestEventsOfWhatTakesLongCarryTheNameOfTheConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.Name = "feed"
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
		o.Run.Trace = &reconnect.Trace{
			DialHung:    func(e reconnect.DialHung) { n.Add("hung " + e.Name) },
			SlowHandler: func(e reconnect.SlowHandler) { n.Add("slow " + e.Name) },
			Overdue:     func(e reconnect.Overdue) { n.Add("overdue " + e.Name) },
		}
		c := s.Open(&o)
		s.WantDial().Connected()
		scene.Deliver(s.WantDial().Accept(), 1, 1)
		time.Sleep(50 * time.Second)
		scene.CloseAndWait(c)
		require.Equal(t, []string{"hung feed", "slow feed", "overdue feed"}, slices.Compact(n.All()))
	})
}
