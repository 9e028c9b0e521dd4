// Package bridge fetches the messages of numbered streams that were missed while there was no connection. It
// reads from a [reconnect.Conn]. The protocol must number its messages, or have snapshots. A [Bridge] holds the
// live messages until the missed ones are fetched, so that its reader gets all in order, each once.
//
// # Subscriptions
//
// A fetch before the subscription misses the items between the two. What to set depends on how the streams are
// subscribed:
//
//	in the URL, or in OnSession with the response awaited   nothing: a ready session has its subscriptions
//	by a subscription.Set, all keys Essential               nothing, for keys that the server does not refuse
//	by a subscription.Set, not all keys Essential           AwaitSubscribed, and reconnect.Options.MarkRefetch
//	a key that is added to either Set during a session      also Set.Wait, and then Refetch(key, 0)
//	by requests of the program, without a Set               AwaitSubscribed; Refetch(key, session) per response
//
// A stream without a cursor begins with Follow or Refetch:
//
//	set.Add("NVDA")
//	if err := set.Wait(ctx, "NVDA"); err == nil {
//		b.Refetch("NVDA", 0)
//	}
//
// # Cursors
//
// A [Cursor] is for a reader that needs no Bridge: it detects duplicates, gaps and new epochs.
package bridge
