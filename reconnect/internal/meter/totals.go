package meter

import (
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Totals are the sums over the connections of one name. The counts include connections that have
// ended; everything else is about live connections.
type Totals struct {
	Name string
	Counts

	Conns     int       // connections
	EverConns bool      // whether there were any before; false if there were only calls of Run
	States    [4]uint64 // how many are in each state, without StateClosed
	Logins    uint64    // how many wait for a login

	Away      time.Duration // the longest time for which no session has been ready
	Silence   time.Duration // the longest time since the last byte
	QueuedAge time.Duration // the longest time for which a message has waited

	Queued, QueuedBytes uint64 // messages that wait to be sent
	Unread, UnreadBytes uint64 // messages that wait to be read

	Sets         int  // sets of subscriptions
	EverSets     bool // whether there were any before
	Wanted, Held uint64
}

// Counts never go down.
type Counts struct {
	Received, ReceivedBytes uint64
	Written, WrittenBytes   uint64
	Dropped, Unknown        uint64
	Refusals, Unanswered    uint64
}

// pairs calls f with each count of c and the same one of other.
func (c *Counts) pairs(other *Counts, f func(mine *uint64, theirs uint64)) {
	f(&c.Received, other.Received)
	f(&c.ReceivedBytes, other.ReceivedBytes)
	f(&c.Written, other.Written)
	f(&c.WrittenBytes, other.WrittenBytes)
	f(&c.Dropped, other.Dropped)
	f(&c.Unknown, other.Unknown)
	f(&c.Refusals, other.Refusals)
	f(&c.Unanswered, other.Unanswered)
}

// add adds other to c.
func (c *Counts) add(other Counts) {
	c.pairs(&other, func(mine *uint64, theirs uint64) { *mine += theirs })
}

// raise sets each count to that of other, if that is larger.
func (c *Counts) raise(other Counts) {
	c.pairs(&other, func(mine *uint64, theirs uint64) { *mine = max(*mine, theirs) })
}

// countsOf returns the counts of a connection and its subscriptions.
func countsOf(s reconnect.Stats, subs subscription.Stats) Counts {
	return Counts{
		Received: s.Received, ReceivedBytes: s.ReceivedBytes, Written: s.Written, WrittenBytes: s.WrittenBytes,
		Dropped: s.Dropped, Unknown: s.Unknown, Refusals: subs.Refusals, Unanswered: subs.Unanswered,
	}
}

// live adds a live connection.
func (t *Totals) live(status reconnect.Status, s reconnect.Stats, sets int, subs subscription.Stats, away time.Duration) {
	t.Conns++
	t.States[status.State]++
	if status.State == reconnect.StateWaiting && backoff.ReasonOf(status.Err) == backoff.ReasonLogins {
		t.Logins++
	}
	t.Away, t.Silence, t.QueuedAge = max(t.Away, away), max(t.Silence, s.Silence), max(t.QueuedAge, s.QueuedAge)
	t.Queued += s.Queued
	t.QueuedBytes += s.QueuedBytes
	t.Unread += s.Unread
	t.UnreadBytes += s.UnreadBytes
	t.Sets += sets
	t.Wanted += uint64(subs.Wanted)
	t.Held += uint64(subs.Held)
}
