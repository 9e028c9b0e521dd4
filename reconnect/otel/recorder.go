package otelredial

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// prefix is the first word of the names of instruments and attributes.
const prefix = "redial."

// nameKey is the attribute for the name of a connection. The others are those of the semantic
// conventions of OpenTelemetry.
const (
	nameKey    = attribute.Key(prefix + "name")
	addressKey = attribute.Key("server.address")
	portKey    = attribute.Key("server.port")
	errorKey   = attribute.Key("error.type")
)

// of returns the attributes of a key: those that are known.
func of(k meter.Key) (list []attribute.KeyValue) {
	if k.Name != "" {
		list = append(list, nameKey.String(k.Name))
	}
	if k.Address != "" {
		list = append(list, addressKey.String(k.Address))
	}
	if k.Address != "" && k.Port != 0 {
		list = append(list, portKey.Int(k.Port))
	}
	return list
}

// recorder hands events to the instruments.
type recorder struct {
	counters   map[*meter.Instrument]metric.Int64Counter
	histograms map[*meter.Instrument]metric.Float64Histogram
	sets       sync.Map // from a series to its metric.MeasurementOption; as many as there are series
}

// series is one set of attributes of one instrument.
type series struct {
	i *meter.Instrument
	k meter.Key
	v meter.Values
}

// make makes the instrument for events.
func (r *recorder) make(m metric.Meter, i *meter.Instrument) (err error) {
	if i.Kind == meter.Counter {
		r.counters[i], err = m.Int64Counter(prefix+i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help))
		return err
	}
	r.histograms[i], err = m.Float64Histogram(prefix+i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help),
		metric.WithExplicitBucketBoundaries(i.Buckets...))
	return err
}

// Start implements [meter.Recorder]. There is no empty histogram in OpenTelemetry.
func (r *recorder) Start(i *meter.Instrument, k meter.Key, v meter.Values) {
	if i.Kind == meter.Counter {
		r.counters[i].Add(context.Background(), 0, r.attributes(i, k, v))
	}
}

// Add implements [meter.Recorder].
func (r *recorder) Add(i *meter.Instrument, k meter.Key, v meter.Values) {
	r.counters[i].Add(context.Background(), 1, r.attributes(i, k, v))
}

// Observe implements [meter.Recorder].
func (r *recorder) Observe(i *meter.Instrument, k meter.Key, v meter.Values, seconds float64) {
	r.histograms[i].Record(context.Background(), seconds, r.attributes(i, k, v))
}

// attributes returns the attributes of a series, made once.
func (r *recorder) attributes(i *meter.Instrument, k meter.Key, v meter.Values) metric.MeasurementOption {
	key := series{i, k, v}
	if o, ok := r.sets.Load(key); ok {
		return o.(metric.MeasurementOption)
	}
	list := of(k)
	for j, l := range i.Labels {
		isReason := l.Name == "reason"
		if !isReason || i.Name == "session.duration" { // a session that has ended without an error has a reason, too
			list = append(list, attribute.String(prefix+l.Name, v[j]))
		}
		if isReason && failure(i, v[j]) {
			list = append(list, errorType(v[j]))
		}
	}
	o, _ := r.sets.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(list...)))
	return o.(metric.MeasurementOption)
}

// failure reports whether a reason is that of an error. A session that has ended because of a rotation or
// a shutdown has no error.
func failure(i *meter.Instrument, reason string) bool {
	if i.Name == "session.duration" {
		return reason != backoff.ReasonShutdown.String() && reason != backoff.ReasonRotated.String()
	}
	return reason != meter.None
}

// errorType returns the attribute for the reason of a failure. For an error that is none of the known ones the
// conventions have the word "_OTHER".
func errorType(reason string) attribute.KeyValue {
	if reason == backoff.ReasonOther.String() {
		reason = "_OTHER"
	}
	return errorKey.String(reason)
}

// newObservable makes an instrument that is read in a collection. Times are numbers with a fraction.
func newObservable(m metric.Meter, i *meter.Instrument) (metric.Observable, error) {
	switch i.Kind {
	case meter.Counter:
		return m.Int64ObservableCounter(prefix+i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help))
	case meter.UpDown:
		return m.Int64ObservableUpDownCounter(prefix+i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help))
	default:
		return m.Float64ObservableGauge(prefix+i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help))
	}
}

// observe reports a value of an instrument that newObservable has made.
func observe(o metric.Observer, to metric.Observable, value float64, with metric.MeasurementOption) {
	switch to := to.(type) {
	case metric.Int64Observable:
		o.ObserveInt64(to, int64(value), with)
	case metric.Float64Observable:
		o.ObserveFloat64(to, value, with)
	}
}
