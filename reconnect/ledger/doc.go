// Package ledger keeps each sent message until the peer has acknowledged it, and sends it again after a redial.
// It is a layer of a [reconnect.Conn]. The protocol must number its messages.
//
//	posts, err := ledger.New(&ledger.Options{
//		Encode: func(e ledger.Entry) (conn.Message, error) { // how a message goes to the peer
//			return conn.JSONMessage(post{Seq: e.Seq, Text: string(e.Data)})
//		},
//		Ack: readAck, // finds the number in an acknowledgement
//	})
//	...
//	c, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{posts.Layer()},
//		OnSession: func(ctx context.Context, o *reconnect.Opening) error {
//			hello, err := readHello(o) // the peer's epoch, and the last number it has
//			if err != nil {
//				return err
//			}
//			return posts.ResumeEpoch(o, hello.Epoch, hello.Have)
//		},
//	})
//	...
//	id, err := posts.Add([]byte("hello")) // is sent now, or when there is a connection
//	err = posts.Wait(ctx, id)             // nil: the peer has it
//
// After a redial the peer reports the number up to which it has every message, and the [Ledger] sends the rest
// again. With a [Store] it does so after a restart of the program, too. The nested module boltstore has a Store
// on disk.
//
// The promises:
//
//  1. Each message that Add has accepted has exactly one [Outcome], which is passed to [Options].OnDone.
//     OutcomeAcknowledged means acknowledged by the peer, never only "written".
//  2. Messages reach the peer in the order of Add: the first copy of each comes after the first copies of those
//     before it, even while one session replaces another.
//  3. No write of a message begins after its acknowledgement.
//  4. A session writes a message at most once, and no timer repeats it. Only another session, once ready,
//     repeats it, and only if it is unacknowledged.
//  5. With a Store, a message is stored before Add returns and before it is sent. If the Store fails, Add
//     fails, and nothing is sent. No number is used twice, even after a restart with every message
//     acknowledged.
//  6. Messages, bytes and age are bounded. When the Conn is done, no goroutine or timer of the Ledger is left,
//     and OnDone has been called for every unacknowledged message.
//
// # Exactly once
//
// A message whose acknowledgement is lost arrives twice, so the peer must drop the numbers that it already has.
// The effect happens exactly once if the peer stores it and the number in one transaction and acknowledges
// afterwards, as boltstore.Inbox does. If it stores one after the other and dies in between, the effect repeats
// if stored first, and is missing if stored last. After a crash, a peer that keeps its number in memory only
// cannot tell which of the messages that are sent again it had before.
package ledger
