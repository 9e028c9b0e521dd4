// Package ledger keeps what you have sent until the peer has confirmed it. It uses package reconnect,
// and needs a protocol that numbers its messages.
//
//	ledger, err := ledger.New(&ledger.Options{
//		Encode: func(e ledger.Entry) (conn.Message, error) { // how a message goes to the peer
//			return conn.JSONMessage(post{Seq: e.Seq, Text: string(e.Data)})
//		},
//		Ack: readAck, // finds the number in an acknowledgement
//	})
//	...
//	c, err := reconnect.New(d, &reconnect.Options{
//		Layers: []*reconnect.Layer{ledger.Layer()},
//		OnSession: func(ctx context.Context, o *reconnect.Opening) error {
//			hello, err := readHello(o) // what the peer knows of us
//			if err != nil {
//				return err
//			}
//			return ledger.ResumeEpoch(o, hello.Epoch, hello.Have)
//		},
//	})
//	...
//	id, err := ledger.Add([]byte("hello")) // is sent now, or when there is a connection
//	err = ledger.Wait(ctx, id)             // nil: the peer has it
//
// A [Ledger] gives each message a number, sends it, and keeps it until the peer has acknowledged it.
// After a redial the peer says up to which number it has everything, and the Ledger sends the rest
// again, in order, before anything new. With a [Store] it does so after a restart of the program
// too; package boltstore, a module of its own, has one on disk.
//
// What it promises:
//
//  1. Each message that Add has accepted has exactly one [Outcome], and Options.OnDone gets
//     it. OutcomeAcknowledged means that the peer has said so; it never stands for "written".
//  2. Messages reach the peer in the order of Add: the first copy of each comes after the first
//     copies of those before it. This holds while one session replaces another, too.
//  3. No write of a message begins after its acknowledgement.
//  4. A message goes by one session once at most. It is repeated by another session only, and only if
//     the peer has not said that it has it.
//  5. With a Store, a message is stored before Add returns, and before it is sent. If that fails,
//     Add fails, and nothing is sent. Numbers are not used twice, not even after a restart when
//     everything was acknowledged.
//  6. Messages, bytes and age are bounded. When the Conn is done, nothing of the Ledger is left, and
//     OnDone has handed back what was not acknowledged.
//
// The peer may get a message twice: it has got it, and the connection was lost before its
// acknowledgement came. So it must drop numbers that it has. That is enough for "once" if it
// stores the effect of a message and its number together, in one transaction, and acknowledges
// after that. boltstore.Inbox does so. If the two are not stored together, this can happen when
// the peer dies between them: with the effect first, the effect of at most the messages
// that it had in hand repeats; with the number first, their effect is missing. If the
// peer keeps its number in memory only, it has forgotten us when it comes back: then everything that
// is unacknowledged has a new number (see [ResetRenumber]), or goes again under its old one (see
// [ResetKeepNumbers]), and those of them that it had got before repeat.
//
// Where others fail, and what the Ledger does:
//
//	A limit on what is unacknowledged holds back      Add fails with ErrFull, or AddWait waits, or the
//	the promise and not the buffer, which grows       oldest are dropped and reported.
//	(SignalR's stateful reconnect).
//
//	Messages are sent again by a timer while the      A message is repeated by another session only.
//	connection is well, which MQTT 5 forbids.
//
//	Serials go on after the server has forgotten      Resume says whether the peer knows us. If not, new
//	them, so new messages count as old ones.          numbers begin, as in Ably's RTN19, unless the
//	                                                  protocol wants the old ones (ResetKeepNumbers).
//
//	An acknowledgement that was read late confirms    AckedTo has the number of its session. Those from
//	a message of the numbers after it.                before the new numbers do nothing.
//
//	One corrupt record in the queue on disk stops     It has OutcomeDamaged, and the others are sent.
//	all the others.
//
//	"Sent" is taken for "arrived".                    Only the peer's word ends a message well.
//
//	A peer confirms what was never sent, and the      It is a *SeqError.
//	client believes it.
//
//	A burst after a redial breaks the server's rate   Options.Pace of the Conn counts, and what is sent
//	limit, or its time to log in.                     again comes after ready, not inside OpenTimeout.
package ledger
