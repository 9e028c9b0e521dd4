package otelredial_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	otelredial "github.com/redial-go/redial/reconnect/otel"
)

func TestAConnAndItsEndInTheMetrics(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	s.live("feed", func(ended bool) {
		points := s.points()
		for point, value := range map[string]string{
			"received.messages name=feed":                                "2",
			"received.bytes name=feed":                                   "5",
			"sent.messages name=feed":                                    "1",
			"sent.bytes name=feed":                                       "5",
			"dials name=feed outcome=ok":                                 "2",
			"dial.duration name=feed outcome=ok":                         "2 0",
			"seams name=feed planned=false":                              "1",
			"session.duration error.type=hangup name=feed reason=hangup": "1 20",
			"fates fate=unknown name=feed":                               "0",
		} {
			require.Equal(t, value, points[point], point)
		}
		for point, value := range map[string]string{
			"connections name=feed state=ready":     "1",
			"connections name=feed state=waiting":   "0",
			"connections name=feed state=ended":     "0",
			"away.timestamp name=feed":              "0",
			"unread.messages name=feed":             "2",
			"subscriptions name=feed status=held":   "2",
			"subscriptions name=feed status=wanted": "3",
		} {
			if ended {
				require.NotContains(t, points, point)
			} else {
				require.Equal(t, value, points[point], point)
			}
		}
	})
}

func TestConnectionsOfOneNameAreCountedTogether(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	s.live("", func(bool) {})
	s.live("", func(bool) {})
	points := s.points()
	require.Equal(t, "4", points["received.messages"])
	require.Equal(t, "4", points["dials outcome=ok"])
	for point := range points {
		require.NotContains(t, point, "name=", "the name is empty")
	}
}

func TestUnitsAndKindsFollowTheConventions(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	seen := map[string]string{}
	s.live("feed", func(ended bool) {
		if ended {
			return
		}
		for _, m := range s.metrics() {
			require.True(t, strings.HasPrefix(m.Name, "redial."), m.Name)
			require.NotEmpty(t, m.Description, m.Name)
			seen[m.Name] = m.Unit
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				require.Equal(t, metricdata.CumulativeTemporality, data.Temporality)
				require.True(t, strings.HasPrefix(m.Unit, "{") || m.Unit == "By", m.Name)
			default:
				require.Equal(t, "s", m.Unit, m.Name)
			}
		}
	})
	require.Equal(t, "s", seen["redial.dial.duration"])
	require.Equal(t, "By", seen["redial.received.bytes"])
	require.Equal(t, "{message}", seen["redial.received.messages"])
	require.Equal(t, "{connection}", seen["redial.connections"])
}

func TestStopEndsTheMeasuring(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return fake.Conn(), nil }), nil)
		require.NoError(t, err)
		stop := s.Watch("feed", c)
		require.NoError(t, c.AwaitReady(t.Context()))
		require.Equal(t, "1", s.points()["connections name=feed state=ready"])
		stop()
		stop()
		require.NotContains(t, s.points(), "connections name=feed state=ready")
		c.Close()
		<-c.Done()
	})
}

func TestCloseEndsTheReading(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	s.live("feed", func(ended bool) {
		if ended {
			require.Contains(t, s.points(), "received.messages name=feed")
		}
	})
	require.NoError(t, s.Close())
	require.NotContains(t, s.points(), "received.messages name=feed")
}

// Without providers, those of the program serve, which do nothing until it sets others.
func TestTheGlobalProvidersAreTheDefault(t *testing.T) {
	telemetry, err := otelredial.New(nil)
	require.NoError(t, err)
	trace := telemetry.Trace("feed")
	trace.DialStart(reconnect.DialStart{Try: 1})
	trace.DialDone(reconnect.DialDone{Try: 1})
	require.NoError(t, telemetry.Close())
}
