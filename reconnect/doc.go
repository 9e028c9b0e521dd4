// Package reconnect keeps a connection open. It detects that the connection has died, dials again after
// a jittered wait, logs in again, and shows the reader where messages may be missing.
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
// [New] returns a [Conn], which sends and receives messages. [Options] say how it logs in (OnSession),
// sends while no session is ready (WhenDown), and redials (Run). [Run] is the underlying loop, for any
// kind of connection.
//
// Three packages are a [Layer]: subscription keeps keys subscribed, call matches responses to requests,
// and ledger resends unacknowledged messages. Package bridge fetches missed messages.
//
// # Terms
//
//   - A session is one connection, from its dial to its loss. Sessions are numbered from 1.
//   - A seam is the boundary between two sessions in the stream of received messages, where messages may
//     be missing.
//   - A mark is the point after a seam from which a refetch is complete.
//   - The fate of a message is written, dropped or unknown.
//   - A rotation replaces a healthy session, because its server will end it.
//   - A verdict is the class of an error, which decides what to do about it.
//   - A gate paces a program's dials to a host.
//   - A budget of logins bounds the logins of an account in an interval.
//   - A herd is many clients reconnecting at the same time.
//
// # Promises
//
//  1. One owner. At most one connection is live, and at most two exist at a time. (A dial to a host with
//     several addresses may briefly open more TCP connections.) A second dial begins only after a Kick,
//     or if the handshake of the first is not answered in time. The first to be answered wins; the other
//     is closed before OnSession runs. During a [Rotation] both sessions are live, and the next one has
//     one dial. With [RunOptions.OneConnection] there is never a second connection.
//  2. Not in step. By default every wait is jittered, including the first after a loss and one that a
//     server requests. The jitter is applied after the cap.
//  3. No hot loop, with any policy. The waits start again from the first after a session was ready for
//     [RunOptions.StableAfter], or for as long as the wait before it (including what a server requested)
//     if longer. A shorter session takes 30 s off the counted outage if it was ready for 2 s, and
//     nothing otherwise. A session that we end because of what the peer sent, such as a broken frame or
//     too large a message, counts only after an hour. After ten waits shorter than 10 ms in an outage,
//     each is at least 10 ms. After ten rotations without a pause, one begins every 2 s.
//  4. Ready is not connected. A session is ready when [Options.OnSession] and then each Layer.Open have
//     succeeded. Then the queued messages are written in order, before new ones, while reading continues.
//  5. A visible seam. When a session ends the reader gets exactly one [*Seam], between the last message
//     of that session and the first of the next. (With [OverlapMix] messages of the next session come
//     before it too.) Every message carries the number of its session. With [Options.MarkRefetch] a mark
//     follows, from which the application can fetch what is missing.
//  6. Exactly one fate. Each message that [Conn.Write] or [Conn.Send] takes has one [Fate]. Nothing is
//     sent twice unless its sender marked it [Outgoing.Repeatable]. No write begins after the message's
//     deadline, and no message is split across connections.
//  7. Cancellation is harmless. Canceling a Read or a Write never costs the connection. A Write whose
//     context is done writes nothing. It returns no other context's error.
//  8. Death is noticed. A silent peer is dropped after [Liveness.Limit], and not before two probes, if
//     it can be probed. The connection itself detects a stuck write and a message that never ends.
//  9. One verdict for each error. One total function, [RunOptions.Classify], classifies every failure.
//     The error of a write or a ping hides neither the messages nor the close frame that came before it:
//     the Conn keeps reading until it has waited for 1 s in total, or a callback takes 1 s, and for 30 s
//     at most. The wait that a server requests, up to an hour, is added to the jittered wait. A failure
//     that may be temporary (404, a certificate, a broken frame, an unknown host name, a message above
//     our limit) is an ordinary loss the first time, and slow from the second in a row on: see
//     [backoff.SlowWait]. Refused credentials are renewed immediately. Of a server's responses only 410
//     ends a Conn by default.
//  10. Bounded. The inbox, the outbox (messages, bytes, age), connecting, handshaking, opening and
//     closing each have a default and a limit. An idle connection retains no memory of earlier messages.
//  11. Nothing left. When Run returns, or [Conn.Done] is closed, every goroutine, timer and socket is
//     gone. The context of every callback is canceled with the session or the Conn. A callback or a dial
//     that ignores this delays Done, and [Trace.Overdue] reports it.
//  12. The newest state. [Conn.State] and [Conn.Await] always see the newest state. Only [Trace] sees
//     every intermediate one.
//  13. No secrets in the text of an error, and so in a seam, a Status, a hook or a log line, as long as
//     the dialer's errors have none. Those of package dialer have none of the dial's: see its
//     guarantee 5. These secrets and the hint of an advice are also removed from the text of a
//     [conn.CloseError]. Other secrets that a peer repeats, such as a token sent by OnSession, are not
//     recognized.
//  14. Hooks observe. The hooks of Trace and OnReceipt decide nothing. No lock is held while a callback
//     runs. A panic in one crashes the program. One that calls [runtime.Goexit] ends the Conn (or the
//     attempt) with an error that names it.
//
// # Callbacks
//
// A callback may call every method of its Conn. Those that take a context may block there on something
// that cannot happen before the callback returns, until the context is done: pass the callback's
// context, or one with a deadline if it has none (-). For OnReceipt see [Outbox]. [Conn.Done] is closed
// after the last callback has returned, so a callback must not wait for it. During a [Rotation]
// callbacks for two sessions may run concurrently, but not OnMessage and OnSeam.
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
// [Trace.SlowHandler] and [Trace.Overdue] report slow callbacks. The time in a callback never counts
// against the peer. The functions of a connection, such as a conn.Split or heartbeat.Dialer.Answer, are
// not such callbacks: their time counts as silence of the peer.
//
// # Goroutines
//
// A ready connection has one goroutine, the supervisor, which reads it into the inbox. While a goroutine
// waits in [Conn.Read] or [Conn.Messages] it may read the connection itself, to get the message sooner,
// unless a [Layer] has Receive or the connection is not a [conn.Follower]. During a rotation there are
// two supervisors. Everything else, such as a dial or the writing of queued messages, runs in temporary
// goroutines.
package reconnect
