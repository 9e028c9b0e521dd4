package debug

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Session is one session of a Conn.
type Session struct {
	Session uint64    `json:"session"`         // its number
	Start   time.Time `json:"start"`           // when it was dialed; of one that was ready at Register: when it became ready
	Away    Seconds   `json:"away"`            // for how long no session was ready before this one was; if it never was: 0
	Up      Seconds   `json:"up"`              // for how long it was ready, or has been until now; 0: it never was
	Live    bool      `json:"live"`            // it has not ended
	Reason  string    `json:"reason,omitzero"` // why it has ended: one of the reasons of package backoff
	Planned bool      `json:"planned"`         // it was replaced, or the Conn was closed: no loss. After Conn.Redial it is false
}

// session is a Session as it is kept.
type session struct {
	number  uint64
	start   int64 // Unix nanoseconds, as those below
	ready   int64 // 0: it was never ready
	end     int64 // 0: it has not ended
	away    time.Duration
	reason  backoff.Reason
	planned bool // Session.Planned
}

// public returns s as it is shown.
func (s *session) public(now time.Time) Session {
	r := Session{Session: s.number, Start: time.Unix(0, s.start), Away: Seconds(s.away), Live: s.end == 0}
	end := s.end
	if r.Live {
		end = now.UnixNano()
	} else {
		r.Reason, r.Planned = s.reason.String(), s.planned
	}
	if s.ready != 0 {
		r.Up = Seconds(max(end-s.ready, 1))
	}
	return r
}

// lostSince reports whether s was ready and has ended after t, and not because that was planned.
func (s *session) lostSince(t int64) bool { return s.ready != 0 && s.end > t && !s.planned }
