package promredial

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/meter"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Metrics measures connections. It is a [prometheus.Collector]: register it once. Any goroutine may call
// its methods. Metrics needs no Close.
type Metrics struct {
	meter    *meter.Meter
	recorder *recorder
	descs    map[*meter.Instrument]*prometheus.Desc // of the instruments that are read in a scrape
}

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Namespace is the first word of the names of the metrics: letters, digits and underscores.
	// Default: "redial".
	Namespace string

	// Names is how many names there may be. Connections beyond that share the name "other". A
	// name is kept for ever, because counters must not vanish, and has about 130 time series. Default:
	// 100. Negative: no limit.
	Names int
}

// word matches a valid namespace. The client library allows more, but queries are easier without.
var word = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New returns a Metrics that measures nothing yet. The error names the option that is wrong.
func New(o *Options) (*Metrics, error) {
	if o == nil {
		o = &Options{}
	}
	namespace, names := cmp.Or(o.Namespace, "redial"), cmp.Or(o.Names, 100)
	if !word.MatchString(namespace) {
		return nil, fmt.Errorf("promredial: Options.Namespace: %q: want letters, digits and underscores, and no digit first", namespace)
	}
	m := &Metrics{descs: map[*meter.Instrument]*prometheus.Desc{}, recorder: &recorder{
		counters: map[*meter.Instrument]*prometheus.CounterVec{}, histograms: map[*meter.Instrument]*prometheus.HistogramVec{},
	}}
	for _, i := range meter.Instruments() {
		name, labels := metricName(namespace, i), []string{"name"}
		for _, l := range i.Labels {
			labels = append(labels, l.Name)
		}
		switch {
		case i.Collected():
			m.descs[i] = prometheus.NewDesc(name, i.Help, labels, nil)
		case i.Kind == meter.Counter:
			m.recorder.counters[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: i.Help}, labels)
		default:
			m.recorder.histograms[i] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: i.Help, Buckets: i.Buckets}, labels)
		}
	}
	m.meter = meter.New(m.recorder, meter.Options{Names: names})
	return m, nil
}

// Layer returns a layer for the Options of one Conn, and measures that Conn from its first dial until its
// end. The label name has the value name. The sets are the subscriptions of the Conn, such as set.Stats
// of a subscription.Set. reconnect.New returns an error if the layer belongs to another Conn already.
func (m *Metrics) Layer(name string, sets ...func() subscription.Stats) *reconnect.Layer {
	return m.meter.Layer(meter.Source{Name: name, Sets: sets})
}

// Watch measures a Conn that exists already, until the Conn has ended or stop is called. The counts that
// the Conn keeps, such as messages, begin with the Conn; events, such as dials, are counted from the next
// event on. An outage that has begun before is not measured. Name and sets are as for Layer. A Conn that
// is watched twice, or that has a Layer too, is counted twice. Calls of stop after the first do nothing. A
// Conn that has ended needs no stop.
func (m *Metrics) Watch(name string, c *reconnect.Conn, sets ...func() subscription.Stats) (stop func()) {
	return m.meter.Watch(c, meter.Source{Name: name, Sets: sets})
}

// Trace returns the hooks for one reconnect.Run; make others for each Run. A Run has no Conn, so only the
// metrics of dials, sessions, waits and outages are there. Once a Run has ended by itself, the gauge of connections
// has it in the state ended, until Trace is called with its name again.
func (m *Metrics) Trace(name string) *reconnect.Trace {
	return m.meter.Trace(meter.Source{Name: name})
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.recorder.each(func(c prometheus.Collector) { c.Describe(ch) })
	for _, d := range m.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	all := m.meter.Collect() // first, so that a connection whose counts are there has its events too
	m.recorder.each(func(c prometheus.Collector) { c.Collect(ch) })
	for i, desc := range m.descs {
		kind := prometheus.GaugeValue
		if i.Kind == meter.Counter {
			kind = prometheus.CounterValue
		}
		for _, t := range all {
			i.Read(t, func(value float64, v meter.Values) {
				ch <- prometheus.MustNewConstMetric(desc, kind, value, labelValues(i, t.Key, v)...)
			})
		}
	}
}

// recorder hands events to the client library.
type recorder struct {
	counters   map[*meter.Instrument]*prometheus.CounterVec
	histograms map[*meter.Instrument]*prometheus.HistogramVec
}

// each calls f with all metrics.
func (r *recorder) each(f func(prometheus.Collector)) {
	for _, c := range r.counters {
		f(c)
	}
	for _, h := range r.histograms {
		f(h)
	}
}

// Start implements [meter.Recorder].
func (r *recorder) Start(i *meter.Instrument, k meter.Key, v meter.Values) {
	labels := labelValues(i, k, v)
	if i.Kind == meter.Counter {
		r.counters[i].WithLabelValues(labels...)
	} else {
		r.histograms[i].WithLabelValues(labels...)
	}
}

// Add implements [meter.Recorder].
func (r *recorder) Add(i *meter.Instrument, k meter.Key, v meter.Values) {
	r.counters[i].WithLabelValues(labelValues(i, k, v)...).Inc()
}

// Observe implements [meter.Recorder].
func (r *recorder) Observe(i *meter.Instrument, k meter.Key, v meter.Values, seconds float64) {
	r.histograms[i].WithLabelValues(labelValues(i, k, v)...).Observe(seconds)
}

// metricName returns the name of a metric, such as "redial_dial_duration_seconds".
func metricName(namespace string, i *meter.Instrument) string {
	name := namespace + "_" + strings.ReplaceAll(i.Name, ".", "_")
	if i.Unit == "s" {
		name += "_seconds"
	}
	if i.Kind == meter.Counter {
		name += "_total"
	}
	return name
}

// labelValues returns the values of the labels: name, and those of the instrument.
func labelValues(i *meter.Instrument, k meter.Key, v meter.Values) []string {
	return append(append(make([]string, 0, 3), k.Name), v[:len(i.Labels)]...)
}
