// Package debug serves a page that shows the connections of a program, for its operators.
//
// # Usage
//
//	page := debug.New(nil)
//	defer page.Close()
//	page.Register("feed", feed, nil) // a reconnect.Conn
//	url, err := page.Listen(":6060") // on 127.0.0.1; or mount the page, an http.Handler, where you like
//
// Behind anything that forwards TCP, set Options.Token: see Access below.
//
// Only what was registered is shown. The page updates itself every second, except while its tab is hidden;
// without JavaScript it reloads every 5 s.
//
// # What it shows
//
// At the top the page says what is wrong: one line for all Conns that have the same trouble with the same
// server for the same reason, such as "9 away from feed.example:443 for 15 min: connection refused". After
// eight lines, one more counts all others.
//
// Below are the worst hundred Conns, or 4000 with ?all: first those that have ended by themselves, then those
// that are away, flapping, ready and closed. The page shows the fields of each (a conn below), how each of its
// last 32 sessions ended, and, on a separate page, its last 64 events.
//
// A session at an advised address, or at a URL from Prepare, may have another host than the endpoint shown.
//
// The kinds of events are named for the hooks of [reconnect.Trace]:
//
//	gate_start gate_done gate_failed  dial_start dial_done dial_failed dial_hung  address_ignored
//	session_start session_ready session_done  rotate_start rotate_done rotate_failed
//	wait kicked  probe_done probe_failed  slow_handler overdue  end
//
// Consecutive answered probes are one event. The end of a wait is an event only if it was cut short.
//
// # JSON
//
// The response to ?json, and the result of [Page.Vars], is a [Snapshot]. The names of fields and the words do
// not change; new ones may be added. Times are formatted as in RFC 3339, and durations are numbers of seconds.
// A field with a question mark is omitted if it is empty, zero or false. A reason is a backoff.Reason, such as
// close_restart, and its text says the same in words.
//
//	snapshot
//		time title
//		counts      of all Conns: a counts
//		about       up to 8 lines of what is wrong, the worst first: a list of about
//		totals      the sums over all Conns: a stats; they fall when a Conn is forgotten
//		found       how many Conns the query has found
//		conns       the worst hundred of these, or 4000 with ?all: a list of conn
//		gates       up to 64 lines of gates, the worst first: a list of gate
//		breakers    in the order of registration: a list of breaker
//		values      likewise: a list of group
//	counts
//		all
//		ended       ended by themselves, such as after 410 Gone
//		away        no session is ready
//		flapping    a session is ready, but 3 or more that were ready were lost within the last 5 min
//		ready       a session is ready, and the Conn is not flapping
//		closed      closed by the program
//	about, Conns that have the same trouble for the same reason
//		conns          their number
//		condition      ended, away or flapping
//		server?        host and port of their endpoint
//		cause          the code of an answer or a close frame, or a reason; gate: they wait at a gate; connect:
//		               no dial has failed yet
//		text           the line on the page; the words may change
//		error?         why the last dial or session, or with gate the last probe, failed
//		since?         since when the first of them has had no session
//		next? by?      of the first of their next dials, or with gate the next probe: when it begins, and the name
//		               of its Conn
//		query          for the page with their rows
//		more?          Conns of the lines left out; only in the last line
//	conn
//		id              names the Conn for as long as the Page lives
//		name            as registered
//		endpoint?       Conn.Endpoint at Register, or from Options.Endpoint
//		condition       ended, away, flapping, ready or closed
//		state           connecting, opening, ready, waiting or closed
//		at_gate?        it waits at the gate
//		rotating?       the session is being replaced
//		rotation?       with rotating, while the session is ready and the next one has failed: a rotation
//		since           when the state began
//		away_since?     since when no session is ready
//		session         number of the current session, or else of the last, or 0
//		try             how many dials have begun since the last stable session, as of the last failure
//		next?           while the Conn waits: when the next dial begins
//		probe?          while the Conn waits for one: a probe
//		verdict?        on the last failure: retry, overload, refresh, slow or stop
//		cause?          why the last dial failed or session was lost, except in rotations: a cause
//		lost?           ready sessions that were lost within the last 5 min, of the last 32
//		lost_more?      there were more sessions within this time
//		round_trip?     of the last probe that was answered
//		silence?        how long ago the last byte came
//		subscriptions?  if they were registered
//		stats           a stats
//		sessions?       only with ?conn, the oldest first: a list of session
//		events?         only with ?conn, the oldest first: a list of event
//	stats, each as the field of reconnect.Stats
//		dials failures sessions lost rotations rotations_failed probes received received_bytes
//		written written_bytes dropped unknown queued queued_bytes unread unread_bytes
//		queued_age     in totals: the greatest
//	subscriptions
//		wanted held    numbers of subscriptions
//	rotation, whose dials have failed so far
//		failed         number of dials, including sessions that were never ready
//		since          when the first has failed
//		reason? text?  why the last has failed
//	probe, the next dial to a host that is down, for which Conns wait at the gate
//		next?          when it begins; omitted while it is in progress
//		by?            RunOptions.Name of the Conn that makes this dial
//		waiting        Conns that wait at the gate for the host
//		reason? text?  why the last dial to the host failed
//	cause
//		time           when the dial failed or the session ended
//		reason text?
//	session
//		session        number
//		start          when it was dialed, or for one ready at Register when it became ready
//		away           how long no session was ready before this one was; 0 if it never was
//		up             how long it was ready, so far if it is live; 0 if it never was
//		live           it has not ended
//		reason?        why it has ended
//		planned        it was replaced, or the Conn was closed; false after Conn.Redial
//	event
//		time kind      kinds are listed above
//		session? try?  numbers of its session and dial
//		took?          how long it took; of a wait: how long it will be
//		reason?        of a failure or an end
//		verdict?       of a wait, such as retry
//		count?         of probe_done: number of answers in a row, if several
//		text           a sentence for people; it may change
//	gate, the line of one host
//		name
//		host           empty with none
//		waiting        dials that wait
//		dialing        dials in progress
//		limit          maximum of dialing at present
//		longest        how long the first of the waiting dials has waited
//		granted        dials let through so far
//		down           the host is down
//		held?          no dial before this time, because the server said so
//		more?          how many lines are not shown; only in the last line
//		none?          the gate has no line yet
//	breaker
//		name state     closed, open or half-open
//	group
//		name
//		values         up to 32: a list of value
//	value
//		name text
//
// # Access
//
// By default only clients on this machine may see the page: see [Loopback] and Options.Allow. Behind anything
// that forwards TCP that check protects nothing: set Options.Token. The page changes nothing in the program and
// loads nothing from another site. All texts are escaped.
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
// A registration of a Conn without other hooks takes about 1.3 kB, growing with the events to 10.6 kB (64-bit).
// A message costs nothing; an event costs a few copies under a lock. An open page is rendered every second, or
// less often if that takes more than a tenth of the time.
package debug
