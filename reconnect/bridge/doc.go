// Package bridge gives a reader of numbered streams the messages that were missed while there was no
// connection. It reads from a reconnect.Conn. The protocol must number its messages, or have snapshots.
//
// A [Bridge] holds the live messages of a stream while it fetches the missed ones, until the two meet.
// The reader gets both in order, each once.
//
// # Subscriptions
//
// A fetch before the subscription misses what comes between the two. What to set depends on how the
// streams are subscribed:
//
//	in the URL, or in OnSession with the answer awaited     nothing: a ready session has its subscriptions
//	by a subscription.Set, all keys Essential               nothing, for keys that the server does not refuse
//	by a subscription.Set, not all keys Essential           AwaitSubscribed, and reconnect.Options.MarkRefetch
//	a key that is added to either Set during a session      also Set.Wait, and then Refetch(key, 0)
//	by requests of the program, without a Set               AwaitSubscribed; Refetch(key, session) at each answer
//
// With MarkRefetch the mark of a session comes when the Set holds all keys that were wanted when
// the session began, so that one option serves all streams. Without the mark, a stream waits for
// its next live message. A stream that has no cursor yet begins with Follow or Refetch:
//
//	set.Add("NVDA")
//	if err := set.Wait(ctx, "NVDA"); err == nil {
//		b.Refetch("NVDA", 0)
//	}
//
// The example of Bridge named Subscription is the whole program.
//
// # Cursors
//
// A [Cursor] is for a reader that needs no Bridge. It says whether a number is the next, was seen, comes
// after a gap, or belongs to another epoch.
package bridge
