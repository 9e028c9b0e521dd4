package promredial

import (
	"fmt"
	"regexp"
	"strings"
	"time"

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
	named    bool                                   // there is a label name
}

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Namespace is the first word of the names of the metrics: letters, digits and underscores.
	// Default: "redial".
	Namespace string

	// NoNames leaves the label name out, so that all connections are counted together: a counter
	// is the sum, and a gauge of a time is the longest time. Default: the label is there.
	NoNames bool

	// Names is how many names there may be. Connections beyond that share the name "other". A
	// name is kept for ever, because counters must not vanish. With NoNames, Names is an error.
	// Default: 1000. Negative: no limit.
	Names int

	// NativeHistograms adds native histograms to the histograms with buckets, for a Prometheus
	// that reads them. They cost up to 2 KiB of memory for each name and histogram. Default:
	// false.
	NativeHistograms bool
}

// New returns a Metrics that measures nothing yet. The error names the option that is wrong.
func New(o *Options) (*Metrics, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Metrics{descs: map[*meter.Instrument]*prometheus.Desc{}, named: !opts.NoNames}
	m.recorder = &recorder{
		counters: map[*meter.Instrument]*prometheus.CounterVec{}, histograms: map[*meter.Instrument]*prometheus.HistogramVec{}, named: m.named,
	}
	for _, i := range meter.Instruments() {
		if i.Read != nil {
			m.descs[i] = prometheus.NewDesc(metricName(opts.Namespace, i), i.Help, labelNames(i, m.named), nil)
		} else {
			m.recorder.make(i, &opts)
		}
	}
	m.meter = meter.New(m.recorder, meter.Options{Names: opts.Names, NoNames: opts.NoNames})
	return m, nil
}

// word matches a valid namespace. The client library allows more, but queries are easier without.
var word = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	opts := *o
	if opts.Namespace == "" {
		opts.Namespace = "redial"
	}
	switch {
	case !word.MatchString(opts.Namespace):
		return opts, fmt.Errorf("promredial: Options.Namespace: %q: want letters, digits and underscores, and no digit first", opts.Namespace)
	case opts.NoNames && opts.Names != 0:
		return opts, fmt.Errorf("promredial: Options.Names: %d has no effect with NoNames: set one of the two", opts.Names)
	}
	return opts, nil
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
// metrics of dials, sessions, waits and outages are there.
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
				ch <- prometheus.MustNewConstMetric(desc, kind, value, labelValues(i, m.named, t.Name, v)...)
			})
		}
	}
}

// recorder hands events to the client library.
type recorder struct {
	counters   map[*meter.Instrument]*prometheus.CounterVec
	histograms map[*meter.Instrument]*prometheus.HistogramVec
	named      bool
}

// make makes the metric of an instrument.
func (r *recorder) make(i *meter.Instrument, o *Options) {
	name, labels := metricName(o.Namespace, i), labelNames(i, r.named)
	if i.Kind == meter.Counter {
		r.counters[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: i.Help}, labels)
		return
	}
	h := prometheus.HistogramOpts{Name: name, Help: i.Help, Buckets: i.Buckets}
	if o.NativeHistograms {
		h.NativeHistogramBucketFactor = 1.2 // about 4 buckets for each doubling
		h.NativeHistogramMaxBucketNumber = 100
		h.NativeHistogramMinResetDuration = time.Hour
	}
	r.histograms[i] = prometheus.NewHistogramVec(h, labels)
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
func (r *recorder) Start(i *meter.Instrument, name string, v meter.Values) {
	labels := labelValues(i, r.named, name, v)
	if i.Kind == meter.Counter {
		r.counters[i].WithLabelValues(labels...)
	} else {
		r.histograms[i].WithLabelValues(labels...)
	}
}

// Add implements [meter.Recorder].
func (r *recorder) Add(i *meter.Instrument, name string, v meter.Values) {
	r.counters[i].WithLabelValues(labelValues(i, r.named, name, v)...).Inc()
}

// Observe implements [meter.Recorder].
func (r *recorder) Observe(i *meter.Instrument, name string, v meter.Values, seconds float64) {
	r.histograms[i].WithLabelValues(labelValues(i, r.named, name, v)...).Observe(seconds)
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

// labelNames returns the labels of an instrument.
func labelNames(i *meter.Instrument, named bool) []string {
	var names []string
	if named {
		names = append(names, "name")
	}
	for _, l := range i.Labels {
		names = append(names, l.Name)
	}
	return names
}

// labelValues returns the values of the labels, in the order of labelNames.
func labelValues(i *meter.Instrument, named bool, name string, v meter.Values) []string {
	all := make([]string, 0, 3)
	if named {
		all = append(all, name)
	}
	return append(all, v[:len(i.Labels)]...)
}
