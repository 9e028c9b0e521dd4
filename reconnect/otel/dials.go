package otelredial

import (
	"context"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// dials makes the spans for the dials of one connection. Each span is the root of a new trace, and has a
// link to the dial before.
type dials struct {
	tracer trace.Tracer
	name   string

	mu    sync.Mutex // guards what follows
	open  []dial     // those under way: two at most
	last  trace.Link // to the newest
	ended bool
}

// dial is a dial under way.
type dial struct {
	try  int
	span trace.Span
}

func newDials(tracer trace.Tracer, name string) *dials {
	return &dials{tracer: tracer, name: strings.ToValidUTF8(name, "?")}
}

func (d *dials) hooks() *reconnect.Trace {
	return &reconnect.Trace{DialStart: d.start, DialHung: d.hung, DialDone: d.done}
}

func (d *dials) start(e reconnect.DialStart) {
	d.mu.Lock()
	last, ended := d.last, d.ended
	d.mu.Unlock()
	if ended {
		return
	}
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int(prefix+"try", e.Try)),
	}
	if d.name != "" {
		options = append(options, trace.WithAttributes(nameKey.String(d.name)))
	}
	if last.SpanContext.IsValid() {
		options = append(options, trace.WithLinks(last))
	}
	_, span := d.tracer.Start(context.Background(), "redial dial", options...)
	d.mu.Lock()
	d.last = trace.Link{SpanContext: span.SpanContext()}
	if ended = d.ended; !ended {
		d.open = append(d.open, dial{e.Try, span})
	}
	d.mu.Unlock()
	if ended {
		span.End()
	}
}

func (d *dials) hung(e reconnect.DialHung) {
	d.mu.Lock()
	i := d.index(e.Try)
	var span trace.Span
	if i >= 0 {
		span = d.open[i].span
	}
	d.mu.Unlock()
	if span != nil {
		span.AddEvent("handshake not answered in time")
	}
}

// done ends the span, with the kind of the error. The span has no text of the error, because a dialer of
// the user's may put a secret there.
func (d *dials) done(e reconnect.DialDone) {
	d.mu.Lock()
	i := d.index(e.Try)
	if i < 0 { // it has begun before Watch, or stop was called
		d.mu.Unlock()
		return
	}
	span := d.open[i].span
	d.open = slices.Delete(d.open, i, i+1)
	d.mu.Unlock()
	outcome, reason := meter.Judge(e.Err)
	span.SetAttributes(attribute.String(prefix+"outcome", outcome))
	if outcome == meter.Failed {
		span.SetAttributes(attribute.String("error.type", reason))
		span.SetStatus(codes.Error, reason)
	}
	span.End()
}

// index returns which of the dials under way is a try, or -1. d.mu is locked.
func (d *dials) index(try int) int {
	return slices.IndexFunc(d.open, func(x dial) bool { return x.try == try })
}

// end ends the spans of the dials under way. Their ends are not observed any more.
func (d *dials) end() {
	d.mu.Lock()
	open := d.open
	d.open, d.ended = nil, true
	d.mu.Unlock()
	for _, x := range open {
		x.span.End()
	}
}
