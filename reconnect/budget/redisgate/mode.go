package redisgate

import "time"

// mode decides who lets dials begin: Redis, or this process by its share. Its
// methods get the outcome of each question and the time as arguments. The zero value asks Redis.
//
// Between the last dial that Redis let begin and the first by a share lies a window, and the same on
// the way back. So no interval has dials of both kinds, provided that Redis is away for
// all processes or for none.
type mode struct {
	window time.Duration

	local bool
	from  time.Time // no dial by the share before that
	opens time.Time // Redis is back, and lets dials begin from then on, at the earliest; zero: it is away

	forgets bool // Redis is of no use though it answers, because it closes again and again
}

// failed notes a question that was not answered.
func (m *mode) failed(now time.Time) {
	m.leave(now)
	m.opens, m.forgets = time.Time{}, false
}

// answered notes the answer to a question that was sent at a time: Redis lets no dial begin for so
// long; 0: it does. If Redis forgets, this process begins dials by its share, up to a window before Redis opens.
func (m *mode) answered(sent, now time.Time, closed time.Duration, forgets bool) {
	if closed == 0 {
		*m = mode{window: m.window}
		return
	}
	m.leave(now)
	m.opens, m.forgets = sent.Add(closed), forgets
}

// leave ends the time of Redis, if it may have let a dial begin since the last answer.
func (m *mode) leave(now time.Time) {
	if !m.local || !m.opens.IsZero() && !now.Before(m.opens) {
		m.local, m.from = true, now.Add(m.window)
	}
}

// share reports whether dials may begin by the share at now. If not, next is when they may; zero: that
// does not depend on time.
func (m *mode) share(now time.Time) (ok bool, next time.Time) {
	switch {
	case !m.local, !m.opens.IsZero() && (!m.forgets || !now.Before(m.opens.Add(-m.window))):
		return false, time.Time{}
	case now.Before(m.from):
		return false, m.from
	}
	return true, time.Time{}
}
