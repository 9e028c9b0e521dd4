// Package boltstore keeps the messages of a ledger.Ledger in a bolt database, so that they survive
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
//   - An effect outside of the transaction, such as a mail, may repeat. Let the transaction store the
//     mail, and send it from there.
//   - If the receiver's database is lost, the unacknowledged messages come again under new numbers (see
//     ledger.ResetRenumber), and the effects of the acknowledged ones are gone.
//   - If the sender's database is lost, its messages are gone. If the sender uses ResumeEpoch, its new
//     messages begin after the last number of the inbox.
//
// # Damage
//
// A disk may change stored data. Damaged data is reported, and is not deleted:
//
//   - A damaged record does not affect the others. The Ledger reports it in each run, with
//     ledger.OutcomeDamaged. [Store.Load] moves it to a key that begins with "damaged ": to be rid of it,
//     delete that key. The numbers have a gap there.
//   - The state is kept twice, so one damaged copy does no harm.
//   - All else is an [ErrDamaged] of [Open], [New], [NewInbox] or [Store.Load]: a missing record, a lost
//     state or inbox, or a page that is not as bolt writes it. A damaged page of another bucket counts too,
//     because bolt would write over pages that are in use.
//
// Call New and NewInbox before anything else writes to the database: bolt may have gone back by one change,
// and the next write removes the traces. With bolt's NoFreelistSync, a database with so many buckets that
// their names fill more than one page may have gone back by some changes without a trace.
package boltstore
