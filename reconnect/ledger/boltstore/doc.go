// Package boltstore keeps the messages of a [ledger.Ledger] in a bolt database, so that they survive
// the end of the program, and a kill -9 too. It is a module of its own, because it needs
// go.etcd.io/bbolt.
//
// The sender:
//
//	db, err := boltstore.Open("outgoing.db", 0o600, &bolt.Options{Timeout: time.Second})
//	...
//	defer db.Close() // after <-conn.Done()
//	store, err := boltstore.New(db, "orders")
//	...
//	ledger, err := ledger.New(&ledger.Options{Store: store, Encode: encode})
//
// Without a Timeout, Open waits for ever while another process has the file open.
//
// When Add has returned, the message is on the disk. Messages that are added at the same time share a
// transaction, and so one wait for the disk; a single goroutine waits for the disk each time.
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
// So each message has its effect once, as long as both databases exist, and in the order in which it
// was added: the sender sends again what was not acknowledged, and the inbox knows what it has. What
// can still repeat:
//
//   - An effect outside of the transaction, such as a mail: the program may die after the mail and
//     before the transaction. Send it from what the transaction has stored.
//   - If the receiver's database is lost, what is unacknowledged comes again under new numbers (see
//     ledger.ResetRenumber), and what was acknowledged is gone.
//   - If the sender's database is lost, its new messages begin after what the inbox has, if it uses
//     ResumeEpoch; what was in the database is gone.
//
// # Damage
//
// A disk may change what was stored. Whatever cannot be verified is reported, and nothing of it is
// deleted:
//
//   - A damaged record costs itself only: the Ledger reports it with ledger.OutcomeDamaged, and the
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
