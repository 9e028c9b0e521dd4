// Package classic holds the delay rules of yesterday and of other programs,
// each as a [backoff.Policy]: to compare with, to read old configurations, and
// for the herd lab. Nobody should choose one today:
//
//   - Without jitter, or without it in the first wait (Fixed, ConnectRetry,
//     GRPC, JPillora) all clients of a server that restarts come back in one
//     instant; without any they stay in step ever after.
//   - With jitter first and the cap after (CeleryOld, JPillora, Stubborn,
//     AWSLegacy) a growing share of the waits is exactly the cap: 54 % at the
//     seventh wait of CeleryOld with 1 and 30 s, 97 % at the eleventh.
//   - With a constant (Fixed, NATS) nothing ever gets better for a server that
//     has too much to do; and so with every rule here, once it is at its cap.
//   - Ethernet's slots are made for a wire, where all stations hear each
//     other: waits of microseconds, 0 among them at every step.
//
// Choose [backoff.Exponential] instead, or nothing: [backoff.Default].
//
// The formulas were read in the sources of the programs; draws agree with
// testdata/backoff_moments.csv in mean, standard deviation and mass at the
// cap. Attempt.N counts waits from 0 here as elsewhere; where a source counts
// from 1, the comment says so. As everywhere, no attempt number and no field
// leads to overflow or to a negative wait, the zero value of a field is its
// default, as is a float that is not a number, and a policy may be shared between
// goroutines but not changed.
package classic
