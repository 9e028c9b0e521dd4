package drain

import "time"

// Member is a connection in a [Group].
type Member struct {
	slot   // when its notice or its close is due; guarded by group.mu, as all that follows but the functions
	state  state
	warned bool // its notice was called, or it has none
	group  *Group
	close  func(code int, reason string) error
	notice func(by time.Time) // nil: none
}

// state is where a member is in its life.
type state uint8

const (
	waiting state = iota // in the schedule
	closing              // its closer runs
	gone
)

// Remove removes the connection, which has ended, from the Group. It returns immediately, and may be called at
// any time, more than once, and by the closer. A member that the Group has closed need not be removed.
func (m *Member) Remove() {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m.state {
	case gone:
		return
	case waiting:
		g.due.remove(m)
		g.stats.Left++
	}
	m.state = gone
	g.stats.Members--
	g.advance()
}
