// Package xsync has the synchronizing types that package reconnect is made of. They know
// nothing of connections. The zero value of each is ready for use. Each is small and makes
// a channel only when a goroutine waits, because a gateway has ten thousand connections.
package xsync
