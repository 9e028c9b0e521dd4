// Package classic has waiting rules of the past and of other programs, each as a
// backoff.Policy. The articles that this project reproduces describe them, and its
// simulations compare [backoff.Default] with them. They also help to read old
// configurations. Do not choose one for a new program:
//
//   - Some have no jitter, at least in the first wait (Fixed, ConnectRetry, GRPC,
//     JPillora). All clients of a server that restarts come back at one instant. Without
//     any jitter they stay in step.
//   - Some apply the jitter first and the cap after it (CeleryOld, JPillora, Stubborn,
//     AWSLegacy). A growing share of the waits is exactly the cap: 54 % at the seventh
//     wait of CeleryOld with 1 and 30 s, 97 % at the eleventh.
//   - Some do not grow (Fixed, NATS), so that the load on a busy server never falls. The
//     same is true of every rule here once it is at its cap.
//   - Ethernet's slots are for a wire on which all stations hear each other: its waits are
//     microseconds, and 0 is possible at every step.
//
// Choose [backoff.Exponential] instead, or nothing, which means [backoff.Default].
//
// # Sources
//
// Types that name a program have the formula of its source code. The others are from:
//
//   - Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), whose
//     rules are [backoff.Exponential] and [Decorrelated]
//   - this project, whose default was [Paced] before it was [backoff.Default]
//   - Andrey Smirnov, "Exponential Backoff, or how not to crash a server" (Habr): Fixed,
//     and [Normal]
//   - W. Richard Stevens and Stephen A. Rago, "Advanced Programming in the UNIX
//     Environment", section 16.4: ConnectRetry
//   - IEEE 802.3: Ethernet
//
// The waits agree in mean, standard deviation and mass at the cap with
// testdata/backoff_moments.csv.
//
// History.N counts waits from 0. Where a source counts from 1, the comment says so. No
// attempt number and no field leads to overflow or to a negative wait. The zero value of a
// field means its default, and so does a float that is not a number. Goroutines may share a
// policy if none of them changes it.
package classic
