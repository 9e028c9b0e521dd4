// Package backoff decides how long to wait before the next attempt, how long it may take, when to give up, and
// what an error means. It needs only the standard library and never waits.
//
// It guarantees (with the numbers of package reconnect's promises):
//
//   - Not in step (2). By default every wait is jittered, including the first after a drop and the one added to a
//     Retry-After. Jitter comes after the cap.
//   - No hot loop (3). Waits grow with the failures or the age of the outage. No number of failures, setting or
//     NaN makes a wait overflow or negative.
//   - Verdicts (9). [Classify] judges every error by type, never by text. Of all responses only 410 is final.
//   - Overload is not refusal. After a dial that times out, waits keep growing beyond the cap for cheap failures.
//   - Values, not state. A [Policy] is immutable, may be shared, and allocates nothing. Random sources are
//     arguments.
//
// # Usage
//
// [Default] is the policy for everything; [Exponential], wrapped in [First] and [Limit], makes others. Mark
// errors where they are made: [Permanent], [Slow], [Refresh], [RetryAfter].
//
// # Rules for every policy
//
// No [Policy] can change these:
//
//   - After ClassStop there is no further attempt.
//   - After ClassRefresh the wait is random in [0, 1 s). A second ClassRefresh in a row counts as ClassSlow.
//   - A Lenient ClassSlow counts as ClassRetry unless the previous verdict was ClassSlow too. A stable session
//     ends that row.
//   - After ClassSlow the wait is at least a draw from the policy's [SlowWait].
//   - The time that a server has asked for, up to an hour, comes first and is never shortened. The wait follows
//     it.
//   - A negative wait or limit is 0.
//
// In package reconnect these apply too:
//
//   - The only wait before the first dial of a connection is RunOptions.StartSpread.
//   - A handshake that hangs is kept for up to 6 h, and the next dial begins concurrently after the wait. There
//     are never three. With RunOptions.OneConnection the first is given up before the next dial.
//   - A session that was ready for less than 2 s, or than a shorter RunOptions.StableAfter, earns nothing: the
//     next wait is as long as if its dial had failed. Nor does one with NoCredit in its [Verdict], unless it
//     was ready for an hour. A stable session ends the outage, and one in between takes 30 s off it.
//   - From the eleventh wait of an outage on, 10 ms are added to any shorter wait.
//
// Use policies by pointer, and do not modify them once in use. In their fields zero and NaN mean the default,
// and a negative value turns the wait, growth or limit off, as the field says.
package backoff
