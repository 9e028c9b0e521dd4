// Package meter turns the events and the counts of connections into measurements with names, units
// and labels. The modules reconnect/prometheus and reconnect/otel hand the measurements to their
// libraries, so that both have the same instruments:
//
//	m := meter.New(recorder, meter.Options{Names: 100})
//	options.Layers = append(options.Layers, m.Layer(meter.Source{Name: "feed"}))
//	...
//	for _, t := range m.Collect() { ... } // in a scrape
//
// [Instruments] has all instruments. There are two kinds:
//
//   - Events (a dial has failed, a session has ended) go to the [Recorder] at once.
//   - The counts and the state of a Conn (messages, queues) are read in [Meter.Collect], and cost
//     nothing in between. No hook is called for a message.
//
// # Promises
//
//  1. A counter never goes down. When a Conn ends, its last counts are added to the sums of its name.
//     The last counts are read when the Conn is Done, because messages get their fates until then.
//  2. A Conn that has ended is in no gauge. Exception: a Conn that has ended by itself is in the gauge of
//     the states until it has a successor, which is a later Conn with its name.
//  3. Labels are bounded. Their values are closed sets, except the name and the server, which the
//     user chooses; Options.Names limits how many there are.
//  4. A Meter has no goroutine and no timer.
//  5. No text of an error gets into a label.
package meter
