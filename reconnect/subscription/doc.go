// Package subscription keeps a connection subscribed to what is wanted, through losses,
// rotations, refusals and answers that do not come.
//
//	set, err := subscription.New(&subscription.Options[string]{Encode: encode, Answer: answer})
//	if err != nil {
//		return err
//	}
//	set.Add("AAPL", "MSFT")
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{set.Layer()},
//		Pace:   budget.Window{N: 5, Per: 1200 * time.Millisecond}, // the venue allows 5 in a second: see 6
//	})
//	...
//	set.Add("NVDA")             // at any time, with a connection or without
//	set.Remove("AAPL")
//	err = set.Wait(ctx, "NVDA") // until the venue has agreed, or refused
//
// The venue is the server. encode makes one message of a request for a batch of keys, and
// answer reads what the venue says to it:
//
//	func encode(r *subscription.Request[string]) (conn.Message, error) {
//		return conn.JSONMessage(request{Method: r.Op.String(), ID: r.ID, Params: r.Keys})
//	}
//
//	func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
//		var v response
//		if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
//			return a, false // no answer: it goes on to the reader
//		}
//		if a.ID = v.ID; v.Error != "" {
//			a.Err = errors.New(v.Error)
//		}
//		return a, true
//	}
//
// In a busy feed look for something that only answers have before you parse all of a message,
// because answer is called with each.
//
// # What it guarantees
//
//  1. Two sets. What is wanted is the user's: no failure changes it. What is held belongs to one
//     session: it is empty when the session begins, and only an answer by that session, to a
//     request of that session, adds to it.
//  2. In the end both are equal, for all keys that the venue does not refuse. What is wanted
//     again before its removal was sent, and what is removed before it was asked for,
//     costs no message. A removal is sent only if the session may have the key, and after
//     the answer to the subscription.
//  3. No answer is no success, and neither is an error. The keys are asked for once more under
//     a new id. Then, and after a refusal, OnReject decides: [DecisionRetry] (the default), [DecisionDrop] or
//     [DecisionRedial]. The waits grow and go on from session to session.
//  4. One bad key costs itself. A refused batch is divided until the key is alone, and a key that
//     was refused alone stays alone until the venue agrees to it.
//  5. A late answer confirms nothing. If it contradicts the state of a key the key is asked for,
//     or removed, again, because a venue may work off requests beside each other, as Action Cable
//     and AnyCable do (rails#58698, anycable-go#148).
//  6. The window of the venue is kept, because requests are written one at a time under the
//     Pace of the Conn. Pings and the messages of others get their turn between them. At most
//     InFlight requests wait for answers. The venue counts what arrives, and of two bursts that
//     were sent a second apart the first may be delayed, so that both arrive within one second.
//     So make Per longer than the interval of the venue, by as much as the delay of the
//     network varies. An N that is one less leaves no room for that, but half of what the
//     venue allows does, as long as the delay varies by less than Per.
//  7. Nothing is left. A session has one goroutine while it has something to do or to wait for,
//     and none at rest. Options.Events has one while it runs. When the Conn is Done, none is
//     left, and every Wait has returned.
//
// # Sessions
//
// Essential keys are asked for before a session is ready: see Options.Essential. One that is
// refused does not keep the session from being ready, unless the verdict is [DecisionRedial]. Before
// a session is ready nobody can give up a read, so an answer that is lost while nothing else
// comes costs the attempt, after the OpenTimeout of the Conn.
//
// With [reconnect.Options].MarkRefetch the mark of a session comes when the session has all keys
// that were wanted when the session began, except those that were refused. Fetch there what was
// missed while the keys were not subscribed. What is added later holds no mark back: see [Set.Wait].
//
// A session that replaces another (see [reconnect.Rotation]) asks for all keys before it is
// ready, so that the switch comes when it is synced. It leaves the last part of OpenTimeout alone
// (a third, at most Options.Timeout). If that is too short the session is ready without the
// rest, which follows, and there is an event, [EventBehind]. Set OpenTimeout to what all keys take: 5,000
// of them in batches of 50, at 4 messages in a second, take 24 s. While two sessions live, a
// removal goes to both, and an addition to the one by which messages are sent.
//
// # Where others fail, and what this does
//
//	an answer to the old connection confirms the new (InsForge#101)   matched by session and by id or keys; counted otherwise
//	what was removed while down comes back (ballerina-spec#1461)      wanted is a set, not a log of old messages
//	what failed is forgotten (pyTwitchAPI#319, gocryptotrader#2340)   it stays wanted, and is asked for again
//	no answer is awaited (vector#25785)                               held is what the venue has agreed to, within a time
//	one bad symbol fails its batch, and each redial                   halved; alone from then on; its wait outlives the session
//	names given by the server are kept too long (ethers-rs#2418)      Answer.Tag and ByTag belong to one session
//	one lost subscription costs a redial (derive_client#210)          Answer.Ended: that key alone is asked for again
//	a burst after a redial breaks the venue's limit                   a rolling window, in which pings count
//	the overlap of a rotation serves nothing                          the next session is synced before the switch
package subscription
