// Package backoff decides how long to wait before the next try, how long that try may take, when to stop,
// and what an error means. It needs the standard library only, and it does not wait.
//
// The package guarantees this (the numbers refer to the promises in package reconnect):
//
//   - Not in step (2). By default each wait is jittered: also the first one after a drop, and the wait
//     that is added to a Retry-After. The cap comes first and the jitter after it, so that waits do not
//     gather at the cap.
//   - No hot loop (3). Waits grow, with the failures or with the age of the outage. A stable session ends
//     the outage, and a session of 2 s or more makes it younger; a shorter one does not. No number of
//     failures, no setting and no NaN makes a wait overflow or negative.
//   - Verdicts (9). [Classify] judges every error, by its type and never by its text. A server's
//     Retry-After comes on top of the jittered wait and is cut at an hour. Of all answers only 410 ends a
//     program; after an error that somebody has to mend the tries are 10 s apart at first, and later minutes.
//   - Overload is not refusal. A refused dial is cheap for a server, and a dial that times out is not:
//     after it, waits go on growing where the cap on cheap failures stops.
//   - Hung is not lost. A handshake that is not answered may wait in a server's queue, or may be lost.
//     Package reconnect keeps it and dials again beside it.
//   - Values, not state. A [Policy] is immutable, may be shared by any number of connections, and
//     allocates nothing. Random numbers are arguments, so that a test or a simulator can repeat itself.
//
// # Ways in
//
// [Default] is the policy for all; [Exponential], with [First] and [Limit] around it, makes others. Mark
// errors where they are made: [Permanent], [Slow], [Refresh], [RetryAfter]. Package retry repeats any
// operation by a policy, and package reconnect keeps a connection open. A dialer learns from [AttemptFrom] what
// its supervisor knows of the dial.
//
// # Rules for every policy
//
// No [Policy] can change these:
//
//   - After ClassStop there is no further try.
//   - After ClassRefresh the wait is random in [0, 1 s). A second ClassRefresh in a row counts as ClassSlow.
//   - A Lenient ClassSlow counts as ClassRetry, unless the verdict before it was ClassSlow too. A stable session
//     ends that row.
//   - After ClassSlow the wait is at least a draw as [SlowWait] says: that of the policy, or the default.
//   - The time that a server has asked for, up to an hour, comes first, and nothing cuts it short. The wait
//     follows it.
//   - A wait or a limit below 0 is 0.
//
// In package reconnect these hold too:
//
//   - Before the first dial of a connection there is no wait but RunOptions.StartSpread.
//   - A handshake that hangs is kept for up to 6 h, and the next dial begins beside it after the wait. There
//     are never three. Of two that hang one is given up, as Swap and SwapIfFull of the [Step] say. With
//     RunOptions.OneConnection a handshake that hangs is given up, and the next dial follows after the wait.
//   - A session that was ready for less than 2 s, or than a shorter RunOptions.StableAfter, earns nothing: the
//     next wait is as long as if its dial had failed. Neither does a session with NoCredit in its [Verdict],
//     unless it was ready for an hour.
//   - From the eleventh wait of an outage on, 10 ms are added to a wait that is shorter than that.
//
// Use policies by pointer, and do not change them once they are in use. In their fields zero means the
// default, as does a float that is not a number. Negative means off: no wait, no growth or no limit, as
// the field says.
package backoff
