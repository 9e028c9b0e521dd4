package handover

// Overlap says what the reader gets while both sessions live. Its values are those of the type
// Overlap of package reconnect.
type Overlap uint8

// The ways.
const (
	Hold       Overlap = iota // the old session to its end, then the next one
	Mix                       // both, as their messages come
	BreakFirst                // the old session ends before the next is dialed
)

// Machine is one handover, from the request on. The caller serializes the calls of its methods.
type Machine struct {
	overlap   Overlap
	stage     stage
	old       old
	resting   bool // the next supervisor waits before its dial, and the server has not asked for the wait
	ready     bool // the next supervisor has had a ready session
	resumed   bool // the first of these has resumed the stream
	behind    bool // nobody read the old session when the next came to lead
	missing   bool // messages between the two sessions may be missing
	releasing bool // the reader gets the held messages now
}

// Tap gets a Machine that may have changed, before the lock around it is released. Only a test sets Tap.
var Tap func(*Machine)

// stage is how far a handover is: see the package comment.
type stage uint8

const (
	due stage = iota
	making
	led
	failed
	over
	dropped
)

// old is how far the end of the old session is.
type old uint8

const (
	live     old = iota
	lost         // it was lost before the next supervisor led
	replaced     // it ended after that
	released     // the reader has its seam, and every held message
	gone         // its supervisor has ended
)

// New returns a handover that is due at some later time.
func New(o Overlap) Machine { return Machine{overlap: o} }

// Begin says what to do when the handover is due.
type Begin uint8

// The beginnings.
const (
	BeginNothing Begin = iota // it is not due any more
	BeginDial                 // start the next supervisor
	BeginBreak                // close the old session; its supervisor redials
)

// Begin is called when the time has come. ending says that the old session is lost, or that the
// Conn is shut down: then nothing begins.
func (m *Machine) Begin(ending bool) Begin {
	switch {
	case m.stage != due || ending:
		return BeginNothing
	case m.overlap == BreakFirst:
		m.stage = making
		return BeginBreak
	}
	m.stage = making
	return BeginDial
}

// Rest notes whether the next supervisor waits before its dial, and the server has not asked for
// the wait.
func (m *Machine) Rest(resting bool) { m.resting = resting }

// Lead says what a ready session of the next supervisor means.
type Lead uint8

// The kinds of Lead.
const (
	LeadRefused Lead = iota // there is no use for the session: close it
	LeadTakes               // it takes the lead from the old session
	LeadKeeps               // its supervisor leads already
)

// NextReady is called when a session of the next supervisor is ready. resumed says that the
// session has resumed the stream; behind, that the peer of the old session may have ended it already,
// because it has hung up, or because no goroutine reads the session now.
func (m *Machine) NextReady(resumed, behind bool) Lead {
	if m.stage == failed {
		return LeadRefused
	}
	if !m.ready {
		m.ready, m.resumed = true, resumed
	}
	if m.stage != making {
		return LeadKeeps
	}
	m.stage, m.behind = led, behind
	return LeadTakes
}

// Holds reports whether a message of the next session is held.
func (m *Machine) Holds() bool {
	return !m.Released() && (m.overlap != Mix || m.old == lost)
}

// HeldFull is called when no more can be held. It reports whether to cut the old session.
func (m *Machine) HeldFull() (cut bool) {
	m.missing = true
	return m.old < gone
}

// Ending is how the old session ended.
type Ending uint8

// The endings.
const (
	EndedByUs   Ending = iota // we closed it, because the next one leads
	EndedByPeer               // the peer closed it in order
	EndedBroken               // anything else: messages on their way are lost
)

// OldLost is called when the old session has ended, before its seam. unread says that messages of it
// may not have been read. OldLost reports whether the next supervisor leads with a ready session, so
// that the two sessions have overlapped.
func (m *Machine) OldLost(how Ending, unread bool) (overlapped bool) {
	if m.stage != led {
		m.old = lost
		return false
	}
	m.old = replaced
	m.missing = m.missing || unread || how == EndedBroken || how == EndedByPeer && m.behind
	return true
}

// Overlapped reports whether nothing is missing between the two sessions.
func (m *Machine) Overlapped() bool { return !m.missing }

// Resumed reports whether the next session has resumed the stream.
func (m *Machine) Resumed() bool { return m.resumed }

