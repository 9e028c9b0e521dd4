// Package meter turns the events and the counts of connections into measurements with names, units
// and labels. The modules reconnect/prometheus and reconnect/otel hand these to their libraries, so
// that both have the same instruments:
//
//	m := meter.New(recorder, meter.Options{})
//	options.Layers = append(options.Layers, m.Layer(meter.Source{Name: "feed"}))
//	...
//	for _, t := range m.Collect() { ... } // what is measured when somebody asks
//
// [Instruments] has all instruments. There are two kinds:
//
//   - What an event says (a dial has failed, a session has ended) goes to the [Recorder] at once.
//   - What a Conn counts or knows (messages, queues, its state) is asked for in [Meter.Collect], and
//     costs nothing in between. No hook is called for a message.
//
// # Promises
//
//  1. A counter never goes down. When a Conn ends, its last counts are added to the sums of its name.
//     They are taken when the Conn is Done, because messages get their fates until then.
//  2. A Conn that has ended is in no gauge.
//  3. Labels are bounded. Their values are closed sets, but for the name, which is the user's; of the
//     names there are Options.Names at most.
//  4. Nothing runs here by itself: there are no goroutines and no timers.
//  5. No text of an error gets into a label.
package meter
