// Package subscription keeps a connection subscribed to a set of keys across losses, rotations, refusals and
// missing answers.
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
// The venue is the server. encode makes the message of a request, and answer parses the venue's answer:
//
//	func encode(r *subscription.Request[string]) (conn.Message, error) {
//		return conn.JSONMessage(request{Method: r.Op.String(), ID: r.ID, Params: r.Keys})
//	}
//
//	func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
//		var v response
//		if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
//			return a, false // no answer: the message is passed to the reader
//		}
//		if a.ID = v.ID; v.Error != "" {
//			a.Err = errors.New(v.Error)
//		}
//		return a, true
//	}
//
// In a busy feed, look first for bytes that only answers contain.
//
// # Guarantees
//
// A key is wanted from [Set.Add] to [Set.Remove]. A session holds a key once the venue has agreed to send it
// the key's data.
//
//  1. No failure changes the wanted keys. The held keys belong to one session: it begins with none, except
//     those of a [Set.Dialer], and only an answer in the session to a request for it adds one.
//  2. Eventually the held keys are the wanted keys, except those that the venue refuses. Adding a key again
//     before its removal was sent costs no message, nor does removing one before its request was sent. A
//     removal is sent only if the session may hold the key, and after the answer to the subscription.
//  3. After a missing answer (see below) the keys are requested again, under a new id. After a second one, and
//     after a refusal, OnReject decides. The waits grow across sessions.
//  4. The keys of a refused batch are requested in batches of half the size, and a key refused alone stays
//     alone until the venue agrees to it, or to others that were refused like it.
//  5. A late answer confirms its request, unless the opposite was requested since: then the key is requested, or
//     removed, again, because a venue may process requests concurrently.
//  6. Requests are written one at a time under the Conn's Pace, so that other messages get their turn.
//  7. A session has a goroutine only while there is something to do or to wait for. When the Conn is Done, all
//     goroutines and all calls of Wait have returned.
//
// # Pace
//
// The venue counts messages on arrival, so make Per longer than its interval, or halve N: see budget.Window.
//
// # Slow venues
//
// The clock of a request starts when it was written, or when an earlier one was last answered. An answer is
// missing after Options.Timeout, for the oldest request or one that a later one has passed. If the oldest is
// missing its answer, it alone is requested again, the timeout doubles (up to 5 min, also for later
// sessions), and one request at a time is sent until answers come. So Timeout must exceed the venue's time
// for one request of Batch keys, not for all. InFlight × Batch keys in a round trip is the maximum rate.
//
// # Refused keys
//
// Keys rejected with the same error, apart from the key in it, are probed by one request at a time: with one
// key, or a batch if the venue names the refused keys. After an agreement 2, 4, 8 and more follow
// immediately. The longer they are refused, the rarer the probes: each of 2,000 keys is requested once in
// half an hour. More keys share about one request in a second.
//
// # Sessions
//
// A session is ready once its essential keys are held or refused, unless the decision is [DecisionRedial].
// Until then, a missing answer is noticed only when another message arrives; if none does, the attempt fails
// after the Conn's OpenTimeout, which begins again with each agreement.
//
// With [reconnect.Options].MarkRefetch the mark of a session comes once it holds all keys that were wanted when
// it began, except refused ones. Call [Set.Wait] for later keys. At the mark, fetch the messages that the venue
// sent while the keys were not subscribed.
//
// A session that replaces another requests all keys before it is ready, so that the switch comes when it holds
// them. After two thirds of OpenTimeout, or Options.Timeout before its end if that is later, it is ready
// anyway, and the other keys follow. While two sessions live, a removal goes to both, and an addition to the
// newer.
package subscription
