package handover

// world is what the walk visits: a Machine, the two supervisors that ask it, their connections and
// the reader. The supervisors do what those of package reconnect do, in the same order; a step is
// all that one of them does without waiting. A supervisor asks for its side once per step, as in package
// reconnect, so it may keep the side of a handover that is over: nextSide and oldSide. Sessions are not
// numbered: when a handover is over, and a session is ready, the next handover begins with that as the old
// one. The supervisor that has reported may not be gone by then; it has nothing to do any more. A callback
// may end the goroutine of a supervisor, which then ends the Conn without a verdict.
type world struct {
	m       Machine
	overlap Overlap
	slot    bool // the Conn has this handover, and the next supervisor follows it; false: it was forgotten
	closed  bool // the Conn was closed
	leaving bool // Shutdown was called
	stopped bool // the Conn has ended: Done is closed

	old      oldAt
	oldLink  link
	next     nextAt
	nextLink link
	joined   bool // the end of the next supervisor is known to the old one
	cancel   bool // the next supervisor has to end
	stop     bool // no dial may follow the loss of the old session
	drain    bool // the timer that ends the old session runs
	nextSide bool // the next supervisor serves a session with the side that it had when the handover was not over
	oldSide  bool // the old supervisor cleans up with such a side
	seamless bool // a callback has ended the old supervisor, so the old session has no seam
	released bool // the channel is closed for which the next supervisor waits

	leader   side // whose state is published
	takes    int8 // how often the next supervisor has come to lead
	begun    bool
	reports  int8
	lost     bool // the old session was lost before the next led
	nextWas  bool // the next supervisor has had a ready session
	behind   bool // nobody read the old session when the next came to lead
	full     bool // the old session was cut because no more could be held
	resumed  bool // the first ready session of the next supervisor has resumed the stream
	overlaps bool // the seam of the old session says so
	missing  bool // something is missing at that seam

	stream stream
	held   int8 // messages of the next session that are held
	passed int8 // messages of the next session that are being given to the reader
	wrong  string
}

type side uint8

const (
	oldLeads side = iota
	nextLeads
)

// link is a connection.
type link uint8

const (
	none link = iota
	open
	byUs   // ended by us, in order
	unread // ended by us, while nobody read it
	byPeer
	broken
	brokenUnread // cut by us, while nobody read it
	byPeerUnread // ended by the peer, and nobody read that
	lastLink     = byPeerUnread
)

// oldAt is where the old supervisor is.
type oldAt uint8

const (
	oldReady   oldAt = iota // its session has just been published as ready
	oldReads                // reads its session
	oldSeam                 // has called OldLost; puts the seam next
	oldGives                // releases the held messages
	oldJudged               // has a verdict; asks for the heir
	oldAwaits               // waits for the end of the next supervisor, to redial
	oldDials                // redials: the handover is over, or BreakFirst
	oldOpens                // has another connection
	oldEnds                 // its run has returned
	oldReports              // reports the end of the handover
	oldJoins                // waits for the end of the next supervisor, and ends
	oldLeaves               // has reported, and the handover is forgotten
	oldGone
)

// nextAt is where the next supervisor is.
type nextAt uint8

const (
	nextNone nextAt = iota
	nextDials
	nextRests
	nextOpens
	nextStuck // opens, holds as much as it may, and waits
	nextReads
	nextBlocked // holds as much as it may, and waits
	nextSeam    // its session has ended, was ready, and its seam has to wait
	nextForget  // its session has ended and was never ready, and messages are being released
	nextEnds    // its run has returned
	nextReports // reports the end of the handover
	nextEnding  // the handover is forgotten
	nextJoins   // waits for the end of the old supervisor
	nextGone
)

// stream is what the reader has: how far it is in the order of the two sessions.
type stream uint8

const (
	readsOld stream = iota
	gotSeam
	gotNext // a message of the next session, after the seam
)

// mostHeld is how many messages may be held.
const mostHeld = 2

