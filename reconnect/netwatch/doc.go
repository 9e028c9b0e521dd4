// Package netwatch finds out that the network of this machine has changed: a cable was
// pulled, a laptop came to another Wi-Fi, a VPN went up, a machine woke from sleep.
//
// After such a change a live connection may be dead without a sign of it, and a connection
// that waits before its next dial could dial at once. [Attach] has the first one checked
// and the second one dialed:
//
//	watcher, err := netwatch.Attach(ctx, feed, orders) // each is a *reconnect.Conn
//
// A gateway makes one [Watcher] with [New], and attaches each connection that it opens.
// [Watcher.Changes] is for a program that does something else after a change.
//
// # What counts
//
// The Watcher compares each [Network] with the one before, and reports a [Change] only if they
// differ. A Network has:
//
//   - the addresses of the interfaces that are up and have a carrier. Left out are loopback,
//     addresses of the link alone (169.254.0.0/16, fe80::/10), those that are not usable yet
//     (Linux), and the interfaces of containers and virtual machines: see [Virtual] and
//     [Options].Ignore.
//   - the route to the Internet, for IPv4 and IPv6: interface, gateway and source address. It
//     is the route to the address of a root name server, to which no packet is sent. The
//     interface of such a route counts whatever its name is.
//
// So it is no change if a lease is renewed, a container starts, or a route to one other network
// appears. It is no change either if the network goes away and comes back the same before the
// Watcher looks: see [Options].Settle. It is always a change if the machine was suspended.
//
// # How it notices
//
// Linux announces changes by rtnetlink. The Watcher looks at the network when a burst of
// announcements is over, and also every [Options].Interval. On other systems, and where a
// sandbox refuses the announcements, it looks every Interval only, and [Status].Polling says
// why. Where the system refuses to list the interfaces (Android), a Network has the source
// addresses of the routes to the Internet and nothing else. On js/wasm and wasip1 there is
// nothing to look at, and New returns an error; a page of a browser has the events "online"
// and "offline" instead.
//
// The Watcher sees the network namespace in which its process began.
//
// # Goroutines
//
// A Watcher has one goroutine, and on Linux a second one, which reads the announcements.
package netwatch
