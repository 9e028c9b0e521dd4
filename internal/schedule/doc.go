// Package schedule decides when one connection is dialed. It has the rules that hold for every
// [backoff.Policy], and it does not dial, does not wait and does not look at the clock: a supervisor reports
// to it, and does what it says. So package reconnect and the simulators in bench run the same code.
//
//   - [Dials] is for a supervisor with up to two dials at a time: it keeps a handshake that is not
//     answered, and dials again beside it.
//   - [Outage] is for one dial at a time: it counts failures, and asks the policy.
package schedule
