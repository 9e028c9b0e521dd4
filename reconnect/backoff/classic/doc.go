// Package classic has the waiting rules of the past and of other programs, each as a
// [backoff.Policy]. They are what the articles describe that this project reproduces,
// and what its simulations compare [backoff.Default] with; they also serve to read old
// configurations. No new program should choose one:
//
//   - Without jitter, or without it in the first wait (Fixed, ConnectRetry, GRPC,
//     JPillora), all clients of a server that restarts come back in one instant; without
//     any jitter they stay in step ever after.
//   - With the jitter first and the cap after it (CeleryOld, JPillora, Stubborn,
//     AWSLegacy) a growing share of the waits is exactly the cap: 54 % at the seventh
//     wait of CeleryOld with 1 and 30 s, 97 % at the eleventh.
//   - With a constant (Fixed, NATS) nothing ever gets better for a server that has too
//     much to do. The same is true of every rule here once it is at its cap.
//   - The slots of Ethernet are made for a wire on which all stations hear each other:
//     they are waits of microseconds, and 0 is among them at every step.
//
// Choose [backoff.Exponential] instead, or nothing, which means [backoff.Default].
//
// # Sources
//
// The formulas were read in the sources of the programs that the types name. The others
// are from:
//
//   - Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), whose
//     rules are [backoff.Exponential] and [backoff.Decorrelated]
//   - Andrey Smirnov, "Exponential Backoff, or how not to crash a server" (Habr): Fixed,
//     and [backoff.Normal]
//   - W. Richard Stevens and Stephen A. Rago, "Advanced Programming in the UNIX
//     Environment", section 16.4: ConnectRetry
//   - IEEE 802.3: Ethernet
//
// The waits agree in mean, standard deviation and mass at the cap with
// testdata/backoff_moments.csv in the folder above.
//
// History.N counts waits from 0 here as elsewhere; where a source counts from 1, the
// comment says so. No attempt number and no field leads to overflow or to a negative
// wait. The zero value of a field means its default, as does a float that is not a
// number. A policy may be shared between goroutines, but not changed.
package classic
