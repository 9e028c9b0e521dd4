// Package otelredial measures connections, and traces their dials, with OpenTelemetry. The package is a
// separate module, because it needs the API of OpenTelemetry. It does not need the SDK.
//
//	t, err := otelredial.New(nil) // the global providers
//	...
//	defer t.Close()
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{t.Layer("feed")},
//	})
//
// [Telemetry.Layer] measures a Conn from its first dial on. [Telemetry.Watch] measures a Conn that exists
// already, and [Telemetry.Trace] measures a reconnect.Run. README.md has the table of the instruments.
// The instruments are the same as in reconnect/prometheus: an exporter to Prometheus writes
// redial.dial.duration as redial_dial_duration_seconds. OpenTelemetry has no conventions for connections
// that are kept open. The units and the form of the names follow its general conventions. The attributes
// server.address, server.port and error.type are those of its semantic conventions.
//
// The package is not called otel like its directory, so that a file which imports it and
// go.opentelemetry.io/otel needs to rename neither.
//
// # Spans
//
// Each dial is a span, "redial dial". The span is the root of a new trace, and has a link to the dial
// before, so that one can walk through an outage. Its attributes are redial.name, redial.try,
// redial.outcome, server.address, server.port and, if the dial has failed, error.type with the kind of
// the error (see backoff.Reason; "_OTHER" if it is none of those). The server of a Conn is that of
// Conn.Endpoint; the server of a Run is that of the endpoint given to Trace. With several endpoints, or
// none, the server is left out, because it is not known. A session has no span, because a session may
// last for days. Nothing is written to the wire: no header, no trace context.
//
// # Promises
//
//  1. A message costs nothing: no hook is called for it. The Conn counts messages anyway, and the
//     MeterProvider reads these counts.
//  2. A counter never goes down. The counts of a Conn that has ended stay in the sums of its name. A
//     Conn that has ended is in no gauge. There is one exception: a Conn that has ended by itself is in
//     redial.connections with the state ended until a Conn is made with its name, which is its
//     successor, or until the function that Watch returned is called.
//  3. Attributes are bounded. Their values are closed sets, and never a text of a peer or an error.
//     The program chooses the name and the server; see Options.Names.
//  4. The package has no goroutine and no timer, and changes nothing global.
//
// # What it costs
//
// By the benchmarks of this package, on a machine with two cores:
//
//   - A session costs 3.5 µs and 15 allocations (0.4 KB) from its dial to its loss. With a span that
//     the SDK records, it costs 5.5 µs and 27 allocations (2.1 KB).
//   - A Conn costs 3.0 KiB of memory, beside the 4 KiB that it needs anyway.
//   - A collection costs 0.5 µs for each Conn and 20 µs for each name.
//   - A name has about 40 sets of attributes.
//
// So give one name to hundreds of connections that do the same. The empty name leaves the attribute out.
//
// The SDK keeps 2000 sets of attributes for each instrument; a set beyond that loses its name. A name has
// 26 sets of redial.dials at most, and fewer of each other instrument. So there are 75 names by default.
// For more names, such as 500, raise both limits:
//
//	sdkmetric.NewMeterProvider(sdkmetric.WithCardinalityLimit(26*(500+2)), ...)
//	otelredial.New(&otelredial.Options{Names: 500, ...})
//
// # Not measured
//
//   - Messages that the inbox has dropped (reconnect.InboxDropOldest): count the seams with
//     Seam.Dropped.
//   - Messages with the fate "written". The instrument redial.sent.messages counts them together with
//     the messages of OnSession and Probe, which have no fate.
//   - The text of an error: see reconnect.Log and Conn.Status.
package otelredial
