// Package debug serves a page that shows the connections of a program, for its operators.
//
// # Usage
//
//	page := debug.New(nil)
//	defer page.Close()
//	page.Register("feed", feed, nil) // a reconnect.Conn
//	url, err := page.Listen(":6060") // on 127.0.0.1; or mount the page, an http.Handler, where you like
//
// If clients reach it through anything that forwards TCP, set Options.Token: see Access below.
//
// Only what was registered is shown, and nothing is global. The page updates itself every second, except
// while its tab is hidden; without JavaScript it reloads every 5 s. The same is available as JSON, by ?json or
// with [Page.Vars] by expvar.
//
// # What it shows
//
// At the top the page says what is wrong: one line for all Conns that have the same trouble with the same
// server for the same reason, such as "9 away from feed.example:443 for 15 min: connection refused". It is a
// link to the rows of these Conns. After eight lines, one more counts all others.
//
// Below are the Conns, the worst first: those that have ended by themselves, are away, are flapping, are ready,
// were closed. The worst hundred are shown, or all with ?all. The page shows of each Conn:
//
//   - its state and since when, the time until the next attempt, the verdict and the last cause,
//   - its endpoint, signs of life, queues, fates and subscriptions,
//   - how each of its last 32 sessions ended,
//   - its last 64 events, on a separate page.
//
// The endpoint is the result of [reconnect.Conn.Endpoint] at Register. If a server has advised another address,
// or Prepare has set another URL, the current session may have another host.
//
// The kinds of events are named for the hooks of [reconnect.Trace]:
//
//	gate_start gate_done gate_failed  dial_start dial_done dial_failed dial_hung  address_ignored
//	session_start session_ready session_done  rotate_start rotate_done rotate_failed
//	wait kicked  probe_done probe_failed  slow_handler overdue  end
//
// Consecutive answered probes are one event. The end of a wait is an event only if the wait was cut short.
//
// # JSON
//
// The response to ?json, and the result of [Page.Vars], is a [Snapshot]. The names of fields and the words do
// not change; new ones may be added. Times are formatted as in RFC 3339, and durations are numbers of seconds.
// A field with a question mark is omitted if it is empty, zero or false. A reason is a backoff.Reason, such as
// close_restart, and its text says the same in words, from types and codes only.
//
//	snapshot
//		time title
//		counts      of all Conns: a counts
//		about       what is wrong, the worst first: a list of about
//		totals      the sums over all Conns: a stats; they fall when a Conn is forgotten
//		found       how many Conns the query has found
//		conns       the worst hundred of these, or all with ?all: a list of conn
//		gates       up to 64 lines of gates, the worst first: a list of gate
//		breakers    in the order in which they were registered: a list of breaker
//		values      likewise: a list of group
//	counts
//		all         all Conns
//		ended       ended by themselves, such as after 410 Gone
//		away        no session is ready
//		flapping    a session is ready, but 3 or more that were ready were lost within the last 5 min
//		ready       a session is ready, and the Conn is not flapping
//		closed      closed by the program
//	about, Conns that have the same trouble for the same reason
//		conns          how many they are
//		condition      ended, away or flapping: see counts
//		server?        the host and the port of their endpoint
//		cause          the code of an answer or a close frame, or a reason; gate: they wait at a gate; connect:
//		               no dial has failed yet
//		text           what has happened to them, as the page shows it; the words may change
//		error?         why the last dial or session, or with gate the last probe, failed, in words
//		since?         since when the first of them has had no session
//		next? by?      when the first of their next dials begins, and the name of the Conn that makes it; with
//		               gate: of the next probe
//		query          the query for the page with their rows
//	conn
//		id              names the Conn for as long as the Page lives
//		name            as registered
//		endpoint?       Conn.Endpoint at Register, or the result of Options.Endpoint
//		condition       ended, away, flapping, ready or closed: see counts
//		state           connecting, opening, ready, waiting or closed
//		at_gate?        the Conn waits at the gate
//		rotating?       the session is being replaced
//		rotation?       with rotating, while the session is ready and the next one has failed: a rotation
//		since           when the Conn entered the state
//		away_since?     since when no session is ready
//		session         the number of the present session, or of the last; 0: none yet
//		try             how many dials have begun since the last stable session, as of the last failure
//		next?           while the Conn waits: when the next dial begins
//		probe?          while the Conn waits at a gate whose host is down: a probe
//		verdict?        on the last failure: retry, overload, refresh, slow or stop
//		cause?          why the last dial failed or the last session ended: a cause
//		lost?           ready sessions that were lost within the last 5 min, of the last 32
//		lost_more?      there were more than 32 sessions within the last 5 min
//		round_trip?     of the last probe that was answered
//		silence?        how long ago the last byte came
//		subscriptions?  if they were registered
//		stats           the counts of the Conn
//		sessions?       only with ?conn: the last 32, the oldest first: a list of session
//		events?         only with ?conn: the last 64, the oldest first: a list of event
//	stats, each as the field of reconnect.Stats
//		dials failures sessions lost rotations rotations_failed probes received received_bytes
//		written written_bytes dropped unknown queued queued_bytes unread unread_bytes
//		queued_age     in totals: the greatest
//	subscriptions
//		wanted held    how many subscriptions are
//	rotation, whose dials have failed so far
//		failed         how many dials have failed, including sessions that were never ready
//		since          when the first of them did
//		reason? text?  why the last of them did
//	probe, the next dial to a host that is down, for which Conns wait at the gate
//		next?          when it begins; omitted while it is in progress
//		by?            RunOptions.Name of the Conn that makes this dial
//		waiting        how many Conns wait at the gate for the host
//		reason? text?  why the last dial to the host failed
//	cause
//		time           when the dial failed or the session ended
//		reason text?
//	session
//		session        its number
//		start          when it was dialed; if it was ready at Register: when it became ready
//		away           how long no session was ready before this one was; 0: this one never was
//		up             how long it was ready, up to now if it is live; 0: it never was
//		live           it has not ended
//		reason?        why it has ended
//		planned        it was replaced, or the Conn was closed: no loss. False after Conn.Redial
//	event
//		time kind      when it happened, and one of the list above
//		session? try?  the numbers of its session and of its dial
//		took?          how long it took; of a wait: how long it will be
//		reason?        of a failure or an end
//		verdict?       of a wait: the class of the verdict, such as retry
//		count?         of probe_done: how many answers in a row the event stands for, if several
//		text           a sentence for people; it may change
//	gate, the line of one host
//		name           as registered
//		host           empty if the gate has no line yet
//		waiting        dials that wait
//		dialing        dials that were let through and are not done
//		limit          how many dials may be let through now
//		longest        how long the first dial that waits has waited
//		granted        dials that were let through so far
//		down           the host is down: one dial at a time goes out
//		held?          no dial before this time, because the server said so
//		more?          how many lines are not shown; only in the last line
//		none?          the gate has no line yet
//	breaker
//		name state     closed, open or half-open
//	group
//		name           as registered
//		values         up to 32, from RegisterValues: a list of value
//	value
//		name text      as the program has returned them, each cut at 200 bytes
//
// # Access
//
// By default only clients on this machine may see the page, by a loopback name or address and through no proxy:
// see [Loopback] and Options.Allow. Behind HAProxy, or anything else that forwards TCP, that check protects
// nothing: set Options.Token. The page changes nothing in the program and loads nothing from another site; its
// Content-Security-Policy allows no other style and script. All texts are escaped.
//
// # Secrets
//
// The page shows no data of messages, no headers, no keys of subscriptions, and no user or query of a URL. It
// shows:
//
//   - The path of a URL. If it holds a secret, such as a listen key, remove it with Options.Endpoint.
//   - A cause, by types and codes, such as "closed by the peer: 1012 (service restart)". The text of the error,
//     which may come from a peer or your functions, is only in the log: see [reconnect.Log].
//   - Names and values, as registered.
//
// # Cost
//
// A Conn that is not registered costs nothing. A registration of a Conn without other hooks takes about 1.3 kB,
// growing with the events to 10.6 kB (64-bit). A message costs nothing; an event costs a few copies under a
// lock. An open page is rendered every second, or less often if that takes more than a tenth of the time.
package debug
