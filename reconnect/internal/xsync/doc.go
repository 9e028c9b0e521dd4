// Package xsync has the synchronizing types that package reconnect is made of.
// They know nothing of connections. The zero value of each is ready for use and
// small, because a gateway has ten thousand connections, and makes a channel only
// when somebody waits.
package xsync