func newWorld(o Overlap) world { return world{m: New(o), overlap: o, slot: true, oldLink: open} }

// end is what a state is for the walk.
type end uint8

const (
	goesOn     end = iota
	oneSession     // the handover is over, and one supervisor goes on
	connEnded
)

func (w world) end() end {
	switch {
	case w.stopped:
		return connEnded
	case !w.slot && (w.old >= oldLeaves || w.next == nextNone || w.next == nextGone):
		return oneSession
	}
	return goesOn
}

// rules are the methods of Machine; a mistake replaces one.
type rules struct {
	begin     func(*Machine, bool) Begin
	nextReady func(m *Machine, resumed, behind bool) Lead
	holds     func(*Machine) bool
	heldFull  func(*Machine) bool
	oldLost   func(*Machine, Ending, bool) bool
	release   func(*Machine, int) bool
	nextLost  func(*Machine, bool) Loss
	oldEnded  func(*Machine, bool) Heir
	bridged   func(*Machine) bool
	oldDone   func(*Machine) OldDone
	nextDone  func(*Machine) bool
	planned   func(*Machine) bool
	rest      func(*Machine, bool)
}

var trueRules = rules{
	(*Machine).Begin, (*Machine).NextReady, (*Machine).Holds, (*Machine).HeldFull, (*Machine).OldLost, (*Machine).Release,
	(*Machine).NextLost, (*Machine).OldEnded, (*Machine).Bridged, (*Machine).OldDone, (*Machine).NextDone, (*Machine).Planned,
	(*Machine).Rest,
}

// broken returns the invariant that w breaks, or "".
func (w world) broken() string {
	live := 0
	for _, l := range [...]link{w.oldLink, w.nextLink} {
		if l == open {
			live++
		}
	}
	switch {
	case w.wrong != "":
		return w.wrong
	case w.overlap == BreakFirst && (live > 1 || w.next != nextNone):
		return "two connections at a time"
	case w.takes > 1:
		return "the next supervisor came to lead twice"
	case w.reports > 1:
		return "a handover was reported twice"
	case w.end() == oneSession && w.begun && w.reports == 0:
		return "a handover that began was not reported"
	case w.stopped && w.begun != (w.reports == 1):
		return "the Conn ended before the handover was reported"
	case w.stopped && (w.next != nextNone && w.next < nextEnding || w.old < oldLeaves):
		return "the Conn ended before a supervisor"
	case w.stopped && live > 0:
		return "the Conn ended before a connection"
	case w.old == oldGone && w.leader == oldLeads && !w.stopped:
		return "nobody leads"
	case w.next == nextGone && w.leader == nextLeads && !w.stopped:
		return "nobody leads"
	case w.m.Released() && w.held > 0 && !w.closed:
		return "held messages were forgotten"
	case w.m.stage == dropped && w.old <= oldReads && w.oldLink == open && !w.leaving && !w.closed:
		return "a handover that was due was dropped"
	case w.reports > 0 && !w.begun:
		return "a handover that never began was reported"
	case (w.next == nextBlocked || w.next == nextStuck) && w.oldLink == open:
		return "the next session waits, and the old one goes on"
	case w.old == oldDials && w.leader == nextLeads, w.old == oldDials && w.next != nextNone && w.next < nextEnding:
		return "both supervisors dial"
	case w.overlaps && w.m.Resumed() != w.resumed:
		return "the seam does not say whether the stream was resumed"
	case w.overlaps && w.missing:
		return "the seam says that nothing is missing"
	}
	return ""
}

// waits reports whether a supervisor waits for the other, or has to end.
func (w world) waits() bool {
	switch w.old {
	case oldReady, oldAwaits, oldJoins, oldSeam, oldGives, oldJudged, oldEnds, oldReports, oldLeaves:
		return true
	}
	switch w.next {
	case nextStuck, nextBlocked, nextSeam, nextForget, nextEnds, nextReports, nextEnding, nextJoins:
		return true
	}
	return w.closed && !w.stopped
}
