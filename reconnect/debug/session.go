package debug

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// sessionInfo is the record session of the JSON.
type sessionInfo struct {
	Session uint64    `json:"session"`
	Start   time.Time `json:"start"`
	Away    seconds   `json:"away"`
	Up      seconds   `json:"up"`
	Live    bool      `json:"live"`
	Reason  string    `json:"reason,omitzero"`
	Planned bool      `json:"planned"`
}

// session is a sessionInfo as the Page keeps it.
type session struct {
	number  uint64
	start   int64 // Unix nanoseconds, as those below
	ready   int64 // 0: it was never ready
	end     int64 // 0: it has not ended
	away    time.Duration
	reason  backoff.Reason
	planned bool // sessionInfo.Planned
}

// public returns s as it is shown.
func (s *session) public(now time.Time) sessionInfo {
	r := sessionInfo{Session: s.number, Start: time.Unix(0, s.start), Away: seconds(s.away), Live: s.end == 0}
	end := s.end
	if r.Live {
		end = now.UnixNano()
	} else {
		r.Reason, r.Planned = s.reason.String(), s.planned
	}
	if s.ready != 0 {
		r.Up = seconds(max(end-s.ready, 1))
	}
	return r
}

// lostSince reports whether s was ready and has ended after t, and not because that was planned.
func (s *session) lostSince(t int64) bool { return s.ready != 0 && s.end > t && !s.planned }
