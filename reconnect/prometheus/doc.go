// Package promredial measures connections for Prometheus. The package is a separate module, because it
// needs client_golang.
//
//	m, err := promredial.New(nil)
//	...
//	prometheus.MustRegister(m)
//	...
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{m.Layer("feed")},
//	})
//
// [Metrics.Layer] measures a Conn from its first dial on. [Metrics.Watch] measures a Conn that exists
// already, and [Metrics.Trace] measures a reconnect.Run. README.md has the table of the metrics, and
// alerts.yml has alerting rules, and dashboard.json is a Grafana dashboard.
//
// The package is not called prometheus like its directory, so that a file which imports it and
// client_golang needs to rename neither.
//
// # Promises
//
//  1. A message costs nothing: no hook is called for it. The Conn counts messages anyway, and a
//     scrape reads these counts.
//  2. A counter never goes down. The counts of a Conn that has ended stay in the sums of its name. A
//     Conn that has ended is in no gauge. There is one exception: a Conn that has ended by itself is in
//     redial_connections{state="ended"} until a Conn is made with its name, which is its successor, or
//     until the function that Watch returned is called.
//  3. Labels are bounded. Their values are closed sets, and never a text of a peer. The program
//     chooses the label name; see Options.Names.
//  4. The package has no goroutine, no timer and no global state.
//
// # What it costs
//
// By the benchmarks of this package, on a machine with two cores:
//
//   - A session costs 1.5 µs from its dial to its loss, and no allocation.
//   - A Conn costs 2.0 KiB of memory, beside the 4 KiB that it needs anyway.
//   - A scrape costs 0.5 µs for each Conn and 25 µs for each name.
//   - A name has about 130 time series, three quarters of them buckets of histograms, and 17 more for
//     each further reason for which sessions have ended. So the 100 names of the default of
//     Options.Names are 13,000 time series and more.
//
// So give one name to hundreds of connections that do the same. Prometheus takes the empty name for no
// label at all.
//
// # Not measured
//
//   - Messages that the inbox has dropped (reconnect.InboxDropOldest): count the seams with
//     Seam.Dropped.
//   - Messages with the fate "written". The metric sent_messages counts them together with the
//     messages of OnSession and Probe, which have no fate.
//   - The last error, because no text gets into a label: see reconnect.Log and Conn.Status.
package promredial
