// Package reconnect keeps a connection open. It notices that the connection has died, dials again
// after a jittered wait, logs in again, and shows the reader where messages may be missing.
//
// # Usage
//
//	feed, err := reconnect.New(&dialer.WebSocket{URL: "wss://feed.example/v1"}, nil)
//	if err != nil {
//		return err // an option is wrong
//	}
//	defer feed.Close()
//	for m, err := range feed.Messages(ctx) {
//		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
//			log.Print(seam) // a connection was lost, and perhaps messages with it; read on
//		} else if err != nil {
//			return err // ctx has ended, or the Conn
//		} else {
//			handle(m.Data)
//		}
//	}
//
// [New] makes a [Conn], which sends and receives messages. [Options] say how it logs in
// (OnSession), what it sends without a connection (WhenDown) and how it redials (Run). [Run]
// is the loop below it, for any kind of connection: dial, serve, judge, wait. The examples
// are whole programs: a feed, a chat, and a gateway of many connections.
//
// Four packages do what most programs need beyond that. Three are a [Layer]: subscription keeps a
// Conn subscribed to a set of keys, call asks questions and waits for their answers, and ledger
// sends again each message that was not acknowledged. Package bridge reads a Conn, and fetches the
// messages that were missed.
//
// # Words
//
//   - A session is one connection, from its dial to its loss. Sessions are numbered from 1.
//   - A seam is the place between two sessions in the stream of received messages. Some
//     messages may be missing there.
//   - The fate of a message is written, dropped or unknown.
//   - A rotation replaces a session that is well by another, because its server will end it.
//   - A verdict says what kind of failure an error is, and so what to do about it.
//   - A gate is where the connections of a program to one host wait until they may dial.
//   - A budget of logins bounds the logins of an account in an interval: see [RunOptions.Logins].
//   - A herd is a crowd of clients that lost their connections at one instant, because
//     their server restarted, and that all want to come back.
//
// # Promises
//
//  1. One owner. At most one connection is live, and at most two exist at a time. (A dial to a
//     host with several addresses may open more TCP connections for a moment, of which it keeps
//     one.) A second dial begins beside the first in two cases: the handshake of the first is
//     not answered in time, because it may wait in a server's queue or be lost; or after a Kick.
//     The dial that is answered first wins. The other one is cut before OnSession runs, so that
//     one login is sent. While one session replaces another (see [Rotation]) both are live, and
//     the next one has one dial. With [RunOptions.OneConnection] there is never a second
//     connection.
//  2. Not in step. By default every wait is jittered, so that a herd does not come back at one
//     instant: also the first wait after a loss, and a wait that a server asks for. The cap comes
//     first and the jitter after it.
//  3. No hot loop, with any policy. The waits start again from the first after a session was
//     ready for [RunOptions.StableAfter], or for as long as the wait before it (with what a
//     server had asked for) if that was longer. A shorter session takes 30 s off the counted
//     outage, if it was ready for 2 s. A session that was ready for less earns nothing: a server
//     that accepts and drops sees the same growing waits as a server that refuses. A session
//     that we end because of what the peer sent (too large a message, a broken frame) earns
//     nothing either, unless it was ready for an hour. Ten waits of an outage may be shorter than
//     10 ms, and then each is 10 ms at least, whatever the policy says. Ten rotations may follow
//     one another without a pause, and then one begins every 2 s, whatever requests them.
//  4. Ready is not connected. [Options.OnSession] has sole use of the connection, under a limit
//     of its own. If it fails, the attempt has failed. When it has returned, the messages in the
//     queue are written, in order, and new ones after them; reading goes on meanwhile.
//  5. A visible seam. When a session ends the reader gets exactly one [*Seam], after the last
//     message of that session and before the first of the next. (With [OverlapMix] messages of
//     the next session stand before the seam too.) The seam says whether the session was
//     replaced, whether the two have overlapped, and whether the protocol vouches that nothing
//     is missing. Every message carries the number of its session. With [Options.MarkRefetch] a
//     mark follows when the next session is ready and its layers have what they need: from there
//     on the application can fetch what is missing. A session that ends before its mark is read
//     has none.
//  6. Exactly one fate. Each message that [Conn.Write] or [Conn.Send] takes has one
//     [Fate]: written (whole, handed to the kernel), dropped with a reason (not a byte
//     was sent), or unknown (the connection died while the message was being written).
//     Nothing is sent twice unless its sender marked it [Outgoing.Repeatable]. No write begins
//     after the message's deadline, and no message goes partly by one connection and
//     partly by another.
//  7. Cancelling is harmless. The end of the context of a Read or a Write never costs the
//     connection. A Write whose context has ended writes nothing. The error of a Write is a
//     context's only if the context was the Write's own.
//  8. Death is noticed. A silent peer is cut off after [Liveness.Limit], and not before two
//     probes, if there is a way to probe it: the protocol's ping, or [Liveness.Probe]. Any byte
//     is a sign of life. After silent sessions in a row the limit is up to 8 times as long, until
//     a probe is answered soon, so that a peer which answers late keeps its session. Time for
//     which the process was stopped does not count. There is no verdict on the peer while the
//     application does not read: [Trace.SlowHandler] and [Trace.Overdue] report that. The
//     connection itself notices a stuck write and a message that never ends.
//  9. One verdict for each error. One total function, [RunOptions.Classify], says what a
//     failure means. The error of a write or a ping hides neither the messages nor the close
//     frame that have come before: the Conn reads on until it has waited for 1 s altogether, or a
//     callback takes 1 s, and for 30 s at most. The time that a server tells us to wait, up to an
//     hour, is added to the jittered wait. A failure that a deploy or a damaged packet can cause
//     (404, a certificate, a broken frame, a name that does not exist), or a message above our
//     limit, is an ordinary loss the first time, and slow from the second in a row on: see
//     [backoff.SlowWait]. Credentials that were refused are renewed immediately. Of a server's
//     answers only 410 ends a Conn by default.
//  10. Bounded. The inbox, the outbox (messages, bytes, age), connecting, handshaking,
//     opening and closing each have a default and a limit. An idle connection keeps no
//     memory of the messages that it had.
//  11. Nothing left. When Run returns, or [Conn.Done] is closed, every goroutine, timer
//     and socket is gone. [Conn.Close] cuts, starts the end and returns, from wherever it
//     is called. [Conn.Shutdown] first sends what is queued, reports what it could not
//     send, and returns when its context ends at the latest. The context of every
//     callback ends with the session or the Conn. A callback or a dial that ignores its
//     context holds up Done, and [Trace.Overdue] reports it.
//  12. The newest state. [Conn.State] and [Conn.Await] always see the newest state. They
//     may skip steps between, but [Trace] sees each.
//  13. No secrets in the text of an error, and so in a seam, a Status, a hook or a log line, as long as the
//     dialer's errors have none. The errors of package dialer have none of the dial's: its guarantee 5 says
//     what these are. The same are left out of the text of a [conn.CloseError], whatever the peer says in a
//     close frame, and so is the hint of an advice. Other secrets that a peer repeats are not known, such as
//     a token in a message of OnSession.
//  14. Hooks observe, deciders decide. The hooks of Trace and OnReceipt decide nothing. The
//     deciders are Classify, OnSession, Probe, Keep, Expected, Allowed, KeepAlive.Message and
//     the functions of a Layer. No lock is held while any of them runs. A panic in one crashes
//     the program, as in any Go code. A callback that calls [runtime.Goexit] ends the Conn (or
//     the attempt) with an error that names the callback.
//
// # Callbacks
//
// No lock is held while a callback runs, and it may call every method of its Conn. Await, AwaitReady,
// AwaitSession, Messages, Read, SendWait, Shutdown, Write and WriteTo may have to wait there for
// what cannot happen before the callback returns, until their context is done: pass them the
// context of the callback, or one with a deadline if it has none (-). In OnReceipt those that would
// wait for a session or for room fail immediately: see [Outbox]. The other methods do not wait.
// [Conn.Done] is closed after the last callback has returned, so a callback must not wait for it.
//
//	callback                             its context is canceled with       delays until it returns
//	Layer.Start                          -                                  New
//	Dialer.Dial                          the dial                           the session after the dial
//	Gate.Acquire                         the attempt                        the dial
//	OnSession, Layer.Open                the attempt, or OpenTimeout        the session's readiness
//	OnMessage                            the session                        reading, and the next session
//	OnSeam                               the Conn; for a mark, the session  reading, and the next session
//	Outbox.Keep                          the Conn                           the next session
//	Outbox.OnReceipt                     the Conn                           the next receipt
//	Layer.Receive, Layer.Ready           -                                  reading, and the next session
//	Layer.Lost                           -                                  the seam, and the next session
//	Layer.End, Trace.ConnDone            -                                  Done
//	Liveness.Probe                       the probe                          the next probe
//	KeepAlive.Message                    -                                  the next keep-alive message
//	Rotate.Allowed                       -                                  the rotation
//	Stall.Expected                       -                                  the end of a stalled session
//	Policy, Classify, the gate's done    -                                  the next dial
//	Trace.GateStart, GateDone            -                                  the dial
//	Trace.DialStart, DialHung, DialDone  -                                  the session after the dial
//	Trace.AddressIgnored                 -                                  the session after the dial
//	Trace.WaitStart, WaitDone            -                                  the next dial
//	Trace.SessionStart, SessionReady     -                                  the session's readiness
//	Trace.SessionDone                    -                                  the next session
//	Trace.RotateStart, RotateDone        -                                  the rotation
//	Trace.ProbeStart, ProbeDone          -                                  the probe
//	Trace.SlowHandler, Overdue           -                                  the next report, and Done
//	serve, Close (of Run)                Run's; -                           the next dial
//
// [Trace.SlowHandler] reports a callback that takes longer than a third of Liveness.Limit, and then
// [Trace.Overdue] reports it each time that its duration has doubled. Dial, OnSession, Layer.Open
// and Liveness.Probe have limits of their own instead; Acquire and serve may take any time. The
// time in a callback never counts against the peer. The functions of a connection are no callbacks
// of this kind: a conn.Framer, a conn.Split, heartbeat.Dialer.Answer. They run while the connection
// is read and must be quick, because the time that they take counts as silence of the peer.
//
// # Goroutines
//
// A ready connection has one goroutine, the supervisor, which reads it and puts each message into
// the inbox. A goroutine that has to wait in [Conn.Read] or [Conn.Messages] for each message reads
// the connection itself while it waits, and so gets the message sooner. The supervisor reads again
// at most 20 ms after that goroutine has left Read, when messages come faster than it takes them, and
// for whatever is not one whole, uncompressed message of at most 64 KiB. (With a [Layer] that has
// Receive, and for a connection that is no [conn.Follower], only the supervisor reads.) While one
// session replaces another there are two supervisors. Each of these has a goroutine of its own,
// which ends with it: a dial, a wait at the gate, OnSession, a probe and the other calls by a timer,
// the writer of Send while messages wait, which may then become the caller of Outbox.OnReceipt, and
// that caller while receipts wait.
package reconnect
