// Package otelredial measures connections, and traces their dials, with OpenTelemetry. It is a module of
// its own, because it needs the API of OpenTelemetry; it does not need the SDK.
//
//	t, err := otelredial.New(nil) // the global providers
//	...
//	defer t.Close()
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{t.Layer("feed")},
//	})
//
// [Telemetry.Layer] measures a Conn from its first dial on. [Telemetry.Watch] measures one that exists
// already, and [Telemetry.Trace] a reconnect.Run. README.md has the table of the instruments. They are
// those of reconnect/prometheus: an exporter to Prometheus writes redial.dial.duration as
// redial_dial_duration_seconds. OpenTelemetry has no conventions for connections that are kept open;
// the units and the form of the names are as its general conventions want them.
//
// The package is not called otel like its directory, so that a file which imports it and
// go.opentelemetry.io/otel needs to rename neither.
//
// # Spans
//
// Each dial is a span, "redial dial", the root of a trace of its own, with a link to the dial before, so
// that one can walk through an outage. Its attributes are redial.name, redial.try, redial.outcome and,
// if it has failed, error.type with the kind of the error (see backoff.Reason). A session has no span,
// because it may last for days. Nothing is written to the wire: no header, no trace context.
//
// # Promises
//
//  1. A message costs nothing: no hook is called for it. What a Conn counts anyway is read when the
//     MeterProvider asks.
//  2. A counter never goes down. The counts of a Conn that has ended stay in the sums of its name. In
//     the gauges it is no more.
//  3. Attributes are bounded. Their values are closed sets, and never what a peer or an error has said.
//     The name is yours; see Options.Names and Options.NoNames.
//  4. Nothing runs here by itself: there are no goroutines and no timers. Nothing global is changed.
//
// # What it costs
//
// By the benchmarks of this package, on a machine with two cores: a session, from its dial to its
// loss, 3.5 µs and 17 allocations (0.6 KB); with a span that the SDK records, 5.5 µs and 28
// allocations (2.1 KB). A Conn 2.6 KiB of memory, beside the 4 KiB that it needs anyway. A collection
// 0.5 µs for each Conn and 20 µs for each name. A name has about 40 sets of attributes. So for
// hundreds of connections that do the same, give all of them one name, or use Options.NoNames.
//
// The SDK keeps 2000 sets of attributes for each instrument, and what is beyond loses its name. A
// name has 25 sets of redial.dials at most, and fewer of each other instrument. So there are 75
// names by default, and the connections beyond share the name "other". To have more, raise both
// limits, such as for 500 names:
//
//	sdkmetric.NewMeterProvider(sdkmetric.WithCardinalityLimit(25*(500+2)), ...)
//	otelredial.New(&otelredial.Options{Names: 500, ...})
//
// # What cannot be seen
//
//   - Messages that the inbox has dropped (reconnect.OverflowDropOldest): count the seams with
//     Seam.Dropped.
//   - Messages whose fate is "written" are among those of redial.sent.messages, which has those of
//     OnSession and Probe too, and these have no fate.
//   - The text of an error. See reconnect.Log and Conn.Status.
package otelredial
