// Package contention reproduces AWS's simulation of optimistic concurrency control
// (aws-samples/aws-arch-backoff-simulator; Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015): N clients start at one instant, and each must win one
// compare-and-set on one row. It reads the version, writes with it, and on conflict
// waits and begins again. Each of the four messages of a try takes |N(10, 2)| ms,
// as does the one after a conflict, on top of the wait. The
// library's own policies decide how long that is.
//
// Two peculiarities of the original are kept, since its figures rest on them: calls
// are writes only, reads are free; and the first wait of the exponential kinds is
// 2 x base, 10 ms.
package contention
