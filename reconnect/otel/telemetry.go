package otelredial

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/meter"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Telemetry measures connections, and makes a span for each dial. Any goroutine may call its methods.
type Telemetry struct {
	meter    *meter.Meter
	tracer   trace.Tracer
	recorder recorder

	registration metric.Registration // of the callback that reads the counts
}

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// MeterProvider makes the instruments. Default: the global one at the time of New.
	MeterProvider metric.MeterProvider

	// TracerProvider makes the spans of dials; one of package trace/noop makes none. Default: the
	// global one at the time of New.
	TracerProvider trace.TracerProvider

	// Names is how many names there may be in the metrics. A name counts once for each server that its
	// connections dial. Connections beyond that share the name "other", and have no server. Default: 75.
	// Negative: no limit. The default fits the SDK's limit of 2000 sets of attributes for each
	// instrument; if you raise Names, raise that limit as well: see the documentation of the package.
	Names int
}

// namesDefault is the default of Options.Names. It leaves room for another reason.
const namesDefault = 75

// scope is the name of the instrumentation.
const scope = "github.com/redial-go/redial/reconnect/otel"

// New makes the instruments. The error wraps the error of the MeterProvider. Close the Telemetry when no
// connection uses it any more.
func New(o *Options) (*Telemetry, error) {
	if o == nil {
		o = &Options{}
	}
	opts := *o
	opts.Names = cmp.Or(opts.Names, namesDefault)
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	t := &Telemetry{
		tracer: opts.TracerProvider.Tracer(scope),
		recorder: recorder{
			counters: map[*meter.Instrument]metric.Int64Counter{}, histograms: map[*meter.Instrument]metric.Float64Histogram{},
		},
	}
	t.meter = meter.New(&t.recorder, meter.Options{Names: opts.Names, Servers: true})
	if err := t.instruments(opts.MeterProvider.Meter(scope)); err != nil {
		return nil, fmt.Errorf("otelredial: %w", err)
	}
	return t, nil
}

// instruments makes the instruments, and registers the callback.
func (t *Telemetry) instruments(m metric.Meter) error {
	read := map[*meter.Instrument]metric.Observable{}
	var all []metric.Observable
	for _, i := range meter.Instruments() {
		if !i.Collected() {
			if err := t.recorder.make(m, i); err != nil {
				return err
			}
			continue
		}
		observable, err := newObservable(m, i)
		if err != nil {
			return err
		}
		read[i] = observable
		all = append(all, observable)
	}
	var err error
	t.registration, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, totals := range t.meter.Collect() {
			for i, observable := range read {
				i.Read(totals, func(value float64, v meter.Values) {
					observe(o, observable, value, t.recorder.attributes(i, totals.Key, v))
				})
			}
		}
		return nil
	}, all...)
	return err
}

// Close ends the reading of counts and states. Events are recorded until the connections have ended. The
// error is the error of the MeterProvider.
func (t *Telemetry) Close() error { return t.registration.Unregister() }

// Layer returns a layer for the Options of one Conn, and measures that Conn from its first dial until its
// end. The attribute redial.name has the value name. The sets are the subscriptions of the Conn, such as
// set.Stats of a subscription.Set. reconnect.New returns an error if the layer belongs to another Conn
// already.
func (t *Telemetry) Layer(name string, sets ...func() subscription.Stats) *reconnect.Layer {
	return t.meter.Layer(meter.Source{Name: name, Sets: sets, Trace: func(k meter.Key) *reconnect.Trace {
		return newDials(t.tracer, k).hooks()
	}})
}

// Watch measures a Conn that exists already, until the Conn has ended or stop is called. The counts that
// the Conn keeps, such as messages, begin with the Conn; events, such as dials, are counted from the next
// event on. A dial that has begun before has no span, and an outage that has begun before is not
// measured. Name and sets are as for Layer. A Conn that is watched twice, or that has a Layer too, is
// counted twice. stop ends the span of a dial under way. Calls of stop after the first do nothing. A Conn
// that has ended needs no stop.
func (t *Telemetry) Watch(name string, c *reconnect.Conn, sets ...func() subscription.Stats) (stop func()) {
	var d *dials
	unwatch := t.meter.Watch(c, meter.Source{Name: name, Sets: sets, Trace: func(k meter.Key) *reconnect.Trace {
		d = newDials(t.tracer, k)
		return d.hooks()
	}})
	return sync.OnceFunc(func() {
		unwatch()
		d.end()
	})
}

// Trace returns the hooks for one reconnect.Run; make others for each Run. A Run has no Conn, so only the
// spans and the metrics of dials, sessions, waits and outages are there, and the gauge of connections once the Run has
// ended by itself. The endpoint is the URL or host:port that the Run dials, for server.address and server.port. Without
// an endpoint, and with several, these are left out.
func (t *Telemetry) Trace(name string, endpoint ...string) *reconnect.Trace {
	return t.meter.Trace(meter.Source{Name: name, Endpoint: strings.Join(endpoint, ","), Trace: func(k meter.Key) *reconnect.Trace {
		return newDials(t.tracer, k).hooks()
	}})
}
