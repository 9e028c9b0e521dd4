// Package ledger keeps each message that was sent until the peer has acknowledged it, and sends it
// again after a redial. It is a layer of a reconnect.Conn. The protocol must number its messages.
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
// A [Ledger] gives each message a number, sends the message, and keeps it until the peer has
// acknowledged it. After a redial the peer says up to which number it has every message, and the Ledger
// sends the rest again, in order, before any new message. With a [Store] the Ledger does the same after
// a restart of the program. The nested module boltstore has a Store on disk.
//
// The promises:
//
//  1. Each message that Add has accepted has exactly one [Outcome], and Options.OnDone gets that
//     Outcome. OutcomeAcknowledged means that the peer has said so, and never only "written".
//  2. Messages reach the peer in the order of Add: the first copy of each comes after the first
//     copies of those before it. This holds while one session replaces another, too.
//  3. No write of a message begins after its acknowledgement.
//  4. A session writes a message at most once: no timer repeats it. Only another session repeats the
//     message, when that session is ready, and only if the peer has not acknowledged the message.
//  5. With a Store, a message is stored before Add returns, and before the message is sent. If the
//     Store fails, Add fails, and nothing is sent. A number is not used twice, not even after a restart
//     at which every message was acknowledged.
//  6. Messages, bytes and age are bounded. When the Conn is done, no goroutine and no timer of the
//     Ledger is left, and OnDone has got every message that was not acknowledged.
//
// # Exactly once
//
// The peer may get a message twice, if the connection is lost after the message has arrived and before
// the acknowledgement has. So the peer must drop the numbers that it has already. A message then has
// its effect exactly once if the peer stores the effect and the number in one transaction, and
// acknowledges after that, as boltstore.Inbox does. Otherwise, if the peer dies:
//
//   - between storing the effect and the number, in this order, the effect repeats.
//   - between storing the number and the effect, in this order, the effect is missing.
//   - and keeps its number in memory only, the peer has forgotten us. Every unacknowledged message then
//     goes again, under a new number ([ResetRenumber]) or its old one ([ResetKeepNumbers]). The peer
//     cannot tell which of them it had before.
package ledger
