package otelredial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
	otelredial "github.com/redial-go/redial/reconnect/otel"
	"github.com/redial-go/redial/reconnect/subscription"
)

// With more names than the default, each of which has all sets of attributes that there are, the SDK
// drops no name.
func TestTheDefaultOfNamesFitsTheLimitOfTheSDK(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	s.fill(100, func(points map[string]string) {
		wantNames(t, points, 76) // with "other"
		require.Equal(t, "25", points["connections name=other state=ready"])
	})
}

// The rule of the documentation for more names holds.
func TestMoreNamesWithALargerLimitOfTheSDK(t *testing.T) {
	const names = 100
	s := newScene(t, otelredial.Options{Names: names}, sdkmetric.WithCardinalityLimit(26*(names+2)))
	s.fill(names+1, func(points map[string]string) { wantNames(t, points, names+1) })
}

// wantNames asserts that each point has a name, and that there are as many points as those names have.
func wantNames(t *testing.T, points map[string]string, names int) {
	t.Helper()
	count := map[string]int{}
	for point := range points {
		require.Contains(t, point, " name=")
		instrument, _, _ := strings.Cut(point, " ")
		count[instrument]++
	}
	require.Equal(t, 26*names, count["dials"])
	for _, i := range meter.Instruments() {
		sets := 1
		for _, l := range i.Labels {
			sets *= len(l.Values)
		}
		if i.Name != "dials" {
			require.Equal(t, sets*names, count[i.Name], i.Name)
		}
	}
}

// fill makes so many connections, each with a name of its own and all sets of attributes that there
// can be, and calls check with the points.
func (s *scene) fill(n int, check func(points map[string]string)) {
	synctest.Test(s.t, func(t *testing.T) {
		for i := range n {
			name := fmt.Sprint("feed", i)
			happen(s.Trace(name))
			c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return conntest.NewFake(nil).Conn(), nil }),
				&reconnect.Options{Layers: []*reconnect.Layer{s.Layer(name, func() (none subscription.Stats) { return none })}})
			require.NoError(t, err)
			defer func() { c.Close(); <-c.Done() }()
		}
		synctest.Wait()
		check(s.points())
	})
}

// happen calls hooks with all that can happen.
func happen(t *reconnect.Trace) {
	session := &reconnect.Session{Number: 1}
	for _, err := range []error{nil, errors.New("no"), context.Canceled} {
		t.GateDone(reconnect.GateDone{Err: err})
		t.DialDone(reconnect.DialDone{Err: err})
		t.ProbeDone(reconnect.ProbeDone{Err: err})
		t.RotateDone(reconnect.RotateDone{Err: err})
		t.ConnDone(reconnect.ConnDone{Err: err})
	}
	for r := backoff.ReasonOther; r <= backoff.ReasonLogins; r++ {
		t.DialDone(reconnect.DialDone{Err: reasonError(r)})
		t.SessionStart(session)
		t.SessionReady(session)
		t.SessionDone(reconnect.SessionDone{Session: 1, Ready: 1, Reason: r, Planned: r == backoff.ReasonRotated})
	}
	for _, i := range meter.Instruments() {
		if i.Name == "overdue" {
			for _, function := range i.Labels[0].Values {
				t.Overdue(reconnect.Overdue{What: function})
			}
		}
	}
	t.DialHung(reconnect.DialHung{})
	t.WaitDone(reconnect.WaitDone{})
	t.SlowHandler(reconnect.SlowHandler{})
}

// reasonError is an error with a reason.
type reasonError backoff.Reason

func (reasonError) Error() string            { return "an error with a reason" }
func (e reasonError) Reason() backoff.Reason { return backoff.Reason(e) }
