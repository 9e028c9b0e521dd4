// Package ratelimit is an API that allows so many calls per second and answers the others
// with 429 Too Many Requests, and clients that call again until they succeed, in virtual
// time: how long it takes until all have succeeded, and how many calls were in vain.
//
// The API either says nothing more, or says in Retry-After when there is room again, which
// is the same time for all, or books a time for each. A client is a [backoff.Policy] and
// what it does with a Retry-After: [retry.Loop] waits for that long and then by its
// policy; most hand-written loops wait for the longer of the two.
//
// The model is ideal: a call takes no time, and the clients' clocks agree with the API's.
// The same Options give the same Result on every machine. Its tests have the same API over
// HTTP.
package ratelimit
