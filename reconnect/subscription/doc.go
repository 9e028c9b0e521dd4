// Package subscription keeps a connection subscribed to a set of keys, through losses, rotations,
// refusals and answers that do not come.
//
//	set, err := subscription.New(&subscription.Options[string]{Encode: encode, Answer: answer})
//	if err != nil {
//		return err
//	}
//	set.Add("AAPL", "MSFT")
//	feed, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{set.Layer()},
//		Pace:   budget.Window{N: 5, Per: 1200 * time.Millisecond}, // the venue allows 5 in a second: see Pace
//	})
//	...
//	set.Add("NVDA")             // at any time, with a connection or without
//	set.Remove("AAPL")
//	err = set.Wait(ctx, "NVDA") // until the venue has agreed, or refused
//
// The venue is the server. encode makes one message of a request for a batch of keys, and answer
// reads the answer of the venue:
//
//	func encode(r *subscription.Request[string]) (conn.Message, error) {
//		return conn.JSONMessage(request{Method: r.Op.String(), ID: r.ID, Params: r.Keys})
//	}
//
//	func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
//		var v response
//		if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
//			return a, false // no answer: the message goes on to the reader
//		}
//		if a.ID = v.ID; v.Error != "" {
//			a.Err = errors.New(v.Error)
//		}
//		return a, true
//	}
//
// answer is called with each message. In a busy feed, look for bytes that only answers have before
// you parse all of a message.
//
// # Guarantees
//
// A key is wanted from [Set.Add] to [Set.Remove]. A session holds a key when the venue has agreed to
// send the data of the key to that session.
//
//  1. Two sets. No failure changes the wanted keys. The held keys belong to one session: a session
//     begins without, and only an answer by the session, to a request of the session, adds a key.
//  2. In the end the held keys are the wanted keys, except keys that the venue refuses. A key that
//     is added again before its removal was sent costs no message, and neither does a key that is
//     removed before its request was sent. A removal is sent only if the session may hold the key,
//     and after the answer to the subscription.
//  3. A missing answer is neither success nor error: the keys are asked for once more, under a new
//     id. After a second missing answer, and after a refusal, OnReject decides: [DecisionRetry] (the
//     default), [DecisionDrop] or [DecisionRedial]. The waits grow, and go on from session to session.
//  4. One bad key costs only itself. The keys of a refused batch are asked for in batches of half the
//     size, and a key that was refused alone stays alone, until the venue agrees to the key. If the
//     venue says how long to wait, the session asks for nothing before that.
//  5. A late answer confirms nothing. If a late answer contradicts the state of a key, the key is
//     asked for, or removed, again: a venue may work off requests beside each other, as Action Cable
//     and AnyCable do (rails#58698, anycable-go#148).
//  6. The window of the venue is kept, because requests are written one at a time under the Pace of
//     the Conn. Pings, and the messages of others, get their turn between requests. At most InFlight
//     requests wait for answers.
//  7. Nothing is left. A session has one goroutine while there is something to do or to wait for, and
//     none at rest. When the Conn is Done, no goroutine is left, and every Wait has returned.
//
// # Pace
//
// The venue counts messages when they arrive. If the first of two bursts is delayed, both may arrive
// within one interval of the venue. So make Per of the budget.Window longer than the interval, by as
// much as the delay of the network varies. Or set N to half of the limit of the venue, if the delay
// varies by less than Per; a limit minus one is not enough.
//
// # Sessions
//
// Essential keys are asked for before a session is ready: see Options.Essential. A refused key does
// not keep the session from being ready, unless the decision is [DecisionRedial]. Until a session is
// ready, a missing answer is noticed only when another message comes. If no message comes, the attempt
// fails after the OpenTimeout of the Conn.
//
// With [reconnect.Options].MarkRefetch the mark of a session comes when the session holds all keys
// that were wanted when the session began. Refused keys hold no mark back, and neither do keys that
// are added later: call [Set.Wait] for those. At the mark, fetch the messages that the venue sent
// while the keys were not subscribed.
//
// A session that replaces another (see [reconnect.Rotation]) asks for all keys before it is ready, so
// that the switch comes when the session holds all keys. The last part of OpenTimeout stays unused: a
// third, at most Options.Timeout. If the time is too short, the session is ready earlier, and the other
// keys follow. So set OpenTimeout to the time that all keys take: 5,000 keys in batches of 50, at 4
// messages a second, take 24 s. While two sessions live, a removal goes to both, and an addition to the
// newer session.
//
// # Where others fail
//
//	an answer to the old connection confirms the new (InsForge#101)   matched by session and by id or keys; counted otherwise
//	a key removed while down comes back (ballerina-spec#1461)         the wanted keys are a set, not a log of old messages
//	a failed key is forgotten (pyTwitchAPI#319, gocryptotrader#2340)  the key stays wanted, and is asked for again
//	no answer is awaited (vector#25785)                               a key is held when the venue has agreed, within a time
//	one bad symbol fails its batch, and each redial                   halved; alone from then on; its wait outlives the session
//	names given by the server are kept too long (ethers-rs#2418)      Answer.Tag and ByTag belong to one session
//	one lost subscription costs a redial (derive_client#210)          Answer.Ended: that key alone is asked for again
//	a burst after a redial breaks the venue's limit                   a rolling window, in which pings count
//	the overlap of a rotation serves nothing                          the next session holds the keys before the switch
package subscription