// Release is called after the seam of the old session, and again after the messages that were
// held have been given to the reader, until it reports true: nothing is held any more. left is how
// many messages are held.
func (m *Machine) Release(left int) (done bool) {
	m.releasing = left > 0
	if left == 0 && m.old < released {
		m.old = released
	}
	return left == 0
}

// Released reports whether the reader has all of the old session, and every held message.
func (m *Machine) Released() bool { return m.old >= released }

// Loss says what comes before the seam of a session of the next supervisor.
type Loss uint8

// The kinds of Loss.
const (
	LossAwait  Loss = iota // close the old session, and wait until all is released
	LossForget             // drop the messages that are held of the session, because it was never ready
	LossWait               // wait until all is released, because the reader is getting the held messages
)

// NextLost is called when a session of the next supervisor has ended. ready says whether the
// session was ready.
func (m *Machine) NextLost(ready bool) Loss {
	switch {
	case ready:
		return LossAwait
	case m.releasing:
		return LossWait
	}
	return LossForget
}

// Heir is the supervisor that goes on after the old session.
type Heir uint8

// The heirs.
const (
	HeirOld       Heir = iota // the old supervisor redials; the handover has ended, or the redial is part of it
	HeirOldAlone              // the same, after the next supervisor has ended: cancel it, and wait for that
	HeirNext                  // the next supervisor goes on, which leads already; the old one ends
	HeirNextLeads             // the same, and it leads from now on: its dial is the redial
)

// OldEnded is called after the seam of the old session, if the Conn goes on. stop says that no
// dial may follow the loss, by the verdict on it. If the next supervisor rests, the old one
// redials: the wait of the next may be long, because the server may have refused a second session
// only beside the first.
func (m *Machine) OldEnded(stop bool) Heir {
	switch m.stage {
	case due:
		m.stage = dropped
		return HeirOld
	case led:
		return HeirNext
	case failed:
		return HeirOldAlone
	case making:
		switch {
		case m.overlap == BreakFirst:
		case m.resting:
			m.stage = failed
			return HeirOldAlone
		case !stop:
			m.stage = led
			return HeirNextLeads
		}
	}
	return HeirOld
}

// Bridged is called when the old supervisor has a session that is ready, or a dial or session of
// it has failed. It reports whether that ends the handover, which is so with [BreakFirst] alone.
func (m *Machine) Bridged() (ends bool) {
	if m.overlap != BreakFirst || m.stage != making {
		return false
	}
	m.stage = over
	return true
}

// OldDone says what follows the end of the old supervisor.
type OldDone uint8

// The kinds of OldDone.
const (
	OldWasLast  OldDone = iota // the Conn ends with it
	OldReplaced                // the next supervisor goes on: report a success
	OldBroke                   // the Conn ends with it: report a failure
	OldAwaits                  // cancel the next supervisor and wait for its end; then the Conn ends
)

// OldDone is called when the old supervisor has ended.
func (m *Machine) OldDone() OldDone {
	switch {
	case m.stage == led:
		m.stage, m.old = over, gone
		return OldReplaced
	case m.stage == due:
		m.stage = dropped
	case m.stage == making && m.overlap == BreakFirst:
		m.stage = over
		return OldBroke
	case m.stage == making || m.stage == failed:
		m.stage = failed
		return OldAwaits
	}
	return OldWasLast
}

// NextDone is called when the next supervisor has ended. It reports whether the Conn ends with it:
// then close the old session, and wait for the end of the old supervisor. If not, report a failure.
func (m *Machine) NextDone() (leads bool) {
	if m.stage == led || m.stage == over {
		return true
	}
	m.stage = failed
	return false
}

// Leads reports whether the next supervisor leads.
func (m *Machine) Leads() bool { return m.stage == led || m.stage == over && m.overlap != BreakFirst }

// Planned reports whether a session that is opened now replaces one that has not died.
func (m *Machine) Planned() bool {
	if m.overlap == BreakFirst {
		return m.stage == making
	}
	return !m.ready && m.old == live
}

// HasLed reports whether the next supervisor has had a ready session.
func (m *Machine) HasLed() bool { return m.ready }

// Begun reports whether more has happened than the request.
func (m *Machine) Begun() bool { return m.stage != due && m.stage != dropped }
