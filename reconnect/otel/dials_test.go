package otelredial_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	otelredial "github.com/redial-go/redial/reconnect/otel"
)

// attributes returns the attributes of a span as text.
func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, kv := range s.Attributes() {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// A loss, two dials that fail, and the return are three spans, each with a link to the one before.
func TestEachDialIsASpanWithALinkToTheOneBefore(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	synctest.Test(t, func(t *testing.T) {
		fakes := make(chan *conntest.Fake, 2)
		answers := []error{nil, syscall.ECONNREFUSED, errors.New("token=hunter2"), nil}
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(time.Second)
			err := answers[0]
			answers = answers[1:]
			if err != nil {
				return nil, err
			}
			f := conntest.NewFake(nil)
			fakes <- f
			return f.Conn(), nil
		}), &reconnect.Options{Layers: []*reconnect.Layer{s.Layer("feed")}})
		require.NoError(t, err)
		(<-fakes).Fail(io.EOF)
		<-fakes
		synctest.Wait()
		c.Close()
		<-c.Done()
	})
	spans := s.spans.Ended()
	require.Len(t, spans, 4)
	for i, span := range spans {
		require.Equal(t, "redial dial", span.Name())
		require.Equal(t, trace.SpanKindClient, span.SpanKind())
		require.False(t, span.Parent().IsValid(), "the root of a trace of its own")
		require.Equal(t, time.Second, span.EndTime().Sub(span.StartTime()))
		if i == 0 {
			require.Empty(t, span.Links())
			continue
		}
		require.Len(t, span.Links(), 1)
		require.Equal(t, spans[i-1].SpanContext().SpanID(), span.Links()[0].SpanContext.SpanID())
	}
	require.Equal(t, map[string]string{"redial.name": "feed", "redial.try": "1", "redial.outcome": "ok"}, attributes(spans[0]))
	require.Equal(t, codes.Unset, spans[0].Status().Code)
	require.Equal(t, "refused", attributes(spans[1])["error.type"])
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "refused"}, spans[1].Status())
	require.Equal(t, "_OTHER", attributes(spans[2])["error.type"])
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "other"}, spans[2].Status())
}

// The text of an error may hold a secret, such as that of a dialer of the user's.
func TestNoTextOfAnErrorIsInASpan(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	hooks := s.Trace("feed")
	hooks.DialStart(reconnect.DialStart{Try: 1})
	hooks.DialDone(reconnect.DialDone{Try: 1, Err: errors.New("token=hunter2")})
	span := s.spans.Ended()[0]
	require.Empty(t, span.Events())
	for _, kv := range append(span.Attributes(), attribute.String("status", span.Status().Description)) {
		require.NotContains(t, kv.Value.String(), "hunter2")
	}
	for point := range s.points() {
		require.False(t, strings.Contains(point, "hunter2"), point)
	}
}

// Two dials are under way, and the one that hangs ends last.
func TestTwoDialsAtOnce(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	hooks := s.Trace("feed")
	hooks.DialStart(reconnect.DialStart{Try: 1})
	hooks.DialHung(reconnect.DialHung{Try: 1})
	hooks.DialStart(reconnect.DialStart{Try: 2})
	hooks.DialDone(reconnect.DialDone{Try: 2})
	hooks.DialDone(reconnect.DialDone{Try: 1, Err: context.Canceled})
	spans := s.spans.Ended()
	require.Len(t, spans, 2)
	require.Equal(t, "2", attributes(spans[0])["redial.try"])
	require.Equal(t, "1", attributes(spans[1])["redial.try"])
	require.Equal(t, "canceled", attributes(spans[1])["redial.outcome"])
	require.Equal(t, codes.Unset, spans[1].Status().Code)
	require.Len(t, spans[1].Events(), 1)
	require.Equal(t, spans[1].SpanContext().SpanID(), spans[0].Links()[0].SpanContext.SpanID())
}

func TestADialThatHasBegunBeforeWatchHasNoSpan(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	hooks := s.Trace("feed")
	hooks.DialHung(reconnect.DialHung{Try: 1})
	hooks.DialDone(reconnect.DialDone{Try: 1})
	require.Empty(t, s.spans.Started())
	require.Equal(t, "1", s.points()["dials name=feed outcome=ok"])
}

