// Package boltstore keeps the messages of a [ledger.Ledger] in a bolt database, so that they survive
// the end of the program, and a kill -9 too. It is a separate module, because it needs go.etcd.io/bbolt.
//
// The sender:
//
//	db, err := boltstore.Open("outgoing.db", 0o600, &bolt.Options{Timeout: time.Second})
//	...
//	defer db.Close() // after <-conn.Done()
//	store, err := boltstore.New(db, "orders")
//	...
//	orders, err := ledger.New(&ledger.Options{Store: store, Encode: encode})
//
// Without a Timeout, Open waits for ever while another process has the file open.
//
// When Add has returned, the message is on the disk. Messages that several goroutines add at the same
// time share a transaction, and so one wait for the disk.
//
// The receiver has an [Inbox], which stores the effect of each message and its number together:
//
//	seen, err := inbox.Take(seq, func(tx *bolt.Tx) error {
//		return tx.Bucket(orders).Put(key, order)
//	})
//	if err == nil {
//		acknowledge(seq)
//	}
//
// As long as both databases exist, each message has its effect exactly once, in the order of Add: the
// sender sends unacknowledged messages again, and the inbox drops the numbers that it has. Limits:
//
//   - An effect outside of the transaction, such as a mail, may repeat, because the program may die
//     between the mail and the transaction. Let the transaction store the mail, and send it from there.
//   - If the receiver's database is lost, the unacknowledged messages come again under new numbers (see
//     ledger.ResetRenumber), and the effects of the acknowledged ones are gone.
//   - If the sender's database is lost, its messages are gone. If the sender uses ResumeEpoch, its new
//     messages begin after the last number of the inbox.
//
// # Damage
//
// A disk may change stored data. Data that cannot be verified is reported, and is not deleted:
//
//   - A damaged record does not affect the others: the Ledger reports it with ledger.OutcomeDamaged. The
//     numbers have a gap there, which [Inbox.TakeAfterGap] accepts and [Inbox.Take] does not.
//   - All else is an [ErrDamaged] of [Open], [New], [NewInbox] or [Store.Load]: a record that is
//     missing, a state or an inbox that is lost, a page of bolt that is not as bolt writes it. So is a
//     damaged page of another bucket, because bolt would write over pages that are in use.
//   - New and NewInbox make a store or an inbox in an empty database only. In another one a missing
//     name may be a damaged one, so [Create] and [CreateInbox] are calls of their own.
//
// Call New and NewInbox before anything else writes to the database, because bolt may have gone back by
// one change, and the next write takes the traces away. Without a list of free pages (bolt's
// NoFreelistSync) a database with so many buckets that their names fill more than one page may have
// gone back by some changes without a trace.
package boltstore
