package otelredial

import (
	"context"
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
	tracer     trace.Tracer
	attributes []attribute.KeyValue // of each span

	mu   sync.Mutex         // guards what follows
	open map[int]trace.Span // the dials under way, two at most, by their tries; nil: stop was called
	last trace.Link         // to the newest
}

func newDials(tracer trace.Tracer, k meter.Key) *dials {
	return &dials{tracer: tracer, attributes: of(k), open: map[int]trace.Span{}}
}

func (d *dials) hooks() *reconnect.Trace {
	return &reconnect.Trace{DialStart: d.start, DialHung: d.hung, DialDone: d.done}
}

func (d *dials) start(e reconnect.DialStart) {
	d.mu.Lock()
	last, stopped := d.last, d.open == nil
	d.mu.Unlock()
	if stopped {
		return
	}
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(d.attributes...),
		trace.WithAttributes(attribute.Int(prefix+"try", e.Try)),
	}
	if last.SpanContext.IsValid() {
		options = append(options, trace.WithLinks(last))
	}
	_, span := d.tracer.Start(context.Background(), "redial dial", options...)
	d.mu.Lock()
	d.last = trace.Link{SpanContext: span.SpanContext()}
	if stopped = d.open == nil; !stopped {
		d.open[e.Try] = span
	}
	d.mu.Unlock()
	if stopped {
		span.End()
	}
}

func (d *dials) hung(e reconnect.DialHung) {
	d.mu.Lock()
	span := d.open[e.Try]
	d.mu.Unlock()
	if span != nil {
		span.AddEvent("handshake not answered in time")
	}
}

// done ends the span, with the kind of the error. The span has no text of the error, because a dialer of
// the user may put a secret there.
func (d *dials) done(e reconnect.DialDone) {
	d.mu.Lock()
	span := d.open[e.Try]
	delete(d.open, e.Try)
	d.mu.Unlock()
	if span == nil { // it has begun before Watch, or stop was called
		return
	}
	outcome, reason := meter.Judge(e.Err)
	span.SetAttributes(attribute.String(prefix+"outcome", outcome))
	if outcome == meter.Failed {
		span.SetAttributes(errorType(reason))
		span.SetStatus(codes.Error, reason)
	}
	span.End()
}

// end ends the spans of the dials under way, whose ends will not be seen.
func (d *dials) end() {
	d.mu.Lock()
	open := d.open
	d.open = nil
	d.mu.Unlock()
	for _, span := range open {
		span.End()
	}
}
