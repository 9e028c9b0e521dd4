// Package fleet simulates a herd: N long-lived connections are lost at one instant, the
// server is away for a while, and is then able to complete C handshakes per second, one
// after the other. It shows what a retry policy does to the server, and when all are back.
// With a server that has room for all at once it shows how late a single client is back.
//
// It guards the library, whose defaults were chosen by it. Its tests hold it to real Conns.
//
// The clients are the library's own logic: each has a [schedule.Dials], which decides
// when it dials, also beside a handshake that hangs, and asks the [backoff.Policy] that
// the library ships. They judge failures as [backoff.Classify] does (refused, or reset:
// Retry; timed out, 429 or 503: Overload, with the Retry-After of the server; 401, no such host: Slow,
// but Retry for clients of other makes). Only time
// and the network are imagined:
//
//   - A message takes no time, but for clients whose [Group] has an RTT, and the clients'
//     machines no work.
//   - An outage is one [Spell] or several in a row. There may be several servers, of which some
//     hang or restart one after the other, and clients of different kinds.
//   - Instead of an outage each connection may leave at a time of its own ([Leave]): for a
//     server that drains, whose clients go to others.
//   - A handshake is 1/C s of the server's work, first come, first served, or at random. The
//     server completes the handshake of a client that has left as well, in vain.
//   - [Queue] decides what happens to dials for which there is no room, and [Down] what
//     happens to dials while the server is away.
//   - The limit on connecting and that on the handshake run apart, as in [backoff.Step]; a
//     client of another make has one for both.
//   - With gates the connections are spread over processes, and each dial waits in the
//     [line.Queue] of its process. The time there is outside the limits of the try.
//
// Time is whole nanoseconds from the loss, all chance comes from one generator per
// run, and nothing depends on a clock or on the order of a map: the same seed gives
// the same result to the last byte, on every machine.
package fleet
