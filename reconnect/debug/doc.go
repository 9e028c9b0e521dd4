// Package debug shows the connections of a program on a page, for the people who run it.
//
// # Usage
//
//	page, err := debug.New(nil)
//	if err != nil {
//		return err // an option is wrong
//	}
//	defer page.Close()
//	page.Register("feed", feed, nil) // a reconnect.Conn
//	url, err := page.Listen(":6060") // on 127.0.0.1; or mount the page, an http.Handler, where you like
//
// RegisterGate, RegisterBreaker and RegisterValues show what is beside the connections. Nothing
// is shown that was not registered, and nothing is global. In a browser the page changes by
// itself; without JavaScript it loads itself again. ?json has the same for programs, a
// [Snapshot], and [Page.Vars] for expvar.
//
// # What it shows
//
// The worst comes first: what has ended by itself, what is away, what is flapping, what is ready,
// what was closed. A list has a hundred Conns; a search and the next pages are made in the
// program, so that ten thousand are no burden. A Conn has its state and since when, the
// countdown to the next try and the verdict, the last cause, the endpoint, signs of life,
// queues, fates, subscriptions, the last 32 sessions as a bar, and, on a page of its own, the
// last 64 events. The endpoint is what [reconnect.Conn.Endpoint] returned at Register: where the
// Conn was made to dial. It does not follow the address that a server has advised, nor a URL
// from Prepare, so the present session may have another host.
//
// The events are these, with what [reconnect.Trace] says of them:
//
//	gate_start gate_done gate_failed  dial_start dial_done dial_failed dial_hung  address_ignored
//	session_start session_ready session_done  rotate_start rotate_done rotate_failed
//	wait kicked  probe_done probe_failed  slow_handler overdue  end
//
// Answered probes in a row are one event. A wait that runs out has no event for its end.
//
// # Access
//
// The clients on this machine, by a loopback name or address: see [Loopback]. Options.Allow can
// say otherwise. The page only reads, takes nothing from elsewhere, and its
// Content-Security-Policy allows only its own style and script. All texts are escaped.
//
// # Secrets
//
// The page has no data of messages, no headers, no keys of subscriptions, no user and no query
// of a URL. A path is shown, as in the errors of package dialer: if a venue has a secret there,
// such as a listen key, leave it out with Options.Endpoint. A cause is described by types and
// codes, not by the text of its error: a peer chooses the reason of a close frame, and your
// functions choose their errors. Options.Describe can say more, and then what you let it say is
// shown. Names, and values of your own, are shown as you give them.
//
// # Cost
//
// A Conn that is not registered costs nothing. A registration takes about 1.3 kB of a Conn
// without other hooks, and grows with the events to 8.5 kB when both rings are full (64-bit;
// TestARegistrationIsSmall), besides what Options.Describe returns. A message
// costs nothing more; an event costs a few copies under a lock that nobody holds for longer.
// A page of a hundred among ten thousand Conns has 110 kB and allocates 2 MB, an update that
// finds nothing new 1.7 MB (TestTenThousandConnsAreCheap). An update is made at most every 250 ms,
// and only for pages that are open.
//
// # Where others fail, and what this does
//
//	a registry that is global, filled by an import (x/net/trace, pprof)  explicit; nothing is imported for its effect
//	open to the network unless somebody thinks of it (expvar)            loopback clients, loopback names, no proxies
//	any web page reads it through the browser (DNS rebinding)            the Host header counts; other sites are refused
//	a thousand rows, in order of their birth (/connz, channelz)          the worst first, searched and paged in the program
//	what a peer has said is shown as it came                             types and codes; text only if asked for
//	only the present is shown                                            32 sessions and 64 events, bounded
package debug
