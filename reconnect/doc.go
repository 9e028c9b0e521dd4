// Package reconnect keeps one connection alive. [Run] is the loop: dial, serve,
// judge, wait, in the caller's goroutine and for any kind of connection. [Conn]
// is a message connection to hold on to, built on Run: it logs in again after
// each redial, shows the reader where messages are missing, and notices a peer
// that has died without a word.
//
// # What it promises
//
//  1. One owner. At most two connections exist at any time, and one of them is live.
//     There is one dial, and a second beside it only if the handshake of the first is
//     not answered in time, or after a Kick: the first may wait in a server's queue, or
//     be lost. The dial that is answered first wins, and the other is cut before
//     OnSession runs, so that one login is sent. With [RunOptions.OneConnection] there
//     is never a second.
//  2. Not in step. Every wait is jittered by default, the first after a drop and
//     those that a server asks for included; the cap comes first, the jitter
//     after.
//  3. No hot loop. Waits start again from the first after a session was ready for
//     max([RunOptions.StableAfter], the wait before it, with what a server had asked
//     for). A shorter one makes the outage younger by four times the time that it was
//     ready, so that a server which is up for a fifth of the time or more is dialed
//     soon, and one that accepts and drops sees the same growing waits as one that
//     refuses.
//  4. Ready is not connected. [Options.OnSession] has sole use of the wire, under
//     a limit of its own; then what was queued is written, in order, while reading
//     goes on; then what comes anew. Its failure is a failed attempt.
//  5. A visible seam. When a connection is lost the reader gets exactly one
//     [*Seam], after the last message of that session and before any of the next.
//     Every message carries the number of its session.
//  6. Told exactly once. Each message given to [Conn.Write] or accepted by
//     [Conn.Send] has one [Fate]: written (whole, handed to the kernel), dropped
//     with a reason (not a byte was sent), or unknown (its connection died while
//     it was being written). Nothing is sent twice unless its sender marked it
//     [Out.Repeatable]; no write begins after the message's deadline; and no part of
//     a message goes by another connection than the rest.
//  7. Cancelling is harmless. The end of the context of a Read or a Write never
//     costs the connection. A Write whose context has ended writes nothing, and its
//     error is that of a context only if it was the Write's own.
//  8. Death is noticed. A silent peer is cut off after [Liveness.Limit], and not
//     before two probes, if there is a way to probe it: the protocol's ping, or
//     [Liveness.Probe]. Any byte is life; there is no verdict while the
//     application does not read, but [Trace.SlowHandler] and [Trace.Overdue] report
//     that it does not. A stuck write and a message that never ends are the
//     connection's to notice.
//  9. Verdicts. One total function from error to class, [RunOptions.Classify],
//     says what a failure means. What a server tells us to wait is added to the
//     jittered wait, up to an hour. What a deploy or a damaged packet can cause (404, a
//     certificate, a broken frame) is an ordinary loss the first time, and slow from
//     the second in a row on; credentials that were refused are made anew at once. Of
//     a server's answers only 410 ends a Conn by default.
//  10. Bounded. The inbox, the outbox (messages, bytes, age), connecting,
//     handshaking, opening and closing each have a default and a limit. An idle
//     connection keeps no memory of the messages that it had.
//  11. Nothing left. When Run returns, or [Conn.Done] is closed, every goroutine,
//     timer and socket is gone. [Conn.Close] cuts, starts the end and returns, from
//     wherever it is called. [Conn.Shutdown] first sends what is queued, reports
//     what it could not send, and does not outlive its context. The context of every
//     callback ends with the session or the Conn; a callback that ignores that, or a
//     dial, holds up Done, and [Trace.Overdue] reports it.
//  12. Level-triggered state. [Conn.State] and [Conn.Await] always see the newest
//     state; steps between may be skipped; [Trace] sees each.
//  13. No secrets in an error, a hook or a log line, as long as the dialer's
//     errors have none; those of package dialer do not.
//  14. Hooks observe, deciders decide. Trace and OnReceipt return nothing; Classify,
//     OnSession, Probe, Keep and Expected return values. No lock is held while any
//     of them runs. A panic in one crashes the program, as in any Go code; one that
//     ends its goroutine ([runtime.Goexit]) is an error that says so.
//
// # Goroutines
//
// A ready connection owns one goroutine, the supervisor, which reads it. A dial,
// OnSession and a probe run in goroutines of their own that end with them. While
// messages of [Conn.Send] are there to be written one goroutine writes them, and
// while there are receipts one calls Outbox.OnReceipt with them.
package reconnect