func TestARunHasTheServerOfItsEndpoint(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	for _, endpoints := range [][]string{{"wss://feed.example/v1"}, {"wss://feed.example/v1", "wss://other.example/v1"}, nil} {
		hooks := s.Trace("feed", endpoints...)
		hooks.DialStart(reconnect.DialStart{Try: 1})
		hooks.DialDone(reconnect.DialDone{Try: 1})
	}
	spans := s.spans.Ended()
	require.Equal(t, "feed.example", attributes(spans[0])["server.address"])
	require.Equal(t, "443", attributes(spans[0])["server.port"])
	require.NotContains(t, attributes(spans[1]), "server.address", "nobody says which of them is dialed")
	require.NotContains(t, attributes(spans[2]), "server.address")
}

// Nobody will say how the dial has ended, so stop ends its span.
func TestStopEndsTheSpanOfADialUnderWay(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			if dials++; dials > 1 { // the first may begin before Watch
				<-ctx.Done()
			}
			return nil, errors.New("no")
		}), &reconnect.Options{Run: reconnect.RunOptions{OneConnection: true}})
		require.NoError(t, err)
		stop := s.Watch("feed", c)
		time.Sleep(5 * time.Second) // the first wait is shorter
		require.Len(t, s.spans.Started(), len(s.spans.Ended())+1)
		stop()
		started := s.spans.Started()
		require.Len(t, s.spans.Ended(), len(started))
		c.Close()
		<-c.Done()
		require.Len(t, s.spans.Started(), len(started))
	})
}

// An exporter would refuse the whole batch.
func TestANameThatIsNoTextIsMendedInSpans(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	hooks := s.Trace("a\xff")
	hooks.DialStart(reconnect.DialStart{Try: 1})
	hooks.DialDone(reconnect.DialDone{Try: 1})
	require.Equal(t, "a?", attributes(s.spans.Ended()[0])["redial.name"])
}

// feed is a dialer that says where it dials.
type feed struct {
	reconnect.DialFunc
	endpoint string
}

func (f feed) Endpoint() string { return f.endpoint }

// Spans and metrics have the server, by the semantic conventions, if it is one.
func TestTheServerIsAnAttribute(t *testing.T) {
	for endpoint, server := range map[string]map[string]string{
		"wss://feed.example/v1":            {"server.address": "feed.example", "server.port": "443"},
		"tls://[2001:db8::1]:7000":         {"server.address": "2001:db8::1", "server.port": "7000"},
		"wss://a.example, wss://b.example": {},
		"":                                 {},
	} {
		s := newScene(t, otelredial.Options{})
		synctest.Test(t, func(t *testing.T) {
			d := feed{func(context.Context) (conn.Conn, error) { return conntest.NewFake(nil).Conn(), nil }, endpoint}
			c, err := reconnect.New(d, &reconnect.Options{Layers: []*reconnect.Layer{s.Layer("feed")}})
			require.NoError(t, err)
			require.NoError(t, c.AwaitReady(t.Context()))
			where := ""
			for _, key := range []string{"server.address", "server.port"} {
				require.Equal(t, server[key], attributes(s.spans.Ended()[0])[key], endpoint)
				if server[key] != "" {
					where += " " + key + "=" + server[key]
				}
			}
			points := s.points()
			require.Equal(t, "1", points["dials name=feed outcome=ok"+where], endpoint)
			require.Equal(t, "1", points["connections name=feed state=ready"+where], endpoint)
			c.Close()
			<-c.Done()
		})
	}
}

// The error type is that of the semantic conventions, and only a dial that has failed has one.
func TestTheErrorTypeIsAnAttributeOfWhatHasFailed(t *testing.T) {
	s := newScene(t, otelredial.Options{})
	hooks := s.Trace("feed")
	for _, err := range []error{nil, context.Canceled, syscall.ECONNREFUSED, errors.New("?")} {
		hooks.DialDone(reconnect.DialDone{Err: err})
	}
	for _, r := range []backoff.Reason{backoff.ReasonHangup, backoff.ReasonRotated, backoff.ReasonShutdown} {
		hooks.SessionDone(reconnect.SessionDone{Session: 1, Cause: io.EOF, Reason: r})
	}
	points := s.points()
	for _, point := range []string{
		"dials name=feed outcome=ok", "dials name=feed outcome=canceled", "dials error.type=refused name=feed outcome=failed",
		"dials error.type=_OTHER name=feed outcome=failed", "session.duration error.type=hangup name=feed reason=hangup",
		"session.duration name=feed reason=rotated", "session.duration name=feed reason=shutdown",
	} {
		require.Contains(t, points, point)
	}
}
