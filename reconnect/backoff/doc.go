// Package backoff decides how long to wait before the next try, how patient
// that try may be, when to stop, and what an error means. It needs the standard
// library only, and it does not sleep except in [Retry] and [Retrier.Do].
//
// What it guarantees (the numbers are those of the promises in package reconnect):
//
//   - Not in step (2). By default each wait is jittered, the first one after a
//     drop included, and what is added to a wait told by a server as well. The cap
//     comes first, the jitter after, so that waits do not gather at the cap.
//   - No hot loop (3). Waits grow, with the failures or with the time that they have
//     gone on for, until an [Outage] is set back, which its owner does after a
//     stable session only. No number of failures, no setting, no NaN makes a wait
//     overflow or negative.
//   - Verdicts (9). [Classify] is total, by type and never by text. A server's
//     Retry-After comes on top of the jittered wait and is cut at an hour.
//     Nothing a server says ends a program except 410 and 426; what somebody
//     has to mend is tried minutes apart.
//   - Overload is not refusal. A refused dial is cheap for a server, a dial that
//     times out is not: waits and patience go on growing after it where the cap
//     on cheap failures stops.
//   - Values, not state. A [Policy] is immutable, may be shared by any number of
//     connections, and allocates nothing; random numbers are handed in, so that
//     a test or a simulator repeats itself.
//
// # Ways in
//
// [Retry] repeats any operation, and a [Retrier] does so within a [Budget] and at
// a [Gate] that it shares with others. A supervisor, which has more to do than
// that, owns an [Outage] and asks it. [Default] is the policy for both;
// [Paced], [Exponential], [Decorrelated] and [Normal] with [First], [Limit] and
// [Patient] around them make others. Errors are marked where they are made, by
// [Permanent], [Slow], [Refresh] and [RetryAfter].
//
// Policies are used by pointer and must not be changed once in use. In their
// fields zero means the default, as does a float that is not a number, and negative
// means off.
package backoff
