package meter

import (
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Totals are the sums over the connections of one key. The counts include connections that have ended.
// Everything else but Ended is about live connections.
type Totals struct {
	Key
	Counts

	Conns     int       // connections
	EverConns bool      // whether there were any before; false if there were only calls of Run
	States    [4]uint64 // how many are in each state, without StateClosed
	AtGate    uint64    // how many of those in StateConnecting wait at the gate
	Ended     uint64    // how many have ended by themselves, and have no successor
	Logins    uint64    // how many wait for a login
	Probe     time.Time // when the next probe begins that one at a gate waits for; zero: none waits, or it is under way
	Flapping  uint64    // how many are lost again and again
	Failing   uint64    // how many rotations are failing

	Away    time.Time // since when no session has been ready, of the connection that has been away for longest; zero: none is away
	Heard   time.Time // when the last byte came, of the ready session that has been silent for longest; zero: none is ready, or none can be asked
	Waiting time.Time // when the oldest message that waits was queued; zero: none waits

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

// live adds a live connection. away is since when no session has been ready; zero: one is.
func (t *Totals) live(status reconnect.Status, s reconnect.Stats, sets int, subs subscription.Stats, away time.Time) {
	now := time.Now()
	t.Conns++
	t.States[status.State]++
	if status.State == reconnect.StateConnecting && status.AtGate {
		t.AtGate++
	}
	if status.State == reconnect.StateWaiting && backoff.ReasonOf(status.Err) == backoff.ReasonLogins {
		t.Logins++
	}
	if o := status.Outlook; o != nil {
		t.Probe = earlier(t.Probe, o.Next)
	}
	t.Away = earlier(t.Away, away)
	if s.Silence > 0 {
		t.Heard = earlier(t.Heard, now.Add(-s.Silence))
	}
	if s.QueuedAge > 0 {
		t.Waiting = earlier(t.Waiting, now.Add(-s.QueuedAge))
	}
	t.Queued += s.Queued
	t.QueuedBytes += s.QueuedBytes
	t.Unread += s.Unread
	t.UnreadBytes += s.UnreadBytes
	t.Sets += sets
	t.Wanted += uint64(subs.Wanted)
	t.Held += uint64(subs.Held)
}

// earlier returns the earlier of two moments. A zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
