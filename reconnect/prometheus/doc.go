// Package promredial measures connections for Prometheus. It is a module of its own, because it needs
// client_golang.
//
//	m, err := promredial.New(nil)
//	...
//	prometheus.MustRegister(m)
//	...
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{m.Layer("feed")},
//	})
//
// [Metrics.Layer] measures a Conn from its first dial on. [Metrics.Watch] measures one that exists
// already, and [Metrics.Trace] a reconnect.Run. README.md has the table of the metrics, and alerts.yml
// has alerting rules.
//
// The package is not called prometheus like its directory, so that a file which imports it and
// client_golang needs to rename neither.
//
// # Promises
//
//  1. A message costs nothing: no hook is called for it. What a Conn counts anyway is read when
//     Prometheus asks.
//  2. A counter never goes down. The counts of a Conn that has ended stay in the sums of its name. In
//     the gauges it is no more.
//  3. Labels are bounded. Their values are closed sets, and never what a peer has said. The label name
//     is yours; see Options.Names and Options.NoNames.
//  4. Nothing runs here by itself: there are no goroutines and no timers. Nothing is global.
//
// # What it costs
//
// By the benchmarks of this package, on a machine with two cores: a session, from its dial to its
// loss, 1.5 µs and no allocation. A Conn 1.9 KiB of memory, beside the 4 KiB that it needs anyway. A
// scrape 0.5 µs for each Conn and 25 µs for each name. A name has about 120 time series, three
// quarters of which are the buckets of histograms. So for hundreds of connections that do the same,
// give all of them one name, or use Options.NoNames.
//
// # What cannot be seen
//
//   - Messages that the inbox has dropped (reconnect.OverflowDropOldest): count the seams with
//     Seam.Dropped.
//   - Messages whose fate is "written" are among those of sent_messages, which has those of OnSession
//     and Probe too, and these have no fate.
//   - The last error: no text gets into a label. See reconnect.Log and Conn.Status.
package promredial
