// Package rotation is clients that were started together and replace each connection when it
// has its age, as reconnect.Options.Rotate does, in virtual time: how many dial in one second.
//
// The age of each connection is drawn from [From, 1) of After. The library's From is 0.9. With
// From 1 nothing is drawn: every connection gets exactly as old as After.
//
// The model is ideal: each dial succeeds at once, and no connection is lost. The same Options
// give the same Result on every machine. The tests hold it to 10,000 real Conns.
package rotation
