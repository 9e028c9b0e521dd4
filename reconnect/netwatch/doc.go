// Package netwatch notices changes of this machine's network, such as another Wi-Fi network, a VPN, or sleep.
//
// After such a change a live connection may be dead without a sign, and one that waits before its next dial
// could dial immediately. [Attach] checks the live connections and makes the waiting ones dial:
//
//	watcher, err := netwatch.Attach(ctx, feed, orders) // each is a *reconnect.Conn
//
// A gateway makes one [Watcher] with [New], and attaches each connection that it opens.
//
// # Which changes count
//
// The Watcher reports a [Change] only if a [Network] differs from the one before. A Network has:
//
//   - the addresses of the interfaces that are up and have a carrier, except loopback, link-local addresses
//     (169.254.0.0/16, fe80::/10), addresses that are not usable yet (Linux), and the interfaces of
//     containers and virtual machines (see [Virtual] and [Options].Ignore).
//   - the route to the Internet, for IPv4 and IPv6: interface, gateway and source address. This is the route
//     to the address of a root name server; no packet is sent there. Its interface always counts.
//
// Sleep of the machine is always a change. A renewed lease, a container that starts, a route to one other
// network, or a network that goes away and comes back unchanged before the Watcher looks is none.
//
// # How the Watcher notices
//
// Linux announces changes by rtnetlink, in bursts. The Watcher looks at the network 500 ms after the last
// announcement, but at most 5 s after the first, and every Options.Interval. Elsewhere:
//
//   - On other systems, and where a sandbox rejects the announcements, the Watcher only looks every Interval,
//     and [Status].Polling has the reason.
//   - Where the system does not list the interfaces (Android), a Network has only the source addresses of the
//     routes to the Internet.
//   - On js/wasm and wasip1 the network cannot be seen, and New returns an error. A web page has the events
//     "online" and "offline" instead.
//
// The Watcher sees the network namespace in which its process began. It has one goroutine, and on Linux a
// second one.
package netwatch
