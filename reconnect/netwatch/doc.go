// Package netwatch notices that the network of this machine has changed: a cable was
// pulled, a laptop came to another Wi-Fi, a VPN went up, a machine woke from sleep.
//
// After such a change a live connection may be dead without a sign, and a connection that
// waits before its next dial could dial at once. [Attach] checks the live connections and
// makes the waiting ones dial:
//
//	watcher, err := netwatch.Attach(ctx, feed, orders) // each is a *reconnect.Conn
//
// A gateway makes one [Watcher] with [New], and attaches each connection that the gateway
// opens. [Watcher.Changes] is for a program that does more after a change.
//
// # Which changes count
//
// The Watcher compares each [Network] with the one before, and reports a [Change] only if they
// differ. A Network has:
//
//   - the addresses of the interfaces that are up and have a carrier. Exceptions: loopback,
//     link-local addresses (169.254.0.0/16, fe80::/10), addresses that are not usable yet
//     (Linux), and the interfaces of containers and virtual machines (see [Virtual] and
//     [Options].Ignore).
//   - the route to the Internet, for IPv4 and IPv6: interface, gateway and source address. This
//     is the route to the address of a root name server; no packet is sent there. The interface
//     of such a route counts whatever its name is.
//
// A suspended machine is always a change. These are none:
//
//   - A lease is renewed, a container starts, or a route to one other network appears.
//   - The network goes away and comes back the same before the Watcher looks.
//
// # How the Watcher notices
//
// Linux announces changes by rtnetlink. A change comes as a burst of announcements: the Watcher looks at the
// network when none has come for 500 ms, or 5 s after the first, and every [Options].Interval. Elsewhere:
//
//   - On other systems, and where a sandbox refuses the announcements, the Watcher looks every
//     Interval only, and [Status].Polling says why.
//   - Where the system refuses to list the interfaces (Android), a Network has only the source
//     addresses of the routes to the Internet.
//   - On js/wasm and wasip1 the network cannot be seen, and New returns an error. A page of a
//     browser has the events "online" and "offline" instead.
//
// The Watcher sees the network namespace in which its process began.
//
// # Goroutines
//
// A Watcher has one goroutine, and on Linux a second one, which reads the announcements.
package netwatch
