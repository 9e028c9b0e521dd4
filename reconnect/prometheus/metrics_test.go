package promredial_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	promredial "github.com/redial-go/redial/reconnect/prometheus"
	"github.com/redial-go/redial/reconnect/subscription"
)

func newMetrics(t *testing.T, o *promredial.Options) *promredial.Metrics {
	t.Helper()
	m, err := promredial.New(o)
	require.NoError(t, err)
	return m
}

// wantLine asserts that an exposition has a line.
func wantLine(t *testing.T, text, line string) {
	t.Helper()
	if name, _, _ := strings.Cut(line, "{"); !strings.Contains("\n"+text, "\n"+line+"\n") {
		var like []string
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, name) {
				like = append(like, l)
			}
		}
		t.Errorf("no %s, but\n%s", line, strings.Join(like, ""))
	}
}

// live lets a Conn live for a while in virtual time: a session of 20 s with 2 messages, a loss, the
// return. It runs check before the Conn is closed, and after.
func live(t *testing.T, m *promredial.Metrics, name string, check func(ended bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		peers := make(chan *conntest.Fake, 2)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			f := conntest.NewFake(nil)
			peers <- f
			return f.Conn(), nil
		}), &reconnect.Options{Layers: []*reconnect.Layer{m.Layer(name, func() subscription.Stats {
			return subscription.Stats{Wanted: 3, Held: 2}
		})}})
		require.NoError(t, err)
		peer := <-peers
		peer.Deliver(conn.TextMessage("abc"), conn.TextMessage("de"))
		time.Sleep(20 * time.Second)
		require.NoError(t, c.Write(t.Context(), conn.TextMessage("hello")))
		peer.Fail(io.EOF)
		<-peers
		synctest.Wait()
		check(false)
		c.Close()
		<-c.Done()
		check(true)
	})
}

func TestAConnAndItsEndInTheExposition(t *testing.T) {
	m := newMetrics(t, nil)
	live(t, m, "feed", func(ended bool) {
		text := exposition(t, m)
		for _, line := range []string{
			`redial_received_messages_total{name="feed"} 2`,
			`redial_received_bytes_total{name="feed"} 5`,
			`redial_sent_messages_total{name="feed"} 1`,
			`redial_sent_bytes_total{name="feed"} 5`,
			`redial_dials_total{name="feed",outcome="ok",reason="none"} 2`,
			`redial_seams_total{name="feed",planned="false"} 1`,
			`redial_session_duration_seconds_sum{name="feed",reason="hangup"} 20`,
			`redial_outage_duration_seconds_count{name="feed",planned="false"} 1`,
			`redial_fates_total{fate="unknown",name="feed"} 0`,
		} {
			wantLine(t, text, line)
		}
		for _, line := range []string{
			`redial_connections{name="feed",state="ready"} 1`,
			`redial_connections{name="feed",state="ended"} 0`,
			`redial_flapping_connections{name="feed"} 0`,
			`redial_away_timestamp_seconds{name="feed"} 0`,
			`redial_unread_messages{name="feed"} 2`,
			`redial_subscriptions{name="feed",status="held"} 2`,
		} {
			if ended {
				name, _, _ := strings.Cut(line, "{")
				require.False(t, strings.Contains(text, "\n"+name+"{"), name)
			} else {
				wantLine(t, text, line)
			}
		}
	})
}

func TestStopEndsTheMeasuring(t *testing.T) {
	m := newMetrics(t, nil)
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return fake.Conn(), nil }), nil)
		require.NoError(t, err)
		stop := m.Watch("feed", c)
		require.NoError(t, c.AwaitReady(t.Context()))
		wantLine(t, exposition(t, m), `redial_connections{name="feed",state="ready"} 1`)
		stop()
		require.NotContains(t, exposition(t, m), "redial_connections{")
		c.Close()
		<-c.Done()
	})
}

func TestConnectionsOfOneNameAreCountedTogether(t *testing.T) {
	m := newMetrics(t, &promredial.Options{Namespace: "app"})
	live(t, m, "", func(bool) {})
	live(t, m, "", func(bool) {})
	text := exposition(t, m)
	wantLine(t, text, `app_received_messages_total{name=""} 4`)
	wantLine(t, text, `app_dials_total{name="",outcome="ok",reason="none"} 4`)
}

func TestAWrongOptionIsNamed(t *testing.T) {
	_, err := promredial.New(&promredial.Options{Namespace: "my app"})
	require.ErrorContains(t, err, "Options.Namespace")
}

// A name costs as many time series as the documentation says, and the default of Names bounds them.
func TestTheDefaultOfNamesBoundsTheTimeSeries(t *testing.T) {
	m := newMetrics(t, nil)
	samples := func() int {
		return strings.Count("\n"+exposition(t, m), "\nredial_")
	}
	one := 0
	live(t, m, "feed", func(ended bool) {
		if !ended {
			one = samples()
		}
	})
	require.Equal(t, 134, one)
	for i := range 1000 {
		m.Trace(fmt.Sprint("feed", i))
	}
	require.Less(t, samples(), 101*one)
	wantLine(t, exposition(t, m), `redial_dials_total{name="other",outcome="ok",reason="none"} 0`)
}

// Two programs' parts may each have a Metrics, if their namespaces differ.
func TestTwoMetricsInOneRegistry(t *testing.T) {
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(newMetrics(t, nil)))
	require.Error(t, r.Register(newMetrics(t, nil)))
	require.NoError(t, r.Register(newMetrics(t, &promredial.Options{Namespace: "other"})))
}

// No name of a metric breaks a rule of Prometheus.
func TestLint(t *testing.T) {
	m := newMetrics(t, nil)
	live(t, m, "feed", func(bool) {})
	problems, err := testutil.CollectAndLint(m)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	m := newMetrics(t, nil)
	var text string
	live(t, m, "feed", func(ended bool) {
		if !ended {
			text = exposition(t, m)
		}
	})
	promtool(t, text, "check", "metrics")
}

func TestPromtoolAcceptsTheAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml")
}

// promtool runs promtool, which must be content.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not there")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if len(args) > 1 && args[1] == "metrics" {
		require.Empty(t, string(out))
	}
}
